"""Which objects of a list are other ones than before, told by the objects themselves.

As lists go that are kept in order, where some leave and others join: one comparison for each that
stays. Whatever the order is, the answer is right.
"""

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

AHEAD = 16  # that may have left between two that stay; more cost a look-up each


def changes(before: Sequence[Item], now: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Those that are gone, and those that are new."""
    gone: list[Item] = []
    new: list[Item] = []
    at, end = 0, len(before)
    for item in now:
        if at < end and before[at] is item:
            at += 1
            continue
        for n in range(at + 1, min(at + AHEAD, end)):
            if before[n] is item:
                gone += before[at:n]
                at = n + 1
                break
        else:
            new.append(item)
    gone += before[at:]
    both = {id(item) for item in gone} & {id(item) for item in new} if gone and new else ()
    if both:  # they stay, in another order
        gone = [item for item in gone if id(item) not in both]
        new = [item for item in new if id(item) not in both]
    return gone, new
