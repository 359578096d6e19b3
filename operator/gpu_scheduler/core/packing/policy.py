"""The packing policies and their constants: all that a new policy needs is said here.

``Packing`` is the only list of them: settings, the chart's schema, its comments, the help of
``--policy`` and the table of docs/packing.md are made from it (``make reference``). ``scoring``
turns what a policy says into keys. numpy is not imported with this module: help of commands is
made from it.

``fragmentation`` is the default. ``fgd`` and ``best-fit`` score like the baselines of "Beware of
Fragmentation" (Weng et al., USENIX ATC 2023), and ``fgd`` like the simulator published with it:
the change of fragmentation in whole points of a sigmoid, and of nodes with equal points the first
in a random order. docs/packing.md holds both against the published values, and says where the
constants come from.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from gpu_scheduler.core.model.arrays import Ints

BUCKET_MILLI = 40
"""Scores closer than this are equal, and best fit decides: a finer score follows noise."""

COPIES_PERCENT = 8
"""Part of the copies term in the score; the rest is fragmentation."""

OPENING_MILLI = 1000
"""What it costs to take part of a GPU that is free while another node may have one in use: as
much as that GPU, whatever pods are typical. On a scarce node any part of a GPU costs as much, or
fractions would fill what is in use there rather than open a GPU of a node that nobody misses.
It is so many whole buckets."""

COVER_PERCENT = 95
"""Share of recent pods that the typical pod shapes stand for, as in FGD."""

WEIGHT = 10_000
"""The weights of the typical pod shapes sum to this."""

UNIT = 100 * WEIGHT
"""Costs are kept in this part of a milli-GPU, so that they stay integers."""

SCALE = 1 << 17
"""Parts of the largest node in which a score says how much of it is left."""


@dataclass(slots=True)
class ScoringInput:
    """Placements that are possible, one per row, as far as a policy may look at them.

    Attributes:
        cpu: milli-CPU left on the node.
        total: milli-GPU free on the node before.
        taken: milli-GPU that the pod takes.
        takes_gpu: 1 where the pod takes a device, else 0.
        node_gpu: milli-GPU that nodes of this shape have.
        most_gpu: the same of the largest node; so ``most_cpu``.
        paid: milli-GPU to pay for the node's scarcity; None where no node is scarce.
        growth: by how much the cost of the node grows with so many percent of copies, in UNITs;
            only for a policy that ``weighs``.
    """

    cpu: "Ints"
    total: "Ints | int"
    taken: "Ints | int"
    takes_gpu: "Ints | int"
    node_gpu: int
    most_gpu: int
    most_cpu: int
    paid: "Ints | None"
    growth: "Callable[[int], Ints]"

    @property
    def gpu(self) -> "Ints | int":
        """Milli-GPU left on the node."""
        return self.total - self.taken


class Policy:
    """How one policy scores; what it leaves as it is here is best fit among equals.

    Attributes:
        does: what it does, for the chart and docs/packing.md.
        take_it_when: for docs/packing.md; empty: no operator runs by it, only ``--policy``.
        weighs: whether it asks for the growth of a node's cost.
        shares_first: whether a pod takes part of a free GPU only if none in use on the node
            holds it, and pays ``OPENING_MILLI`` where it does.
        emptiest: whether among equals the emptiest device and node come first, not the fullest.
        ties_by_order: whether of nodes with equal scores the first is taken, whatever is left.
    """

    does: ClassVar = ""
    take_it_when: ClassVar = ""
    weighs: ClassVar = False
    shares_first: ClassVar = False
    emptiest: ClassVar = False
    ties_by_order: ClassVar = False

    def bucket(self, after: ScoringInput) -> "Ints":
        """[placements] The score, less is better: between -2**19 and 2**19."""
        raise NotImplementedError


class Fragmentation(Policy):
    """Least growth of free GPU that typical pods cannot use, and what scarce nodes cost."""

    does = "keeps free GPU in pieces that the pods usual in this cluster can use"
    take_it_when = "always, unless you know better"
    weighs = True
    shares_first = True

    def bucket(self, after: ScoringInput) -> "Ints":
        """In whole buckets of milli-GPU; without a GPU none, so the least free GPU decides."""
        cost = after.growth(COPIES_PERCENT)
        if after.paid is not None:
            cost += after.paid * UNIT
        return cost // (BUCKET_MILLI * UNIT) * after.takes_gpu


class BestFit(Policy):
    """Least CPU and GPU left on the node, each as a share of the largest node."""

    does = "fills the node with the least CPU and GPU left"
    take_it_when = "you want the textbook rule"

    def bucket(self, after: ScoringInput) -> "Ints":
        """In parts of 1/SCALE."""
        cpu = after.cpu * SCALE // max(1, after.most_cpu)
        return cpu + after.gpu * SCALE // max(1, after.most_gpu)


class Spread(Policy):
    """Most GPU left on the node, most left on the device; of pods without one, most CPU."""

    does = "takes the emptiest node and the emptiest GPU"
    take_it_when = "pods disturb each other, and there is room"
    emptiest = True

    def bucket(self, after: ScoringInput) -> "Ints":
        """In parts of 1/SCALE: of the node's own GPUs, of the largest node's CPU."""
        gpu = after.gpu * SCALE // max(1, after.node_gpu)
        cpu = after.cpu * SCALE // max(1, after.most_cpu)
        return -gpu * after.takes_gpu - cpu * (1 - after.takes_gpu)


class FGD(Policy):
    """Fragmentation Gradient Descent as published.

    It knows no best fit between nodes, only their order. That decides which models are used up:
    best fit fills small nodes first, and the scarce models are there.
    """

    weighs = True
    ties_by_order = True

    def bucket(self, after: ScoringInput) -> "Ints":
        """In points of a sigmoid."""
        return sigmoid_points(after.growth(0) // 100)


def sigmoid_points(growth: "Ints") -> "Ints":
    """Points lost by a growth of F (milli-GPU times WEIGHT): 0 best, 100 worst."""
    import numpy as np

    points = 100.0 / (1.0 + np.exp(growth / (1000.0 * WEIGHT)))
    found: Ints = 100 - points.astype(np.int64)
    return found


class Packing(StrEnum):
    """How a node and its devices are chosen among those that fit; the default first."""

    policy: Policy

    def __new__(cls, name: str, *policy: Policy) -> Self:
        """A member: its name, and its policy; a value that is looked up: the name alone."""
        self = str.__new__(cls, name)
        self._value_ = name
        (self.policy,) = policy
        return self

    FRAGMENTATION = "fragmentation", Fragmentation()
    BEST_FIT = "best-fit", BestFit()
    SPREAD = "spread", Spread()
    FGD = "fgd", FGD()


OFFERED = tuple(packing.value for packing in Packing if packing.policy.take_it_when)
"""Those by which an operator may run."""
