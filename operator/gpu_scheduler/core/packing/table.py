"""A table of keys, pod kinds by nodes, in which only what changed is scored again.

Each pod kind that was asked about has a row. When a node changes its column is worked out for all
rows at once, and remembered by the node's state: in a cluster of equal nodes most states have been
seen before. Invariant: after ``best`` the least key of a row is what a full scan would choose.
Called by ``scores``.
"""

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.demand import Demand
from gpu_scheduler.core.model.devices import Choice
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.classes import PICKED
from gpu_scheduler.core.packing.column import Column
from gpu_scheduler.core.packing.kinds import KindScores
from gpu_scheduler.core.packing.mix import Mix
from gpu_scheduler.core.packing.node_columns import Store
from gpu_scheduler.core.packing.outcome import Picked
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.row import row_keys
from gpu_scheduler.core.packing.rows import Rows
from gpu_scheduler.core.packing.scarcity import scarcity_milli
from gpu_scheduler.core.packing.scoring import Scoring

_MOST_STATES = 20_000  # remembered columns
_MOST_ROWS = 256  # kept between cycles
_ROW_CHUNK = 2_000  # nodes scored together: bounds the memory of one step


class ScoreTable:
    """Keys of the pod kinds asked about, on all nodes of a snapshot."""

    def __init__(self, snapshot: Snapshot, packing: Packing, mix: Mix) -> None:
        self._snapshot = snapshot
        cluster = snapshot.cluster
        self._scoring = Scoring(
            packing,
            max((node.cpu_milli for node in cluster.nodes), default=0),
            max((len(kind) for kind in snapshot.kinds), default=0) * DEVICE_MILLI,
        )
        self._kinds = [KindScores(kind, mix, self._scoring) for kind in snapshot.kinds]
        if packing is Packing.FRAGMENTATION:
            self._scarce = scarcity_milli(mix, snapshot)
        else:
            self._scarce = np.zeros(len(cluster.nodes), dtype=np.int64)
        self._scarce_of: list[int] = self._scarce.tolist()
        self._mirror = Store(snapshot, [kind.alike for kind in self._kinds])
        self._rows = Rows(snapshot, self._scarce, self._kinds)
        self._columns: dict[tuple[object, ...], Ints] = {}
        self._seen = len(snapshot.changed)

    def best(self, demand: Demand, barred: Flags | None = None) -> tuple[int, Choice] | None:
        """The best node that is not barred and its devices; None when the pod fits nowhere now."""
        row = self._row(demand)
        if not len(row):
            return None
        if barred is not None:
            row = np.where(barred, keys.BLOCKED, row)
        node = self._scoring.first(row)
        key = int(row[node])
        if key == keys.BLOCKED:
            return None
        chooser = demand.chooser
        at = self._rows.at[demand]
        alone = self._rows.alone(self._snapshot.kind[node], at)
        if alone and node not in self._mirror.irregular:
            choice = chooser.choose(node, self._scoring.left_of(key))
        else:
            choice = chooser.choose(node)
        assert choice is not None  # the key is fresh
        return node, choice

    def open(self, demand: Demand) -> Flags:
        """[nodes] Whether a pod fits on them now."""
        found: Flags = self._row(demand) != keys.BLOCKED
        return found

    def renew(self) -> None:
        """A new cycle begins: score what changed, and drop rows nobody asked for if many are."""
        if self._rows.trim(_MOST_ROWS):
            self._columns.clear()
        self._catch_up()
        self._seen = 0  # the session clears the list of changes

    def _row(self, demand: Demand) -> Ints:
        self._catch_up()
        at = self._rows.at.get(demand)
        if at is None:
            at = self._rows.add(demand)
            self._columns.clear()
            self._fill(at, demand)
        self._rows.used.add(demand)
        found: Ints = self._rows.keys[at]
        return found

    def _catch_up(self) -> None:
        changed = self._snapshot.changed
        if self._seen == len(changed):
            return
        recent = changed[self._seen :]
        self._seen = len(changed)
        rows = self._rows
        for node in recent if len(recent) == 1 else dict.fromkeys(recent):
            self._mirror.changed(node)
            if rows.count:
                rows.keys[: rows.count, node] = rows.admit(node, self._column(node))

    def _column(self, node: int) -> Ints:
        mirror, kind = self._mirror, self._snapshot.kind[node]
        if node in mirror.irregular:
            return self._scored(node, self._rows.column_picked(kind))
        state = (kind, self._scarce_of[node], mirror.of(node))
        column = self._columns.get(state)
        if column is None:
            if len(self._columns) >= _MOST_STATES:
                self._columns.clear()
            column = self._columns[state] = self._scored(node, self._rows.column(kind))
        return column

    def _scored(self, node: int, column: Column) -> Ints:
        """The keys of all pod kinds on one node, whether they may go there or not."""
        cpu, free = self._mirror.of(node)
        picked = [
            placement
            for at, row in column.look.hard
            if (placement := self._picked(at, self._rows.demands[row], node)) is not None
        ]
        return column.keys(list(free), cpu, self._scarce_of[node], picked)

    def _fill(self, at: int, demand: Demand) -> None:
        """The new row, node by node of each kind."""
        rows, mirror = self._rows, self._mirror
        row = rows.keys[at]
        row[:] = keys.BLOCKED
        usable, regular = rows.usable[at], mirror.regular()
        for kind, members in enumerate(mirror.members):
            asks = rows.asks(kind, at)
            for begin in range(0, len(members), _ROW_CHUNK):
                nodes = members[begin : begin + _ROW_CHUNK]
                nodes = nodes[usable[nodes] & regular[nodes]]
                hard = asks[0] == PICKED
                picked = self._picked_on(nodes, demand) if hard else ([], [])
                if len(nodes) and (picked[0] or not hard):
                    scarce = np.maximum(0, self._scarce[nodes] - rows.least_scarce[at])
                    states = (*mirror.of_many(kind, nodes), scarce)
                    cpu_milli = demand.pod_kind.cpu_milli
                    row[nodes] = row_keys(self._kinds[kind], asks, cpu_milli, states, picked)
        for node in np.flatnonzero(usable & ~regular).tolist():
            row[node] = self._scored(node, rows.column_picked(self._snapshot.kind[node]))[at]
        rows.admit_row(at, mirror)

    def _picked_on(self, nodes: Ints, demand: Demand) -> tuple[list[Picked], list[tuple[int, int]]]:
        """The same on regular nodes of one kind; those in the same state share the placement."""
        known: dict[tuple[int, tuple[int, ...]], int] = {}
        found: list[Picked] = []
        where: list[tuple[int, int]] = []
        for number, node in enumerate(nodes.tolist()):
            state = self._mirror.of(node)
            which = known.get(state)
            if which is None:
                placement = self._picked(0, demand, node)
                which = known[state] = -1 if placement is None else len(found)
                if placement is not None:
                    found.append(placement)
            if which >= 0:
                where.append((number, which))
        return found, where

    def _picked(self, at: int, demand: Demand, node: int) -> Picked | None:
        snapshot, pod_kind = self._snapshot, demand.pod_kind
        if not pod_kind.devices or snapshot.cluster.free_cpu_milli[node] < pod_kind.cpu_milli:
            return None
        choice = demand.chooser.choose(node)
        if choice is None:
            return None
        base = snapshot.cluster.first[node]
        free = snapshot.cluster.free_milli[base : snapshot.cluster.first[node + 1]]
        for _, device, milli, _ in choice.picks:
            free[device - base] -= milli
        size = self._rows.rank_of(choice)
        return Picked(at, free, choice.left_milli, size)
