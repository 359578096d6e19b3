"""What nodes have and pods take beside GPUs, in words: the one table of it.

A row reads its amount off whatever has any (``Footprint``): a pod, a node, or what is free.
"""

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.resources import Footprint


class ResourceWords(NamedTuple):
    """One of them.

    Attributes:
        name: in sentences.
        amount: of whatever has any.
        needed: an amount that is needed, in words.
        there: an amount that is there, in words.
    """

    name: str
    amount: Callable[[Footprint], int]
    needed: Callable[[int], str]
    there: Callable[[int], str]


_OF_ALL = (
    ResourceWords("CPU", attrgetter("cpu_milli"), wording.cpu, wording.cpu),
    ResourceWords("memory", attrgetter("memory_bytes"), wording.memory, wording.room),
    ResourceWords("ephemeral storage", attrgetter("ephemeral_bytes"), wording.memory, wording.room),
)


def resources(of: Footprint) -> Iterator[ResourceWords]:
    """Those that every pod may take, then the scalars of this one; in the order of sentences."""
    yield from _OF_ALL
    for name, _ in of.scalars:
        said = partial(wording.scalar, name)
        yield ResourceWords(name, partial(_scalar, name), said, said)


def _scalar(name: str, of: Footprint) -> int:
    return next((amount for each, amount in of.scalars if each == name), 0)
