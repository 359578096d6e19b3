"""Pods that have a place and do not exist yet: their Job is told to make them.

Their devices are promised to nobody else until the pod is there and takes the place, or the place
is given back. Nothing of it outlives this process: who leads next plans them again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import JobKey, PodShape, PodUID


@dataclass(slots=True)
class NominatedPod:
    """One of them.

    Attributes:
        place: Where it goes; its ``pod`` is the uid of the prospective pod.
        role: Which of the GPUJob's Jobs makes it.
        index: See ``ProspectivePod``.
        parallelism: How many pods at once its Job, or all Jobs of a sweep, are to have for it to be
            made.
        pod_shape: What it was planned as.
        asked: Whether its Job has been told.
    """

    place: Assignment
    role: str
    index: int
    parallelism: int
    pod_shape: PodShape
    asked: bool = False

    @property
    def uid(self) -> PodUID:
        """Under which its place is charged."""
        return self.place.pod


class NominatedPods:
    """Those of all GPUJobs; one that comes costs the same, however many are nominated."""

    def __init__(self) -> None:
        """Nobody is nominated."""
        self._of: dict[JobKey, dict[str, dict[PodUID, NominatedPod]]] = {}  # by role
        self._at: dict[tuple[JobKey, str, int], NominatedPod] = {}

    def __contains__(self, key: object) -> bool:
        """Whether any pod of a GPUJob is nominated."""
        return key in self._of

    def keys(self) -> Iterable[JobKey]:
        """GPUJobs with nominated pods."""
        return tuple(self._of)

    def of(self, key: JobKey) -> Sequence[NominatedPod]:
        """Those of a GPUJob, role by role, in the order in which they were placed."""
        return [each for of in self._of.get(key, {}).values() for each in of.values()]

    def of_role(self, key: JobKey, role: str) -> Sequence[NominatedPod]:
        """Those that one Job makes, or the Jobs of a sweep, in the order they were placed."""
        return list(self._role(key, role).values())

    def on(self, node: str) -> list[JobKey]:
        """GPUJobs with a place on a node."""
        return [key for key in self._of if any(each.place.node == node for each in self.of(key))]

    def untold_parallelism(self, key: JobKey, role: str) -> int:
        """The most of the parallelisms that the Job of a role has not been told of; 0 = of all.

        Each that is placed gets more than those before it that are untold, and a Job is told of the
        less before the more: so the last one says it.
        """
        last = next(reversed(self._role(key, role).values()), None)
        return last.parallelism if last is not None and not last.asked else 0

    def untold(self, key: JobKey) -> bool:
        """Whether a Job of a GPUJob has not been told to make all that are nominated."""
        return any(self.untold_parallelism(key, role) for role in self._of.get(key, ()))

    def put(self, pod: NominatedPod) -> None:
        """One more has a place."""
        key = pod.place.job
        self._of.setdefault(key, {}).setdefault(pod.role, {})[pod.uid] = pod
        self._at[key, pod.role, pod.index] = pod

    def drop(self, key: JobKey, uid: PodUID) -> NominatedPod | None:
        """It is nominated no more."""
        roles = self._of.get(key, {})
        found = next((of.pop(uid) for of in roles.values() if uid in of), None)
        if found is None:
            return None
        if not roles[found.role]:
            del roles[found.role]
        if not roles:
            del self._of[key]
        if self._at.get((key, found.role, found.index)) is found:
            del self._at[key, found.role, found.index]
        return found

    def whose_place(self, key: JobKey, role: str, index: int) -> NominatedPod | None:
        """Whose place a new pod takes: that of its own index, or the first of its role."""
        first = next(iter(self._role(key, role).values()), None)
        return self._at.get((key, role, index), first)

    def _role(self, key: JobKey, role: str) -> dict[PodUID, NominatedPod]:
        return self._of.get(key, {}).get(role, {})
