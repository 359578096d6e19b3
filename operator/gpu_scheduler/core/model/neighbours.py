"""The pods that are on nodes, ours and others', as far as rules about other pods ask.

A protocol: the state keeps the counts up to date (``state.affinity.neighbours``), tests count by
hand. Read by ``peer_masks``; stands on the ``Cluster``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gpu_scheduler.core.model.peers import AffinityTerm, PodPeers, Selectors
from gpu_scheduler.core.model.request import PodUID


class Neighbours(Protocol):
    """The pods that are on nodes, ours and others', as far as rules ask about them."""

    def count(self, selectors: Selectors, *, staying: bool) -> Mapping[str, int] | None:
        """How many of the pods are on each node, by its name; those that are ending, if asked for.

        None: too much was asked at once, and that is known in the next cycle only.
        """

    def bearers(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        """Required anti-affinity of pods on nodes: how many pods of each node bear each term."""

    def about(self, peers: PodPeers) -> Iterable[AffinityTerm]:
        """Those of the bearers' terms that select such a pod and bind it."""

    def binds(self, term: AffinityTerm, peers: PodPeers) -> bool:
        """Whether a bearer of the term may keep away such a pod at all."""

    def of(self, pod: PodUID) -> PodPeers | None:
        """Who a pod on a node is; None when it is unknown."""


@dataclass(frozen=True, slots=True)
class Nobody:
    """No pods."""

    def count(self, selectors: Selectors, *, staying: bool) -> Mapping[str, int] | None:
        """See ``Neighbours``."""
        return {}

    def bearers(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        """See ``Neighbours``."""
        return {}

    def about(self, peers: PodPeers) -> Iterable[AffinityTerm]:
        """See ``Neighbours``."""
        return ()

    def binds(self, term: AffinityTerm, peers: PodPeers) -> bool:
        """See ``Neighbours``."""
        return True

    def of(self, pod: PodUID) -> PodPeers | None:
        """See ``Neighbours``."""
        return None


NOBODY_NEAR = Nobody()
