"""Pods that have a place and do not exist yet: their Job is told to make them.

Their devices are promised to nobody else until the pod is there and takes the place, or the place
is given back. Nothing of it outlives this process: who leads next plans them again. Kept by
``state.cluster_state``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import JobKey, PodKind, PodUID


@dataclass(slots=True)
class AwaitedPod:
    """One of them.

    Attributes:
        place: Where it goes; its ``pod`` is the uid of the unmade pod.
        role: Which of the GPUJob's Jobs makes it.
        index: See ``UnmadePod``.
        width: How many pods at once its Job, or all Jobs of a sweep, are to have for it to be made.
        pod_kind: What it was planned as.
        asked: Whether its Job has been told.
    """

    place: Assignment
    role: str
    index: int
    width: int
    pod_kind: PodKind
    asked: bool = False

    @property
    def uid(self) -> PodUID:
        """Under which its place is charged."""
        return self.place.pod


class AwaitedPods:
    """Those of all GPUJobs."""

    def __init__(self) -> None:
        """Nobody is awaited."""
        self._of: dict[JobKey, dict[PodUID, AwaitedPod]] = {}

    def keys(self) -> Iterable[JobKey]:
        """GPUJobs with awaited pods."""
        return tuple(self._of)

    def of(self, key: JobKey) -> Sequence[AwaitedPod]:
        """Those of a GPUJob, in the order in which they were placed."""
        return tuple(self._of.get(key, {}).values())

    def on(self, node: str) -> list[JobKey]:
        """GPUJobs with a place on a node."""
        here = (each.place for of in self._of.values() for each in of.values())
        return list(dict.fromkeys(place.job for place in here if place.node == node))

    def put(self, pod: AwaitedPod) -> None:
        """One more has a place."""
        self._of.setdefault(pod.place.job, {})[pod.uid] = pod

    def drop(self, key: JobKey, uid: PodUID) -> AwaitedPod | None:
        """It is awaited no more."""
        of = self._of.get(key, {})
        found = of.pop(uid, None)
        if found is not None and not of:
            del self._of[key]
        return found

    def whose_place(self, key: JobKey, role: str, index: int) -> AwaitedPod | None:
        """Whose place a new pod takes: that of its own index, or the first of its role."""
        mine = [each for each in self._of.get(key, {}).values() if each.role == role]
        return next((each for each in mine if each.index == index), mine[0] if mine else None)
