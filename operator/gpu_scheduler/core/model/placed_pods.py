"""The pods that are on nodes, ours and others', as far as rules about other pods ask.

A protocol: the state keeps the counts up to date (``state.affinity.placed_pods``), tests count by
hand. Read by ``affinity.masks``; stands on the ``Cluster``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gpu_scheduler.core.model.affinity import AffinityInfo, AffinityTerm, Selectors
from gpu_scheduler.core.model.request import PodUID


@runtime_checkable
class PlacedPods(Protocol):
    """The pods that are on nodes, ours and others', as far as rules ask about them."""

    def count(self, selectors: Selectors, *, staying: bool) -> Mapping[str, int] | None:
        """How many of the pods are on each node, by its name; those that are ending, if asked for.

        None: too much was asked at once, and that is known in the next cycle only.
        """

    def anti_affinity_pods(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        """Required anti-affinity of pods on nodes: how many pods of each node bear each term."""

    def about(self, affinity: AffinityInfo) -> Iterable[AffinityTerm]:
        """Those of the pods' terms that select such a pod and bind it."""

    def binds(self, term: AffinityTerm, affinity: AffinityInfo) -> bool:
        """Whether a pod with the term may keep away such a pod at all."""

    def of(self, pod: PodUID) -> AffinityInfo | None:
        """Who a pod on a node is; None when it is unknown."""


@dataclass(frozen=True, slots=True)
class Nobody:
    """No pods."""

    def count(self, selectors: Selectors, *, staying: bool) -> Mapping[str, int] | None:
        """See ``PlacedPods``."""
        return {}

    def anti_affinity_pods(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        """See ``PlacedPods``."""
        return {}

    def about(self, affinity: AffinityInfo) -> Iterable[AffinityTerm]:
        """See ``PlacedPods``."""
        return ()

    def binds(self, term: AffinityTerm, affinity: AffinityInfo) -> bool:
        """See ``PlacedPods``."""
        return True

    def of(self, pod: PodUID) -> AffinityInfo | None:
        """See ``PlacedPods``."""
        return None


NOBODY_NEAR = Nobody()
