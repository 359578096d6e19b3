"""One look at the node, from the first question to NVML to the verdict over each container.

Everything here may block (NVML, /proc, a tenant's ledger), so it runs in a thread of its own; what
it needs of the event loop's state is handed in as a value and what it finds comes back as one.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpu_scheduler.agent.compute_share import ComputeShares
from gpu_scheduler.agent.history.recorder import Recorder
from gpu_scheduler.agent.isolation import IsolationVerdict, verdict
from gpu_scheduler.agent.kernel_limits import KernelLimits
from gpu_scheduler.agent.kill import kill
from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.sampler import DeviceProcess, Sample, Sampler
from gpu_scheduler.agent.trueup import TrueUp
from gpu_scheduler.agent.usage import ContainerUse, Surroundings, Usage, usage
from gpu_scheduler.agent.watchdog import Key, OverCapContainer, Watchdog
from gpu_scheduler.api.orders import Neighbour
from gpu_scheduler.kube.unexpected import unexpected

_NO_SURROUNDINGS = Surroundings()


@dataclass(frozen=True, slots=True)
class PodSnapshot:
    """What the event loop knows of the pods at the moment of a look."""

    containers: Mapping[str, tuple[GpuContainer, ...]]
    others: Mapping[str, Neighbour]


@dataclass(frozen=True, slots=True)
class Poll:
    """What a look found."""

    sample: Sample
    usage: Usage
    over: dict[Key, OverCapContainer]
    verdicts: dict[Key, IsolationVerdict]
    killed: tuple[int, ...]
    contexts_mib: Mapping[str, int]  # what a context takes, by device
    compute_percent: Mapping[Key, int]  # of time, by container
    seconds: float


def _with_policy(over: OverCapContainer) -> OverCapContainer:
    if not over.container.pod.kill:
        return over
    return replace(over, message=f"{over.message}; by policy kill its processes there are killed")


class Poller:
    """Looks; not to be called from two threads."""

    def __init__(
        self,
        sampler: Sampler,
        procfs: ProcFS,
        watchdog: Watchdog,
        around: Surroundings = _NO_SURROUNDINGS,
    ) -> None:
        self.sampler = sampler
        self._procfs = procfs
        self._watchdog = watchdog
        self._around = around
        self.kernel: KernelLimits | None = None
        self.recorder: Recorder | None = None  # not before it is known which pods there are
        self._true_up = TrueUp(procfs)
        self._shares = ComputeShares()
        self._verdicts: dict[Key, IsolationVerdict] = {}
        self._reported: set[Key] = set()  # above their cap at the last look
        self._loaded: set[tuple[int, int]] = set()  # a library that is mapped stays mapped

    def poll(self, now: float, wall: str, known: PodSnapshot) -> Poll:
        """Poll once.

        Args:
            now: Monotonic seconds.
            wall: The same moment as it will be reported.
            known: The pods of this node.
        """
        began = time.perf_counter()
        sample = self.sampler.sample(now)
        found = self._usage(sample, known)
        if sample.problem is None:
            self._limit(found)
            self._true_up.update(found.containers)
            self._shares.update(found.containers, now)
            if self.recorder is not None:
                self.recorder.take(sample, found.containers, now)
        over = self._watchdog.update(found.containers, wall) if sample.problem is None else {}
        over = {key: _with_policy(each) for key, each in over.items()}
        killed: list[int] = []
        verdicts: dict[Key, IsolationVerdict] = {}
        for use in found.containers:
            key = use.key
            try:
                killed += self._kill(use, over.get(key))
                verdicts[key] = self._verdict(use, key in over)
            except Exception:
                unexpected("look", f"{use.container.pod.namespace}/{use.container.pod.name}")
                verdicts.setdefault(
                    key, IsolationVerdict("unprotected", "the agent cannot judge it")
                )
        self._reported = set(over)
        self._verdicts = verdicts
        self._loaded &= {
            (gpu_process.pid, gpu_process.process.started)
            for device in sample.devices
            for gpu_process in device.processes
            if gpu_process.process is not None
        }
        contexts = self._true_up.costs.mib()
        took = time.perf_counter() - began
        shares = self._shares.percent()
        return Poll(sample, found, over, verdicts, tuple(killed), contexts, shares, took)

    def close(self) -> None:
        """Let go of the driver and of the history."""
        if self.recorder is not None:
            self.recorder.close()
        self.sampler.close()

    def limit(self, sample: Sample, known: PodSnapshot) -> None:
        """Let the driver hold the containers to their caps, where it can."""
        self._limit(self._usage(sample, known))

    def _usage(self, sample: Sample, known: PodSnapshot) -> Usage:
        return usage(sample, known.containers, known.others, self._around)

    def _limit(self, found: Usage) -> None:
        if self.kernel is not None:
            self.kernel.update(found.containers)

    def _kill(self, use: ContainerUse, over: OverCapContainer | None) -> list[int]:
        """Kill by policy, one look after the report: whose process dies must be able to see why."""
        key = use.key
        if over is None or key not in self._reported or not use.container.pod.kill:
            return []
        doomed = [process for process in use.processes if process.pid in over.pids]
        return kill(self._procfs, use.container.pod.uid, doomed)

    def _verdict(self, use: ContainerUse, over: bool) -> IsolationVerdict:
        before = self._verdicts.get(use.key)
        if before is not None and not all(each.readable for each in use.uses):
            return before  # no process was seen because the device did not answer
        kernel = self.kernel is not None and self.kernel.holds(use)
        got_past = over and self._watchdog.is_too_much(use, self._true_up.uncounted_mib(use))
        return verdict(use, kernel=kernel, has_library=self._has_library, got_past=got_past)

    def _has_library(self, gpu_process: DeviceProcess) -> bool | None:
        if gpu_process.process is None:
            return None
        key = (gpu_process.pid, gpu_process.process.started)
        if key in self._loaded:
            return True
        mapped = self._procfs.has_library(gpu_process.pid)
        if mapped:
            self._loaded.add(key)
        return mapped
