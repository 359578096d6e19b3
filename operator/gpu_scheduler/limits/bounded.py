"""What was worked out before, within a number of bytes that no text of anybody's can exceed.

``remembered`` is for functions of a few short texts that are asked all the time, ``Bounded`` for
all else that is worth keeping, with its size; ``Shared`` makes equal values one object and keeps
none of them. There is no other cache of what somebody says: ``functools.lru_cache`` knows a number
of entries, and a tenant chooses how large one is.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakValueDictionary

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")

_ENTRY_BYTES = 200  # of key, value and entry, beside what they hold
QUOTED_CHARS = 100  # at most, of a text that somebody else chose, in a sentence of ours


def remembered(most: int, *, chars: int = 128) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Remember the latest ``most`` results of a function whose arguments are texts.

    Not those of arguments that are longer than ``chars`` together: they are worked out each time.
    What a function makes of short texts has to be short itself.
    """

    def of(function: Callable[P, V]) -> Callable[P, V]:
        known: Any = lru_cache(maxsize=most)(function)

        @wraps(function)
        def call(*texts: P.args, **none: P.kwargs) -> V:
            if sum(map(len, texts)) > chars:  # type: ignore[arg-type]
                return function(*texts, **none)
            found: V = known(*texts)
            return found

        return call

    return of


def digest(*parts: object) -> bytes:
    """What tells texts apart, and tuples of them, however long they are."""
    text = repr(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


def quoted(text: object) -> str:
    """A text that somebody else chose, in quotes, cut where it is long."""
    said = str(text)
    return repr(said if len(said) <= QUOTED_CHARS else f"{said[: QUOTED_CHARS - 1]}…")


class Bounded(Generic[K, V]):
    """What was used lately, by key; the sizes are together at most ``most_bytes``.

    Keys are short, or digests.
    """

    def __init__(self, most_bytes: int) -> None:
        """Know nothing yet."""
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.most_bytes = most_bytes
        self.bytes = 0

    def __len__(self) -> int:
        """How many are known."""
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """What is known; it is the last to be forgotten now."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size: int = 0) -> None:
        """Keep a value for as long as there is room; ``size``: bytes that it holds."""
        self.pop(key)
        size += _ENTRY_BYTES
        if size > self.most_bytes:
            return
        self._entries[key] = value, size
        self.bytes += size
        while self.bytes > self.most_bytes:
            _, (_, freed) = self._entries.popitem(last=False)
            self.bytes -= freed

    def pop(self, key: K) -> V | None:
        """Forget one; what it was."""
        found = self._entries.pop(key, None)
        if found is None:
            return None
        self.bytes -= found[1]
        return found[0]


class Shared(Generic[V]):
    """Equal values as one object, for as long as anybody holds it."""

    def __init__(self) -> None:
        """There are none yet."""
        self._known: WeakValueDictionary[int, V] = WeakValueDictionary()

    def __len__(self) -> int:
        """How many are held."""
        return len(self._known)

    def same(self, value: V) -> V:
        """The object that all share who say the same."""
        key = hash(value)
        known = self._known.get(key)
        if known == value and known is not None:
            return known
        self._known[key] = value
        return value
