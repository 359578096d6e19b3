"""Namespaces in which there is anything to see: those with GPU work, and those of projects.

Of others no right is asked about. Walked once in a while, and the same object while nothing
changed, so that who remembers what follows from it can tell.
"""

from collections.abc import Callable

from gpu_scheduler.state.cluster_state import ClusterState

SECONDS = 5.0
_NONE: frozenset[str] = frozenset()


class WorkNamespaces:
    """Of the replica that leads here."""

    def __init__(
        self, state: Callable[[], ClusterState | None], clock: Callable[[], float]
    ) -> None:
        """``state`` None: this replica does not lead; ``clock``: monotonic seconds."""
        self._state = state
        self._clock = clock
        self._found = _NONE
        self._at: float | None = None

    def __call__(self) -> frozenset[str]:
        """As of a few seconds ago at most."""
        now = self._clock()
        if self._at is None or now - self._at >= SECONDS:
            self._at = now
            state = self._state()
            found = _NONE if state is None else _namespaces(state)
            if found != self._found:
                self._found = found
        return self._found


def _namespaces(state: ClusterState) -> frozenset[str]:
    works = (*state.gpujobs.values(), *state.groups.records.values())
    found = {work.namespace for work in works}
    for record in state.projects.records.values():
        found.update(record.namespaces)
    return frozenset(found)
