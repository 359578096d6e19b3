"""What a node has, and a pod takes, beside GPUs.

CPU, memory and storage of every node and pod; and *scalars*, as kube-scheduler calls all others
that are counted: hugepages, and what device plugins serve (RDMA, EFA, SR-IOV). Few nodes have any
and few pods ask for one, so they are pairs in the order of their names, without those of 0.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import add, sub
from typing import Protocol

from gpu_scheduler.core.vocabulary import Word

Scalars = tuple[tuple[Word, int], ...]
HUGEPAGES = "hugepages-"


def scalars_of(amounts: Mapping[str, int]) -> Scalars:
    """From amounts by name; those of 0 are none."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


class Footprint(Protocol):
    """What takes something of a node beside GPUs."""

    @property
    def cpu_milli(self) -> int:
        """Milli-CPU."""

    @property
    def memory_bytes(self) -> int:
        """Memory."""

    @property
    def ephemeral_bytes(self) -> int:
        """Ephemeral storage."""

    @property
    def scalars(self) -> Scalars:
        """All others that are counted."""


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Milli-CPU, bytes of memory and ephemeral storage, and scalars."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    ephemeral_bytes: int = 0
    scalars: Scalars = ()

    def __add__(self, other: "NodeResources") -> "NodeResources":
        """Both."""
        return self._with(other, add)

    def __sub__(self, other: "NodeResources") -> "NodeResources":
        """The rest."""
        return self._with(other, sub)

    def at_most(self, other: "NodeResources") -> "NodeResources":
        """The smaller of each."""
        return self._with(other, min)

    def at_least(self, other: "NodeResources") -> "NodeResources":
        """The larger of each."""
        return self._with(other, max)

    def _with(self, other: "NodeResources", each: Callable[[int, int], int]) -> "NodeResources":
        scalars: Scalars = ()
        if self.scalars or other.scalars:
            mine, theirs = dict(self.scalars), dict(other.scalars)
            names = mine.keys() | theirs.keys()
            scalars = scalars_of({n: each(mine.get(n, 0), theirs.get(n, 0)) for n in names})
        return NodeResources(
            each(self.cpu_milli, other.cpu_milli),
            each(self.memory_bytes, other.memory_bytes),
            each(self.ephemeral_bytes, other.ephemeral_bytes),
            scalars,
        )


NOTHING = NodeResources()


def resources_of(footprint: Footprint) -> NodeResources:
    """As one value, to count with."""
    return NodeResources(
        footprint.cpu_milli,
        footprint.memory_bytes,
        footprint.ephemeral_bytes,
        footprint.scalars,
    )
