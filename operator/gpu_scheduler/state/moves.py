"""What consolidation has to know of pods that run: what they asked for, and when they last moved.

Kept in memory and only where consolidation is on: after a change of leader pods that were placed
before are left where they are, and the hour between two moves of a pod begins anew. A pod and the
one that takes its place share the name up to the last part, which the Job controller draws anew.
Kept by ``occupants``.
"""

from dataclasses import replace

from gpu_scheduler.core.consolidation import REST_SECONDS
from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.request import JobKey, PodUID, Shape

MOST_SHAPES = 200_000  # pods remembered; the oldest are forgotten first

Index = tuple[JobKey, str]


class Moves:
    """Shapes by pod, and moves by job and index."""

    def __init__(self) -> None:
        """Start knowing nothing."""
        self._shapes: dict[PodUID, Shape] = {}
        self._moved: dict[Index, float] = {}

    def placed(self, uid: PodUID, shape: Shape) -> None:
        """A pod was placed that asked for this."""
        if len(self._shapes) >= MOST_SHAPES:
            del self._shapes[next(iter(self._shapes))]
        self._shapes[uid] = shape

    def moved(self, pod: Occupant, now: float) -> None:
        """A pod has to move; ``now``: epoch seconds."""
        self._moved = {i: at for i, at in self._moved.items() if at + REST_SECONDS > now}
        self._moved[_index(pod)] = now

    def complete(self, pod: Occupant) -> Occupant:
        """The same occupant with what is known here."""
        shape, moved = self._shapes.get(pod.uid), 0.0
        if self._moved:
            moved = self._moved.get(_index(pod), 0.0)
        if shape is None and not moved:
            return pod
        return replace(pod, shape=shape, moved=moved)


def _index(pod: Occupant) -> Index:
    return pod.job, pod.name.rpartition("-")[0]
