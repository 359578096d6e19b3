"""What is checked, in which order, and whether this device has room for it."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpu_check import findings
from gpu_check.contexts import ContextCheck, measure_context
from gpu_check.costs import CostCheck
from gpu_check.findings import CannotRunError, Finding
from gpu_check.foreign import ForeignCheck
from gpu_check.frameworks import FrameworkCheck
from gpu_check.machine import Machine
from gpu_check.nvml import Nvml
from gpu_check.probes import Bench
from gpu_check.rows import BEYOND_MIB, CONTEXTS, RowCheck
from gpu_check.selftests import SelfTestCheck
from gpu_check.state_folders import StateFolderCheck
from gpu_check.together import PROCESSES, TogetherCheck

DEFAULT_CAP_MIB = 1000  # no multiple of 32 MiB: a pool that rounds up shows
LEAST_CAP_MIB = 256
LARGEST_CONTEXT_MIB = 700  # of what has been seen; for the room that is needed
ROUNDS, PRETENDED_ROUNDS = 15, 10
FRAMEWORK_CAPS = 2  # a framework's modules need room of their own


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    machine: Machine
    bench: Bench
    python: str
    frameworks: dict[str, str]

    def findings(self) -> Iterator[Finding]:
        """Everything, as it comes."""
        bench = self.bench
        given = (bench.start, bench.make_box, bench.nvml, bench.cap_mib)
        yield from RowCheck(*given).findings()
        yield from findings.each([("together", "first context", self._together)])
        for check in (ForeignCheck, StateFolderCheck, SelfTestCheck, ContextCheck):
            yield from check(*given).findings()
        pretended = self.machine.pretended
        why_none = "the pretended driver runs no kernels" if pretended else ""
        cap_mib = FRAMEWORK_CAPS * bench.cap_mib
        yield from FrameworkCheck(
            self.python, self.frameworks, bench.make_box, cap_mib, why_none
        ).findings()
        yield from CostCheck(*given, judged=not pretended).findings()

    def _together(self, _check: str, _how: str) -> Iterator[Finding]:
        bench, cost = self.bench, measure_context(self.bench)
        context_mib = round(cost.alone if cost.alone is not None else cost.reserved)
        rounds = PRETENDED_ROUNDS if self.machine.pretended else ROUNDS
        return TogetherCheck(
            bench.start, bench.make_box, bench.nvml, bench.cap_mib, context_mib, rounds
        ).findings()


def needed_mib(cap_mib: int) -> int:
    """What must be free: a cap that breaks is noticed two pieces later, beside the contexts."""
    contexts = max(PROCESSES, CONTEXTS + 1) + 1
    return FRAMEWORK_CAPS * cap_mib + BEYOND_MIB + contexts * LARGEST_CONTEXT_MIB


def require_room(nvml: Nvml | None, machine: Machine, cap_mib: int) -> None:
    """Leave a device alone that others need.

    Raises:
        CannotRunError: too little is free, or the cap is out of range.
    """
    if cap_mib < LEAST_CAP_MIB:
        raise CannotRunError(f"a cap of {cap_mib} MiB is too small: at least {LEAST_CAP_MIB}")
    free, needed = nvml.free_mib() if nvml else machine.total_mib, needed_mib(cap_mib)
    if free < needed:
        raise CannotRunError(
            f"{machine.gpu} has {free:.0f} MiB free, this check needs {needed} with a cap of "
            f"{cap_mib} MiB: choose a smaller --cap-mib, another --device, or wait"
        )
