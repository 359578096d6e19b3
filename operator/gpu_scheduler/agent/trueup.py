"""Tells libgpucap what it cannot count: what the driver shows and nobody is charged for.

One rule: of each process that is the driver's figure less what its slot in the ledger says. What a
process with a slot has above its allocations (contexts, code, what went past the library) is
written into that slot. All that the others hold, which have none (they do not load the library, or
their ledger was removed or replaced), is written as the container's. So the sum over the ledger is
what the driver shows, and the others of the container get what is left.

The two figures are read at different moments, so a free in between would look like a larger context
and make the tenant's next allocation fail: what is written into a slot is the least of the last
three looks, and nothing before the second. Who has no slot has no allocation on the way. Runs in
the sampler's thread, after each sample.

What the first looks of a process come to is what a context takes on that device. libgpucap charges
each new context this much until the process itself was measured, so a figure that is too high
refuses contexts and one that is too low lets a process hold more for a few seconds. The ledgers
that it is measured against are the tenants' own files: so one figure per pod, the median over the
last pods, and never more than libgpucap would charge without it. It holds for the driver that is
loaded, as this memory does: the agent keeps its driver's library until it ends.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median_high

from gpu_scheduler.agent.ledger import LedgerError, LedgerFile, open_inside
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.sampler import DeviceProcess
from gpu_scheduler.agent.usage import ContainerUse, Use
from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)

LOOKS = 3
PODS = 9  # the last ones, per device
LEAST_MIB, MOST_MIB = 16, 512  # MOST: CONTEXT_MIB of native/libgpucap/src/limit.c
STEP_MIB = 16  # smaller differences are not worth a write
_UNSLOTTED_MS = 15_000  # five looks: with the last process goes who could take it back
LEAST_CHANGE = MIB  # smaller differences are not worth a write

Key = tuple[int, int, str]  # pid, start time, device


@dataclass(slots=True)
class _Looks:
    estimates: deque[int] = field(default_factory=lambda: deque(maxlen=LOOKS))
    settled: bool = False


def context_bytes(nvml_bytes: int, ledger_bytes: int) -> int:
    """What NVML shows above the allocations that the ledger knows."""
    return max(0, nvml_bytes - ledger_bytes)


class ContextCosts:
    """The last figures per device."""

    def __init__(self) -> None:
        self._bytes: dict[str, dict[str, int]] = {}  # by device and pod, the last pod last

    def note(self, uuid: str, pod: str, measured_bytes: int) -> None:
        """A process of this pod has settled; nothing is learnt from one that shows no context."""
        if measured_bytes <= 0:
            return
        by_pod = self._bytes.setdefault(uuid, {})
        by_pod.pop(pod, None)
        by_pod[pod] = measured_bytes
        if len(by_pod) > PODS:
            del by_pod[next(iter(by_pod))]

    def mib(self) -> dict[str, int]:
        """Per device, MiB in whole steps."""
        found = {}
        for uuid, by_pod in self._bytes.items():
            steps = -(-median_high(by_pod.values()) // (STEP_MIB * MIB))
            found[uuid] = min(max(steps * STEP_MIB, LEAST_MIB), MOST_MIB)
        return found


class TrueUp:
    """Remembers the last looks per process and device."""

    def __init__(self, procfs: ProcFS, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: the machine's monotonic seconds, by which libgpucap judges what is old."""
        self._procfs = procfs
        self._clock = clock
        self.costs = ContextCosts()
        self._looks: dict[Key, _Looks] = {}
        self._complained: set[tuple[int, int]] = set()

    def update(self, uses: Iterable[ContainerUse]) -> None:
        """Update the ledgers of all containers that have one."""
        seen: set[Key] = set()
        for use in uses:
            if use.container.own.promised:
                with ExitStack() as stack:
                    self._container(use, _Ledgers(self._procfs, stack), seen)
        for key in self._looks.keys() - seen:
            del self._looks[key]
        self._complained &= {key[:2] for key in seen}

    def _container(self, use: ContainerUse, ledgers: "_Ledgers", seen: set[Key]) -> None:
        for each in use.uses:
            unslotted = 0
            for process in each.processes:
                try:
                    key = self._key(process, each.uuid)
                    if key is not None:
                        seen.add(key)
                        unslotted += self._one(process, key, ledgers, use.container.pod.uid)
                except Exception:
                    unexpected("true-up", f"process {process.pid}")
            if each.readable:
                self._unslotted(ledgers, each, unslotted)

    def _unslotted(self, ledgers: "_Ledgers", use: Use, unslotted: int) -> None:
        until = int(self._clock() * 1000) + _UNSLOTTED_MS
        for opened in ledgers.opened.values():
            try:
                device = opened.devices().get(use.uuid)
                if device is not None:
                    opened.write_unslotted(device, unslotted, until)
            except (LedgerError, OSError) as error:
                log.warning("a ledger: %s", error)

    def uncounted_mib(self, use: ContainerUse) -> int:
        """What the container holds, by the last looks, and libgpucap has not counted."""
        total = 0
        for each in use.uses:
            for gpu_process in each.processes:
                started = gpu_process.process.started if gpu_process.process is not None else 0
                looks = self._looks.get((gpu_process.pid, started, each.uuid))
                total += min(looks.estimates) if looks is not None else gpu_process.used_bytes or 0
        return total // MIB

    def _key(self, gpu_process: DeviceProcess, uuid: str) -> Key | None:
        """None: it is gone, or the driver does not know what it holds."""
        if gpu_process.process is None or gpu_process.used_bytes is None:
            return None
        pid, started = gpu_process.pid, gpu_process.process.started
        return (pid, started, uuid) if self._procfs.started(pid) == started else None

    def _one(self, gpu_process: DeviceProcess, key: Key, ledgers: "_Ledgers", pod: str) -> int:
        """Write what its slot lacks; what it holds if it has none."""
        pid, started, uuid = key
        shown = gpu_process.used_bytes or 0
        inner = self._procfs.inner_pid(pid)
        try:
            opened = ledgers.of(pid)
            device = opened.devices().get(uuid) if opened is not None else None
            slot = opened.find(inner, started) if opened is not None and inner is not None else None
            if opened is None or device is None or slot is None:
                self._looks.pop(key, None)
                return shown
            used, context = opened.held(slot, device)
            known = self._looks.setdefault(key, _Looks())
            looks = known.estimates
            looks.append(context_bytes(shown, used))
            wanted = min(looks)
            if len(looks) > 1 and abs(wanted - context) >= LEAST_CHANGE:
                opened.write_context(slot, device, wanted)
            if len(looks) == LOOKS and not known.settled:
                known.settled = True
                self.costs.note(uuid, pod, wanted)
        except (LedgerError, OSError) as error:
            if (pid, started) not in self._complained:
                self._complained.add((pid, started))
                log.warning("ledger of process %d: %s", pid, error)
            return shown
        return 0


class _Ledgers:
    """The ledgers that a container's processes see, each opened once, for one look."""

    def __init__(self, procfs: ProcFS, stack: ExitStack) -> None:
        self._procfs = procfs
        self._stack = stack
        self._of: dict[int, LedgerFile | None] = {}
        self.opened: dict[tuple[int, int], LedgerFile] = {}

    def of(self, pid: int) -> LedgerFile | None:
        """That of a process; None: the library has found no use for one yet.

        Raises:
            LedgerError: it is not what it should be.
            OSError: it cannot be opened.
        """
        if pid not in self._of:
            try:
                found = self._stack.enter_context(open_inside(self._procfs.inside(pid, "/")))
            except FileNotFoundError:
                self._of[pid] = None
            else:
                self._of[pid] = self.opened.setdefault(found.identity, found)
        return self._of[pid]
