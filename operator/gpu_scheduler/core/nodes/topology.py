"""The topology domains of a cluster: nodes that share the value of a label.

Worked out once per label key and kept as long as the nodes stay. A key may divide the nodes into
a few zones or into one domain per node, so a division is an array, never a list of flags per
domain.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from gpu_scheduler.core.model.arrays import Ints
from gpu_scheduler.core.model.cluster import NodeInfo

NONE = -1  # the domain of a node without the label


@dataclass(frozen=True, slots=True)
class Division:
    """``names`` in order; ``of_node[n]`` is an index into them, or ``NONE``."""

    key: str
    names: tuple[str, ...]
    of_node: Ints

    def values_at(self, nodes: Iterable[int]) -> frozenset[int]:
        """The domains of some nodes."""
        return frozenset(int(self.of_node[n]) for n in nodes) - {NONE}

    @property
    def word(self) -> str:
        """What a domain is called in a sentence: 'zone' for 'topology.kubernetes.io/zone'."""
        return self.key.rsplit("/", 1)[-1]


class Domains:
    """The divisions of one list of nodes."""

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._known: dict[str, Division] = {}

    def by(self, key: str) -> Division:
        """The nodes divided by a label key; without domains when no node bears it."""
        division = self._known.get(key)
        if division is None:
            values = [node.labels.get(key) for node in self._nodes]
            names = sorted({value for value in values if value is not None})
            number: dict[str | None, int] = {name: i for i, name in enumerate(names)}
            of_node = np.array([number.get(value, NONE) for value in values], dtype=np.int64)
            division = self._known[key] = Division(key, tuple(names), of_node)
        return division

    def alike(self, key: str) -> list[str]:
        """Label keys that nodes do bear and that somebody may have meant."""
        keys = sorted({each for node in self._nodes for each in node.labels})
        last = key.rsplit("/", 1)[-1]
        same = [each for each in keys if each.rsplit("/", 1)[-1] == last]
        by_end = {each.rsplit("/", 1)[-1]: each for each in keys}
        close = get_close_matches(key, keys, cutoff=0.8) + [
            by_end[end] for end in get_close_matches(last, list(by_end))
        ]
        return list(dict.fromkeys(same + close))
