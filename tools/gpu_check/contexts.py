"""What a context costs for real, and that releasing strange pointers is the driver's affair.

A context's memory cannot be known beforehand: libgpucap reserves a fixed amount until the agent has
read NVML. Here NVML is read, so that the reserve can be compared with the truth on this device.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpu_check import findings
from gpu_check.findings import Figures, Finding, Verdict
from gpu_check.nvml import Watch
from gpu_check.probes import Bench

FULL_RESERVE_CAP_MIB = 8192  # so large that the reserve is not made smaller for it
RELEASES = ("a pointer", "it again", "an unknown one", "an unknown one, async", "pinned", "unpin")


@dataclass(frozen=True, slots=True)
class ContextCost:
    """MiB of a context as NVML shows them; None: NVML does not.

    Attributes:
        alone: of a process that holds nothing else.
        launched: after its first kernel.
        reserved: what libgpucap charges for it.
    """

    alone: float | None
    launched: float | None
    reserved: float


def measure_context(bench: Bench) -> ContextCost:
    """Look at one process from outside, and at the reserve from inside.

    Raises:
        ProbeError: the process does not do as it is told.
    """
    watch = Watch(bench.nvml)
    with bench.start(bench.make_box(None)) as probe:
        alone = watch.held_mib([probe.process.pid])
        probe.ask("launch", 1)
        launched = watch.held_mib([probe.process.pid])
    with bench.start(bench.make_box(FULL_RESERVE_CAP_MIB, None)) as probe:
        view = probe.see()
    return ContextCost(alone, launched, view.total_mib - view.free_mib)


class ContextCheck(Bench):
    """The reserve, and releases."""

    def findings(self) -> Iterator[Finding]:
        """Both."""
        return findings.each(
            [
                ("context reserve", "NVML", self._reserve),
                ("release", "strange pointers", self._releases),
            ]
        )

    def _reserve(self, check: str, how: str) -> Finding:
        cost = measure_context(self)
        figures: Figures = {
            "context_mib": cost.alone,
            "with_a_kernel_mib": cost.launched,
            "reserve_mib": cost.reserved,
        }
        if cost.alone is None or cost.launched is None:
            note = "there is no NVML: the reserve could not be compared"
            return Finding(check, how, Verdict.SKIPPED, note, figures=figures)
        most = max(cost.alone, cost.launched)
        note = f"NVML shows {cost.alone:g} MiB, {cost.launched:g} with a kernel; "
        short = most - cost.reserved
        note += f"the reserve of {cost.reserved:g} is " + (
            f"{short:g} short until the agent corrects it" if short > 0 else "enough"
        )
        return Finding(check, how, Verdict.MEASURED, note, figures=figures)

    def _releases(self, check: str, how: str) -> Finding:
        answers, free = [], []
        for box in (self.make_box(None), self.make_box(self.cap_mib)):
            with self.start(box) as probe:
                answers.append([int(answer) for answer in probe.ask("unknown")])
                free.append(probe.see().free_mib)
        bare, capped = answers
        wrong = [
            f"{what}: {ours}, without the library {theirs}"
            for what, theirs, ours in zip(RELEASES, bare, capped, strict=True)
            if theirs != ours
        ]
        if free[1] != self.cap_mib:
            wrong.append(f"afterwards {free[1]:g} MiB of {self.cap_mib} are free")
        figures = {"answers": " ".join(map(str, capped))}
        found = findings.judged(check, how, findings.said(*wrong), self.cap_mib, None, figures)
        return found if wrong else replace(found, note="the driver's own answers")
