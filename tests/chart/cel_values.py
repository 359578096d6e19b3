"""What expressions of CEL may be, and what they cost, as far as a request decides it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression may be.

    Attributes:
        paths: parts of the request that it may be.
        over: lists whose entries it has, or counts.
        items: what its entries are, where it is a list that was made.
        written: entries that are written down.
        length: characters of a literal text.
        known: whether it is true, where that is known.
        counts: it is how many entries or characters something has: "one", or "all" there are.
    """

    paths: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()
    items: "Value | None" = None
    written: int = 0
    length: int = 0
    known: bool | None = None
    counts: str = ""

    def __or__(self, other: "Value") -> "Value":
        both = (self.items, other.items)
        items = both[0] | both[1] if both[0] and both[1] else both[0] or both[1]
        return Value(
            self.paths | other.paths,
            self.over | other.over,
            items,
            self.written + other.written,
            max(self.length, other.length),
            None,
            self.counts or other.counts,
        )

    @property
    def entry(self) -> "Value":
        """What an entry of it is."""
        inside = at(*(f"{path}[]" for path in self.paths))
        return inside if self.items is None else inside | self.items if self.paths else self.items


def at(*paths: str) -> Value:
    return Value(frozenset(paths), frozenset(paths))


NOTHING = Value()


@dataclass(slots=True)
class Cost:
    """Units: in any case, for each entry of a list, and for each character of a text."""

    units: float = 0.0
    entries: dict[str, float] = field(default_factory=dict)
    texts: dict[str, float] = field(default_factory=dict)

    def add(self, other: "Cost") -> None:
        self.units += other.units
        for mine, theirs in ((self.entries, other.entries), (self.texts, other.texts)):
            for path, factor in theirs.items():
                mine[path] = mine.get(path, 0.0) + factor

    def either(self, one: "Cost", other: "Cost") -> None:
        """Add the larger of both."""
        self.add(
            Cost(
                max(one.units, other.units),
                larger(one.entries, other.entries),
                larger(one.texts, other.texts),
            )
        )


def larger(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {path: max(one.get(path, 0), other.get(path, 0)) for path in one.keys() | other.keys()}
