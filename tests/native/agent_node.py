"""A look of the agent at real processes: a node whose /proc says in which pod they are.

Runs in a process of its own, where libnvidia-ml.so.1 is the pretended one. Cgroups cannot be made
in every test environment, so the pod of a pid is told; everything else of /proc is real.
"""

import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from tests.native.fake_gpu import uuid_of

from gpu_scheduler.agent.health import Health
from gpu_scheduler.agent.nvml import NvmlDriver
from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.poll import PodSnapshot, Poll, Poller
from gpu_scheduler.agent.procfs import Process, ProcFS
from gpu_scheduler.agent.sampler import Sampler
from gpu_scheduler.agent.watchdog import Watchdog
from gpu_scheduler.api.orders import OrderedContainer, OrderedPod

NAMESPACE = "team-a"


def ready() -> None:
    """Tell the test that this process is where it should be."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()


def stay() -> NoReturn:
    """Go on holding what this process has until it is killed."""
    while True:
        signal.pause()


def pod_uid(number: int) -> str:
    return f"{number:08x}-1111-4222-8333-444455556666"


def container_id(number: int) -> str:
    return f"{number:064x}"


class NodeProc(ProcFS):
    """/proc, with each known pid in the container of its pod; ``roots`` are containers' roots."""

    def __init__(self, pods: dict[int, int], roots: dict[int, str]) -> None:
        super().__init__()
        self._pods, self._roots = pods, roots

    def process(self, pid: int) -> Process | None:
        found = super().process(pid)
        number = self._pods.get(pid)
        if found is None or number is None:
            return found
        path = f"0::/kubepods/burstable/pod{pod_uid(number)}/{container_id(number)}\n"
        return replace(found, cgroup=path)

    def inside(self, pid: int, path: str) -> Path:
        return Path(self._roots[pid]) if pid in self._roots else super().inside(pid, path)


class AgentNode:
    """An agent's eyes, with one container per pod on the first device."""

    def __init__(
        self,
        pods: dict[int, int],
        caps_mib: dict[int, int],
        *,
        kills: bool = False,
        roots: dict[int, str] | None = None,
        promised: bool = True,
    ) -> None:
        procfs = NodeProc(pods, roots or {})
        self.sampler = Sampler(NvmlDriver(), procfs, Health())
        self.poller = Poller(self.sampler, procfs, Watchdog(tolerance_mib=512))
        self._now = 0.0
        self._known = PodSnapshot(
            containers={
                pod_uid(number): (
                    GpuContainer(
                        OrderedPod(
                            pod_uid(number), NAMESPACE, f"pod-{number}", (), "job", "project", kills
                        ),
                        OrderedContainer(
                            0, "main", {uuid_of(0): cap}, container_id(number), promised
                        ),
                    ),
                )
                for number, cap in caps_mib.items()
            },
            others={},
        )

    def look(self, times: int = 1) -> Poll:
        for _ in range(times):
            found = self.poller.poll(self._now, f"t{self._now:g}", self._known)
            self._now += 3
        return found
