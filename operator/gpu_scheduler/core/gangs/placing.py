"""Places for all members of a gang at once, or none.

Members are put on the snapshot one by one, each on the best node for it, and taken off again: the
answer is a placement, the snapshot stays as it was. A gang that stays apart takes whole devices
while it is tried, so no two members meet on one. With a topology the domains are tried one by one,
those first that would have the least GPU left, then by name. Called by every step of the plan.
"""

from collections.abc import Container, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.departures import Locator
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.domains import Division
from gpu_scheduler.core.gangs.request import GangRequest, Member, Order
from gpu_scheduler.core.pools import Purse, Spending
from gpu_scheduler.core.quota import UNBOUNDED
from gpu_scheduler.core.request import Gang, PodUID, ProjectName
from gpu_scheduler.core.scores import Candidates
from gpu_scheduler.core.session import Session
from gpu_scheduler.core.snapshot import Picks

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Placement = list[tuple[Member, int, Choice]]  # member, node, devices

MOST_DOMAINS = 64  # tried for one gang: half with the least free GPU, half with the most


class Placer:
    """Tries gangs on the snapshot of one cycle."""

    def __init__(self, session: Session, locator: Locator) -> None:
        self._session, self._locator = session, locator
        self._snapshot, self._peers = session.snapshot, session.peers
        self._free: Ints | None = None  # milli per node, as of the first `_seen` changes
        self._seen = 0
        self._usable: dict[Demand, frozenset[int]] = {}

    def place(
        self,
        request: GangRequest,
        room_milli: int,
        barred: Flags | None = None,
        purse: Purse | None = None,
    ) -> Placement | None:
        """Places for all members on nodes that are not barred, for at most ``room_milli``.

        ``purse``: what they may cost by model; None = no matter.
        """
        if request.least_milli > room_milli:
            return None
        if purse is not None and purse.short_of(request.counts.items()):
            return None
        for mask in self.masks(request, barred):
            for order in request.orders:
                found = self._all(request.gang, order, room_milli, mask, purse)
                if found is not None:
                    return found
        return None

    def place_but_for_rules(self, request: GangRequest) -> Placement | None:
        """The same if pods had no rules about each other, whatever it costs."""
        peers, self._peers = self._peers, None
        found = self.place(request, UNBOUNDED)
        self._peers = peers
        return found

    def place_at(
        self,
        request: GangRequest,
        room_milli: int,
        nodes: Mapping[PodUID, int],
        purse: Purse | None = None,
    ) -> Placement | None:
        """The same, each member on a node of its own choice."""
        if any(pod.uid not in nodes for pod, _ in request.members):
            return None
        used = {nodes[pod.uid] for pod, _ in request.members}
        if not self._one_domain(request, used):
            return None
        snapshot, found, cost = self._snapshot, Placement(), 0
        mark, seats = snapshot.mark(), self._seats()
        spending = _spending(purse, request.members)
        self._keep_off(request.gang)
        for member in request.members:
            pod, demand = member
            node = nodes[pod.uid]
            choice = None
            if snapshot.cluster.nodes[node].name not in pod.avoid and (
                snapshot.has_room(node, demand.shape) and node in self._usable_by(demand)
            ):
                forbidden = self._forbidden(member)
                if forbidden is None or not forbidden[node]:
                    choice = demand.chooser.choose(node)
            cost += sum(pick[2] for pick in choice.picks) if choice else 0
            if choice is None or cost > room_milli or not _affords(spending, demand, choice):
                break
            self._take(request.gang, member, node, choice)
            found.append((member, node, choice))
        self._rollback(mark, seats)
        return found if len(found) == len(request.members) else None

    def most(self, request: GangRequest, barred: Flags | None = None) -> Placement:
        """As many members as find a place at once: in the domain where that is most GPU."""
        best: Placement = []
        for mask in self.masks(request, barred, hopeful=False):
            found = self._some(request.gang, request.members, mask)
            if (milli_of(found), len(found)) > (milli_of(best), len(best)):
                best = found
        return best

    def masks(
        self, request: GangRequest, barred: Flags | None, *, hopeful: bool = True
    ) -> Iterator[Flags | None]:
        """The nodes to leave out, one domain after the other; ``hopeful``: that may hold it."""
        topology = request.gang.topology
        if topology is None:
            yield barred
            return
        division = self._session.domains.by(topology.key)
        for domain in self._domains(request, division, barred, hopeful):
            outside: Flags = division.of_node != domain
            yield outside if barred is None else outside | barred
        if not topology.required:
            yield barred

    def allowed(self, request: GangRequest, division: Division) -> Container[int]:
        """The domains that members which run already leave to the others."""
        numbers = (self._locator.node(name) for name in request.gang.nodes)
        nodes = [n for n in numbers if n is not None]
        return division.values_at(nodes) if nodes else range(len(division.names))

    def nodes_of(self, request: GangRequest) -> Iterator[int]:
        """Nodes on which members that want GPUs could ever be; some come several times."""
        topology = request.topology
        division = self._session.domains.by(topology.key) if topology else None
        allowed = self.allowed(request, division) if division else ()
        for demand in request.counts:
            if not demand.least_milli:
                continue
            if division is None:
                yield from demand.could
            else:
                yield from (n for n in demand.could if int(division.of_node[n]) in allowed)

    def _usable_by(self, demand: Demand) -> frozenset[int]:
        nodes = self._usable.get(demand)
        if nodes is None:
            nodes = self._usable[demand] = frozenset(demand.usable)
        return nodes

    def _one_domain(self, request: GangRequest, nodes: set[int]) -> bool:
        topology = request.topology
        if topology is None:
            return True
        division = self._session.domains.by(topology.key)
        found = {int(division.of_node[n]) for n in nodes}
        allowed = self.allowed(request, division)
        return len(found) == 1 and all(domain in allowed for domain in found)

    def _domains(
        self, request: GangRequest, division: Division, barred: Flags | None, hopeful: bool
    ) -> list[int]:
        """Domains in which each member finds a node and the GPUs suffice in sum, tightest first."""
        size, allowed = len(division.names), self.allowed(request, division)
        inside = division.of_node >= 0
        if barred is not None:
            inside = inside & ~barred
        of_node = division.of_node[inside]
        free = np.bincount(of_node, weights=self._free_milli()[inside], minlength=size)
        fits = free >= (request.least_milli if hopeful else 0)
        for demand in request.counts if hopeful else ():
            open_nodes = self._session.table.open(demand)[inside]
            fits &= np.bincount(of_node[open_nodes], minlength=size) > 0
        order = np.argsort(free, kind="stable")
        found = [d for d in order[fits[order]].tolist() if d in allowed]
        if len(found) > MOST_DOMAINS:
            found = found[: MOST_DOMAINS // 2] + found[-(MOST_DOMAINS // 2) :]
        return found if hopeful else found[::-1][:8]

    def _free_milli(self) -> Ints:
        snapshot = self._snapshot
        if self._free is None:
            self._free = np.array(snapshot.node_free_milli, dtype=np.int64)
        else:
            for node in snapshot.changed[self._seen :]:
                self._free[node] = snapshot.node_free_milli[node]
        self._seen = len(snapshot.changed)
        return self._free

    def _all(
        self,
        gang: Gang,
        order: Order,
        room_milli: int,
        mask: Flags | None,
        purse: Purse | None,
    ) -> Placement | None:
        found = self._run(gang, order, room_milli, mask, purse, stop=True)
        return found if len(found) == len(order) else None

    def _some(self, gang: Gang, order: Order, mask: Flags | None) -> Placement:
        return self._run(gang, order, None, mask, None, stop=False)

    def _run(
        self,
        gang: Gang,
        order: Order,
        room_milli: int | None,
        mask: Flags | None,
        purse: Purse | None,
        *,
        stop: bool,
    ) -> Placement:
        """Members one by one; at the first without a place ``stop``, or go on with the next."""
        snapshot, found = self._snapshot, Placement()
        rest = sum(demand.least_milli for _, demand in order)
        hopeless: set[tuple[int, int, frozenset[str]]] = set()
        spending = _spending(purse, order)
        mark, seats = snapshot.mark(), self._seats()
        self._keep_off(gang)
        for member in order:
            pod, demand = member
            if (id(demand), id(pod.peers), pod.avoid) in hopeless:
                continue
            rest -= demand.least_milli
            table = Candidates(demand, snapshot, self._session.table, mask)
            limit = None if demand.exact or room_milli is None else room_milli - rest
            if spending is not None:
                spending.turn_of(demand)
            may = spending.may if spending is not None else None
            hit = table.best(pod.avoid, limit, may, self._forbidden(member))
            if hit is None:
                if stop:
                    break
                hopeless.add((id(demand), id(pod.peers), pod.avoid))
                continue
            if spending is not None:
                spending.spend(hit[1])
            if room_milli is not None:
                room_milli -= sum(pick[2] for pick in hit[1].picks)
            self._take(gang, member, *hit)
            found.append((member, *hit))
        self._rollback(mark, seats)
        return found

    def _forbidden(self, member: Member) -> Flags | None:
        """[nodes] Where a member may not go because of other pods."""
        return None if self._peers is None else self._peers.forbidden(*member)

    def _seats(self) -> int:
        """A point to which pods that are put on nodes can be taken off again."""
        return 0 if self._peers is None else self._peers.counts.mark()

    def _rollback(self, mark: int, seats: int) -> None:
        self._snapshot.rollback(mark)
        if self._peers is not None:
            self._peers.counts.rollback(seats)

    def _take(self, gang: Gang, member: Member, node: int, choice: Choice) -> None:
        picks = self._whole(choice.picks) if gang.distinct else choice.picks
        self._snapshot.take(node, member[1].shape, picks, _NOBODY, 0)
        if self._peers is not None:
            self._peers.add(member[0], node)

    def _whole(self, picks: Picks) -> Picks:
        """All that is free on the devices that are picked."""
        cluster = self._snapshot.cluster
        devices = {pick[1] for pick in picks}
        return tuple((0, d, cluster.free_milli[d], cluster.free_mib[d]) for d in devices)

    def _keep_off(self, gang: Gang) -> None:
        """Leave nothing on the devices of members that run."""
        if not gang.distinct or not gang.devices:
            return
        cluster = self._snapshot.cluster
        for name in gang.nodes:
            node = self._locator.node(name)
            if node is None:
                continue
            devices = range(cluster.first[node], cluster.first[node + 1])
            mine = [(0, d, 0, 0) for d in devices if cluster.dev_id[d] in gang.devices]
            self._snapshot.block(node, self._whole(tuple(mine)))


def _spending(purse: Purse | None, order: Order) -> Spending | None:
    return None if purse is None else purse.spending(demand for _, demand in order)


def _affords(spending: Spending | None, demand: Demand, choice: Choice) -> bool:
    """Whether the next member may have these devices, which it then has."""
    if spending is None:
        return True
    spending.turn_of(demand)
    affords = spending.may(choice)
    spending.spend(choice)
    return affords


def milli_of(placement: Placement) -> int:
    """What a placement costs."""
    return sum(pick[2] for _, _, choice in placement for pick in choice.picks)


_NOBODY = ProjectName("")
