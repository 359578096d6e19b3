"""What the owner of the cluster says about kinds of GPUs: names, prices, and counts on offer.

A device belongs to the class whose ``match`` is the longest that means its product; then the first
in order. Prices order devices only where every device has one: a device without a price is
neither cheap nor dear. Kept by the state, read by ``snapshot``; replaced as a whole when it
changes, never changed in place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpu_scheduler.core.products import means
from gpu_scheduler.core.vocabulary import Word


@dataclass(frozen=True, slots=True)
class GPUType:
    """A class of GPUs.

    Attributes:
        name: of the class.
        match: model, lower case, see ``products``; empty = every GPU.
        cost_micro: millionths of a currency unit per hour; None = not said.
        counts: how many whole GPUs a pod may have; empty = any number.
    """

    name: str
    match: Word
    cost_micro: int | None = None
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Classes of GPUs in order: earlier ones win where two match alike."""

    types: tuple[GPUType, ...] = ()
    _known: dict[str, GPUType | None] = field(default_factory=dict, compare=False, repr=False)

    def of(self, model: str) -> GPUType | None:
        """The class of a product; None when none matches."""
        if model not in self._known:
            fitting = [kind for kind in self.types if means(kind.match, model)]
            self._known[model] = max(fitting, key=lambda kind: len(kind.match), default=None)
        return self._known[model]

    def counts(self, model: str) -> tuple[int, ...]:
        """How many whole GPUs of a product a pod may have; empty = any number."""
        kind = self.of(model)
        return () if kind is None else kind.counts

    def ranks(self, devices: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Product and usable MiB of devices -> 1 for the cheapest, 2 for the next, and so on.

        By price where all have one, and by memory among equal ones; else by memory alone.
        """
        products = set(devices)
        prices = {model: self._price(model) for model, _ in products}
        if any(price is None for price in prices.values()):
            prices = dict.fromkeys(prices, 0)
        keys = {each: (prices[each[0]] or 0, each[1]) for each in products}
        order = {key: rank for rank, key in enumerate(sorted(set(keys.values())), 1)}
        return {each: order[key] for each, key in keys.items()}

    def _price(self, model: str) -> int | None:
        kind = self.of(model)
        return None if kind is None else kind.cost_micro


NO_CATALOGUE = Catalogue()


def either(counts: Sequence[int]) -> str:
    """'2', '2 or 4', '1, 2 or 4'."""
    *first, last = [str(count) for count in counts]
    return f"{', '.join(first)} or {last}" if first else last
