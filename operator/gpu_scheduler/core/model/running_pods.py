"""Pods that hold GPUs: what the planner knows of them when it looks for room that could be made.

The cluster's arrays say how much is taken, running pods say by whom. They are asked for only when a
pod finds no place, so a plan in which everything fits never looks at them. The state keeps them;
tests pass a ``Roll``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Protocol, TypeVar, runtime_checkable

from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import JobKey, PodShape, PodUID, ProjectName
from gpu_scheduler.core.model.resources import Scalars

K = TypeVar("K")
MOST_SKEW_SECONDS = 60.0  # by which the clock of who tells of a checkpoint may be ahead


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A pod of a GPUJob that is on a node and has not ended."""

    uid: PodUID
    name: str
    job: JobKey
    project: ProjectName
    node: str
    devices: tuple[DeviceAllocation, ...]
    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    interactive: bool = False
    priority: int = 50
    since: float = 0.0  # epoch seconds
    ends: float | None = None  # epoch seconds, by its time limit; None = not known
    leaving: bool = False  # it is being evicted or deleted: what it holds will be free
    spared: bool = False  # it cannot be evicted at present
    gang: bool = False  # the pods of its job go together or not at all
    pod_shape: PodShape | None = None  # what it asked for; None = not known, it is never moved
    moved: float = 0.0  # epoch seconds of the last time it had to move to another node; 0 = never
    saved: float = 0.0  # epoch seconds of its last checkpoint; 0 = it has none
    scalars: Scalars = ()
    lost_to: JobKey | None = None  # for whom its index had to give way the last time

    @property
    def milli(self) -> int:
        """Milli-GPU held."""
        return sum(allocated.milli for allocated in self.devices)

    def unsaved_milli_seconds(self, now: float) -> float:
        """The work that is lost if it goes now: milli-GPU times seconds since it was last safe.

        A checkpoint of the future is none: clocks differ by seconds, and a mistake by more would
        count a pod as safe for ever.
        """
        saved = self.saved if self.saved <= now + MOST_SKEW_SECONDS else 0.0
        return self.milli * max(0.0, now - max(self.since, saved))


EvictionGroup = tuple[RunningPod, ...]  # who goes together: a pod alone, or all pods of a gang


@runtime_checkable
class RunningPods(Protocol):
    """All running pods, by node and by project."""

    def on(self, node: str) -> Iterable[RunningPod]:
        """Those on a node."""

    def of(self, project: ProjectName) -> Iterable[RunningPod]:
        """Those of a project."""

    def leaving(self) -> Iterable[RunningPod]:
        """Those that are about to go."""

    def all(self) -> Iterable[RunningPod]:
        """All of them, in an order of which those of ``on`` and ``of`` are parts."""


class Roll:
    """RunningPods from a list."""

    def __init__(self, running_pods: Iterable[RunningPod] = ()) -> None:
        self._all = tuple(running_pods)

    def on(self, node: str) -> Iterable[RunningPod]:
        """See ``RunningPods``."""
        return self._by_node.get(node, ())

    def of(self, project: ProjectName) -> Iterable[RunningPod]:
        """See ``RunningPods``."""
        return self._by_project.get(project, ())

    def leaving(self) -> Iterable[RunningPod]:
        """See ``RunningPods``."""
        return [each for each in self._all if each.leaving]

    def all(self) -> tuple[RunningPod, ...]:
        """See ``RunningPods``."""
        return self._all

    @cached_property
    def _by_node(self) -> dict[str, list[RunningPod]]:
        return _grouped(self._all, attrgetter("node"))

    @cached_property
    def _by_project(self) -> dict[ProjectName, list[RunningPod]]:
        return _grouped(self._all, attrgetter("project"))


def _grouped(
    pods: Iterable[RunningPod], key: Callable[[RunningPod], K]
) -> dict[K, list[RunningPod]]:
    found: dict[K, list[RunningPod]] = {}
    for each in pods:
        found.setdefault(key(each), []).append(each)
    return found
