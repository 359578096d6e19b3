"""Pods that hold GPUs: what the planner knows of them when it looks for room that could be made.

The cluster's arrays say how much is taken, running pods say by whom. They are asked for only when a
pod finds no place, so a plan in which everything fits never looks at them. The state keeps them;
tests pass a ``Roll``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gpu_scheduler.core.model.decision import Grant
from gpu_scheduler.core.model.request import JobKey, PodShape, PodUID, ProjectName

MOST_SKEW_SECONDS = 60.0  # by which the clock of who tells of a checkpoint may be ahead


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A pod of a GPUJob that is on a node and has not ended."""

    uid: PodUID
    name: str
    job: JobKey
    project: ProjectName
    node: str
    grants: tuple[Grant, ...]
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
    lost_to: JobKey | None = None  # for whom its index had to give way the last time

    @property
    def milli(self) -> int:
        """Milli-GPU held."""
        return sum(grant.milli for grant in self.grants)

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


class Roll:
    """RunningPods from a list."""

    def __init__(self, running_pods: Iterable[RunningPod] = ()) -> None:
        self.all = tuple(running_pods)
        self._on: dict[str, list[RunningPod]] | None = None
        self._of: dict[ProjectName, list[RunningPod]] | None = None

    def on(self, node: str) -> Iterable[RunningPod]:
        """See ``RunningPods``."""
        if self._on is None:
            self._on = {}
            for each in self.all:
                self._on.setdefault(each.node, []).append(each)
        return self._on.get(node, ())

    def of(self, project: ProjectName) -> Iterable[RunningPod]:
        """See ``RunningPods``."""
        if self._of is None:
            self._of = {}
            for each in self.all:
                self._of.setdefault(each.project, []).append(each)
        return self._of.get(project, ())

    def leaving(self) -> Iterable[RunningPod]:
        """See ``RunningPods``."""
        return [each for each in self.all if each.leaving]
