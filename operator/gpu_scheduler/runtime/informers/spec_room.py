"""How much of what the GPUJobs of a namespace say is kept in memory: so many bytes of each.

What many jobs say alike counts once. Without a project a namespace gets little: nothing of it is
planned. What has no room is not kept at all; it is read again once there is, or a project.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from gpu_scheduler.runtime.informers.specs import ReadSpec
from gpu_scheduler.state.jobs.projects import no_project

MOST_BYTES = 96 << 20
MOST_BYTES_WITHOUT_PROJECT = 128 << 10


@dataclass(slots=True)
class _Room:
    """What a namespace has."""

    of: dict[str, bytes] = field(default_factory=dict)  # GPUJob -> which text
    texts: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # bytes, and how many have it
    taken: int = 0


class SpecRoom:
    """By namespace."""

    def __init__(self, has_project: Callable[[str], bool]) -> None:
        """All of it is free."""
        self._has_project = has_project
        self._rooms: dict[str, _Room] = {}

    def take(self, namespace: str, name: str, said: ReadSpec) -> str:
        """Keep what a GPUJob says now, in place of what it said before; why not, empty if so."""
        self.leave(namespace, name)
        if said.spec is None:
            return ""
        room = self._rooms.setdefault(namespace, _Room())
        size, count = room.texts.get(said.key, (said.size, 0))
        known = self._has_project(namespace)
        most = MOST_BYTES if known else MOST_BYTES_WITHOUT_PROJECT
        if not count and room.taken + size > most:
            self._drop_empty(namespace)
            return _full(namespace, most) if known else no_project(namespace)
        room.of[name] = said.key
        room.texts[said.key] = size, count + 1
        room.taken += 0 if count else size
        return ""

    def leave(self, namespace: str, name: str) -> bool:
        """A GPUJob is gone, or says something else; whether that makes room."""
        room = self._rooms.get(namespace)
        key = room.of.pop(name, None) if room is not None else None
        if room is None or key is None:
            return False
        size, count = room.texts.pop(key)
        if count > 1:
            room.texts[key] = size, count - 1
            return False
        room.taken -= size
        self._drop_empty(namespace)
        return True

    def _drop_empty(self, namespace: str) -> None:
        if not self._rooms[namespace].of:
            del self._rooms[namespace]


def _full(namespace: str, most: int) -> str:
    return (
        f"spec: the GPUJobs of namespace {namespace} say more different things than are kept of "
        f"one namespace ({most >> 20} MiB); delete those that have ended, or keep what is long in "
        "a ConfigMap, a volume or the image. It is read again when there is room"
    )
