"""What a handler has been told so far, and the calls that bring it up to date.

Keeps uid and resourceVersion per namespace/name, no objects. Invariants: the handler hears ``gone``
exactly once for every uid that it heard ``changed`` for and that is no more, and before anything
about a new object of the same name; after ``replace`` it knows what the list held and nothing else.
A handler that raises is logged, it never stops the stream.
"""

import sys
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.unexpected import unexpected


class KubeObject(Protocol):
    """A decoded object: a struct with ``metadata``."""

    @property
    def metadata(self) -> Meta:
        """Its metadata."""


T = TypeVar("T", bound=KubeObject)
T_contra = TypeVar("T_contra", bound=KubeObject, contravariant=True)


class EventHandler(Protocol[T_contra]):
    """Where a reflector's news go; called from the event loop, must not block."""

    def changed(self, obj: T_contra) -> None:
        """An object is new or has changed."""

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """An object that ``changed`` told of is no more."""


class Store(Generic[T]):
    """Tells a handler about objects, each change once."""

    def __init__(self, handler: EventHandler[T]) -> None:
        self._handler = handler
        self._known: dict[tuple[str, str], tuple[str, str]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def has(self, meta: Meta) -> bool:
        """Whether the handler knows an object in this version."""
        version = meta.resource_version
        return self._known.get((meta.namespace, meta.name)) == (meta.uid, version)

    def upsert(self, obj: T) -> None:
        """An object that exists now; one the handler has in this very version is not repeated."""
        meta = obj.metadata
        key = (sys.intern(meta.namespace), meta.name)
        known = self._known.get(key)
        if known is not None:
            if known[0] != meta.uid:
                self._gone(key, known[0])
            elif known[1] == meta.resource_version:
                return
        self._known[key] = (meta.uid, meta.resource_version)
        try:
            self._handler.changed(obj)
        except Exception:
            self._failed(key)

    def remove(self, meta: Meta) -> None:
        """An object that exists no more; nothing happens if the handler does not know it."""
        key = (meta.namespace, meta.name)
        known = self._known.get(key)
        if known is not None and known[0] == meta.uid:
            del self._known[key]
            self._gone(key, known[0])

    def replace(self, objects: Iterable[T], others: Iterable[Meta]) -> None:
        """Everything that exists now, in one go.

        Deletions are told first, and nothing else runs in between: a handler that counted a half
        told list would see two objects where one took the other's place, or neither.

        Args:
            objects: The complete list, but for the others.
            others: Objects that exist too, told already or not readable; the handler keeps what it
                has.
        """
        objects = list(objects)
        listed = {(m.namespace, m.name): m.uid for m in (obj.metadata for obj in objects)}
        listed.update({(m.namespace, m.name): m.uid for m in others})
        vanished = [key for key, (uid, _) in self._known.items() if listed.get(key) != uid]
        for key in vanished:
            uid, _ = self._known.pop(key)
            self._gone(key, uid)
        for obj in objects:
            self.upsert(obj)

    def _gone(self, key: tuple[str, str], uid: str) -> None:
        try:
            self._handler.gone(key[0], key[1], uid)
        except Exception:
            self._failed(key)

    def _failed(self, key: tuple[str, str]) -> None:
        unexpected(type(self._handler).__name__, "/".join(key))
