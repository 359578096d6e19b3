"""The topology domains in which a group may be placed: which, and in what order.

A domain is given by the nodes that are left out. Those come first that would have the least GPU
left, then by name.
"""

from collections.abc import Container, Iterator

import numpy as np

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.nodes.topology import Division
from gpu_scheduler.core.queue.pod_group import PodGroup

MOST_DOMAINS = 64  # tried for one gang: half with the least free GPU, half with the most


class GroupDomains:
    """The domains of one cycle, for groups."""

    def __init__(self, session: PlannerCache) -> None:
        self._session = session
        self._snapshot = session.snapshot
        self._free: Ints | None = None  # milli per node, as of the first `_seen` changes
        self._seen = 0

    def masks(
        self, group: PodGroup, barred: Flags | None, *, hopeful: bool = True
    ) -> Iterator[Flags | None]:
        """The nodes to leave out, one domain after the other; ``hopeful``: that may hold it."""
        topology = group.needs.gang.topology
        if topology is None:
            yield barred
            return
        division = self._session.domains.by(topology.key)
        for domain in self._domains(group, division, barred, hopeful):
            outside: Flags = division.of_node != domain
            yield outside if barred is None else outside | barred
        if not topology.required:
            yield barred

    def allowed(self, group: PodGroup, division: Division) -> Container[int]:
        """The domains that members which run already leave to the others."""
        nodes = self._snapshot.numbers_of(group.needs.gang.nodes)
        return division.values_at(nodes) if nodes else range(len(division.names))

    def inside(self, group: PodGroup, nodes: Flags) -> Flags:
        """Those of some nodes that are in a domain in which the group may be."""
        topology = group.needs.topology
        if topology is None:
            return nodes
        division = self._session.domains.by(topology.key)
        allowed = self.allowed(group, division)
        found: Flags = nodes & np.isin(
            division.of_node, [d for d in range(len(division.names)) if d in allowed]
        )
        return found

    def refusal(self, group: PodGroup) -> str:
        """Why its members can never be together on these nodes; empty when they may."""
        return self._session.possible.refusal(group.needs, self._left(group))

    def kept_apart(self, group: PodGroup) -> bool:
        """Of a group that is refused: whether it is for no two members sharing a GPU."""
        return self._session.possible.kept_apart(group.needs, self._left(group))

    def hold_all(self, group: PodGroup, nodes: set[int]) -> bool:
        """Whether these nodes are in one domain, if they have to be."""
        topology = group.needs.topology
        if topology is None:
            return True
        division = self._session.domains.by(topology.key)
        found = {int(division.of_node[n]) for n in nodes}
        allowed = self.allowed(group, division)
        return len(found) == 1 and all(domain in allowed for domain in found)

    def _left(self, group: PodGroup) -> list[int] | None:
        """The only domains that come into question; None: all."""
        topology = group.needs.topology
        if topology is None or not group.needs.gang.nodes:
            return None
        division = self._session.domains.by(topology.key)
        allowed = self.allowed(group, division)
        return [d for d in range(len(division.names)) if d in allowed]

    def _domains(
        self, group: PodGroup, division: Division, barred: Flags | None, hopeful: bool
    ) -> list[int]:
        """Domains in which each member finds a node and the GPUs suffice in sum, tightest first."""
        size, allowed = len(division.names), self.allowed(group, division)
        inside = division.of_node >= 0
        if barred is not None:
            inside = inside & ~barred
        of_node = division.of_node[inside]
        free = np.bincount(of_node, weights=self._free_milli()[inside], minlength=size)
        suffices = hopeful and group.needs.exact  # of requests in MiB, milli say nothing
        fits = free >= (group.needs.least_milli if suffices else 0)
        for pod_request in group.needs.counts if hopeful else ():
            open_nodes = self._session.table.open(pod_request)[inside]
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
