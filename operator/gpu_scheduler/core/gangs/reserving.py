"""Where a gang fits soonest, once pods that run there have ended.

Pods are taken off the snapshot in the order in which they end, those without a time limit last and
from the nodes with the least to be freed first, until the whole gang fits. The search halves the
list, so it needs few trials. Called by ``reservation``.
"""

from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest

import numpy as np

from gpu_scheduler.core.departures import Departures, Locator
from gpu_scheduler.core.gangs.placing import Flags, Placement, Placer
from gpu_scheduler.core.gangs.request import GangRequest
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.pools import Purse
from gpu_scheduler.core.quota import UNBOUNDED
from gpu_scheduler.core.request import PodUID
from gpu_scheduler.core.snapshot import Snapshot

MOST_NODES = 256  # looked at for one gang, beside four per member
NEVER = float("inf")
Found = tuple[float, Placement]  # when, epoch seconds, and where


class Soonest:
    """Looks ahead on the snapshot of one cycle."""

    def __init__(
        self,
        snapshot: Snapshot,
        occupants: Occupants,
        departures: Departures,
        locator: Locator,
        placer: Placer,
        now: float,
    ) -> None:
        self._snapshot, self._occupants, self._departures = snapshot, occupants, departures
        self._locator, self._placer, self._now = locator, placer, now

    def anywhere(
        self, request: GangRequest, taken: Iterable[int], purse: Purse | None
    ) -> Found | None:
        """On any nodes but those that are taken by other reservations."""
        free = self._snapshot.node_free_milli
        taken = set(taken)
        open_nodes = {n for d in request.counts for n in d.usable if n not in taken}
        most = max(MOST_NODES, 4 * len(request.members))
        nodes = nlargest(most, open_nodes, key=lambda n: (free[n], -n))
        barred: Flags = np.zeros(len(self._snapshot.kind), dtype=np.bool_)
        barred[list(taken)] = True
        return self._search(nodes, lambda: self._placer.place(request, UNBOUNDED, barred, purse))

    def at(
        self, request: GangRequest, nodes: Mapping[PodUID, int], purse: Purse | None
    ) -> Found | None:
        """On the nodes chosen before, one for each member."""
        some = set(nodes.values())
        return self._search(some, lambda: self._placer.place_at(request, UNBOUNDED, nodes, purse))

    def _search(self, nodes: Iterable[int], fits: Callable[[], Placement | None]) -> Found | None:
        snapshot = self._snapshot
        mark = snapshot.mark()
        nodes = sorted(nodes)
        for node in nodes:
            self._departures.release(node)
        stayers = self._stayers(nodes)

        def after(count: int) -> Placement | None:
            before = snapshot.mark()
            for node, pod in stayers[:count]:
                snapshot.release(node, pod, self._locator.picks(pod), pod.project)
            found = fits()
            snapshot.rollback(before)
            return found

        count, best = fewest(len(stayers), after)
        snapshot.rollback(mark)
        if best is None:
            return None
        used = {node for _, node, _ in best}
        ends = [_end(pod) for node, pod in stayers[:count] if node in used]
        return max([self._now, *ends]), best

    def _stayers(self, nodes: Iterable[int]) -> list[tuple[int, Occupant]]:
        names, going = self._snapshot.cluster.nodes, self._departures.pods
        on = {
            n: [pod for pod in self._occupants.on(names[n].name) if pod.uid not in going]
            for n in nodes
        }
        held = {n: sum(pod.milli for pod in pods) for n, pods in on.items()}
        found = [(n, pod) for n, pods in on.items() for pod in pods]
        return sorted(found, key=lambda e: (_end(e[1]), held[e[0]], e[0], e[1].since, e[1].uid))


def fewest(most: int, fits: Callable[[int], Placement | None]) -> tuple[int, Placement | None]:
    """The least count up to ``most`` for which there is a placement, by halving, and that one."""
    found = fits(0)
    if found is not None or most == 0:
        return 0, found
    best = fits(most)
    if best is None:
        return most, None
    low, high = 0, most  # does not fit with low, fits with high
    while high - low > 1:
        middle = (low + high) // 2
        found = fits(middle)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return high, best


def _end(pod: Occupant) -> float:
    return NEVER if pod.ends is None else pod.ends
