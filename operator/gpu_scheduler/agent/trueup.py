"""Tells libgpucap what a process' contexts and libraries cost: NVML's figure above its allocations.

The two figures are read at different moments, so a free in between would look like a larger
context and make the tenant's next allocation fail: what is written is the least of the last three
looks, and nothing before the second. Runs in the sampler's thread, after each sample.

What the first looks of a process come to is what a context takes on that device. libgpucap charges
each new context this much until the process itself was measured, so a figure that is too high
refuses contexts and one that is too low lets a process hold more for a few seconds. The ledgers
that it is measured against are the tenants' own files: so one figure per pod, the median over the
last pods, and never more than libgpucap would charge without it. It holds for the driver that is
loaded, as this memory does: the agent keeps its driver's library until it ends.
"""

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median_high

from gpu_scheduler.agent.ledger import LedgerError, open_inside
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.sampler import DeviceProcess
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)

LOOKS = 3
PODS = 9  # the last ones, per device
LEAST_MIB, MOST_MIB = 16, 512  # MOST: CONTEXT_MIB of native/libgpucap/src/limit.c
STEP_MIB = 16  # smaller differences are not worth a write
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

    def __init__(self, procfs: ProcFS) -> None:
        self._procfs = procfs
        self.costs = ContextCosts()
        self._looks: dict[Key, _Looks] = {}
        self._complained: set[tuple[int, int]] = set()

    def update(self, uses: Iterable[ContainerUse]) -> None:
        """Update the ledgers of all containers that have one."""
        seen: set[Key] = set()
        for use in uses:
            if not use.container.own.promised:
                continue
            for each in use.uses:
                for process in each.processes:
                    try:
                        key = self._one(process, each.uuid, use.container.pod.uid)
                    except Exception:
                        unexpected("true-up", f"process {process.pid}")
                        continue
                    if key is not None:
                        seen.add(key)
        for key in self._looks.keys() - seen:
            del self._looks[key]
        self._complained &= {key[:2] for key in seen}

    def uncounted_mib(self, use: ContainerUse) -> int:
        """What the container holds, by the last looks, and libgpucap has not counted."""
        total = 0
        for each in use.uses:
            for gpu_process in each.processes:
                started = gpu_process.process.started if gpu_process.process is not None else 0
                looks = self._looks.get((gpu_process.pid, started, each.uuid))
                total += min(looks.estimates) if looks is not None else gpu_process.used_bytes or 0
        return total // MIB

    def _one(self, gpu_process: DeviceProcess, uuid: str, pod: str) -> Key | None:
        if gpu_process.process is None or gpu_process.used_bytes is None:
            return None
        pid, started = gpu_process.pid, gpu_process.process.started
        key = (pid, started, uuid)
        inner = self._procfs.inner_pid(pid)
        if inner is None or self._procfs.started(pid) != started:
            return None
        try:
            with open_inside(self._procfs.inside(pid, "/")) as ledger:
                device = ledger.devices().get(uuid)
                slot = ledger.find(inner, started)
                if device is None or slot is None:
                    return key
                used, context = ledger.held(slot, device)
                known = self._looks.setdefault(key, _Looks())
                looks = known.estimates
                looks.append(context_bytes(gpu_process.used_bytes, used))
                wanted = min(looks)
                if len(looks) > 1 and abs(wanted - context) >= LEAST_CHANGE:
                    ledger.write_context(slot, device, wanted)
                if len(looks) == LOOKS and not known.settled:
                    known.settled = True
                    self.costs.note(uuid, pod, wanted)
        except FileNotFoundError:
            pass  # the library has found no use for one yet
        except (LedgerError, OSError) as error:
            if (pid, started) not in self._complained:
                self._complained.add((pid, started))
                log.warning("ledger of process %d: %s", pid, error)
        return key
