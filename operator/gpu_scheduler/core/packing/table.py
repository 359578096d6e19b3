"""A table of keys, pod shapes by nodes, in which only what changed is scored again.

Each pod shape that was asked about has a row. When a node changes its column is worked out for all
rows at once, and remembered by the node's state: in a cluster of equal nodes most states have been
seen before. Where nodes differ, the states that the next placements would leave are worked out
together with one that is missing; whether they come changes no key. Invariant: after ``best`` the
least key of a row is what a full scan would choose. Called by ``scores``.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.column import column_of, columns_of
from gpu_scheduler.core.packing.load import NEVER
from gpu_scheduler.core.packing.node_columns import Exact, FreeColumns, MemoryRequests
from gpu_scheduler.core.packing.outcome import AllocationOutcome
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.row import row_of
from gpu_scheduler.core.packing.rows import Rows
from gpu_scheduler.core.packing.scarcity import scarcity_milli
from gpu_scheduler.core.packing.scoring import Scoring
from gpu_scheduler.core.packing.several import UNSURE, best_fit, swapped
from gpu_scheduler.core.packing.shapes import BY_CHOOSER, PICKED, ShapeScores
from gpu_scheduler.core.packing.states import States
from gpu_scheduler.core.packing.target_workload import TargetWorkload

_MOST_STATES = 20_000  # remembered columns
_MOST_ROWS = 256  # kept between cycles
_FEW = 500  # nodes that are scored one by one, though they may be alike
_ROW_CHUNK = 2_000  # nodes scored together: bounds the memory of one step
_COLUMN_CHUNK = 250
_AHEAD = 16  # columns worked out before they are asked for, at most

# Looking ahead goes on as long as two of three columns so found are asked for: each costs credit,
# and those asked for earn more. One that is missing earns a little, so that it is tried again.
_COST_OF_LOOKING = 2
_COST, _EARNED, _EARNED_MISSING, _LOOK_FROM, _MOST_CREDIT = 32, 48, 1, 256, 2048

# What of a node decides its keys: kind, scarcity, free milli-CPU and free milli of the devices.
# Of irregular nodes also what is exactly free on each.
State = tuple[int, int, int, tuple[int, ...], Exact]


class ScoreTable:
    """Keys of the pod shapes asked about, on all nodes of a snapshot."""

    def __init__(self, snapshot: Snapshot, packing: Packing, workload: TargetWorkload) -> None:
        self._snapshot = snapshot
        cluster = snapshot.cluster
        self._scoring = Scoring(
            packing,
            max((node.cpu_milli for node in cluster.nodes), default=0),
            max((len(shape) for shape in snapshot.node_shapes), default=0) * DEVICE_MILLI,
        )
        self._shapes = [
            ShapeScores(shape, workload, self._scoring) for shape in snapshot.node_shapes
        ]
        if packing is Packing.FRAGMENTATION:
            self._scarce = scarcity_milli(workload, snapshot)
        else:
            self._scarce = np.zeros(len(cluster.nodes), dtype=np.int64)
        self._scarce_of: list[int] = self._scarce.tolist()
        self._mirror = FreeColumns(snapshot, [shape.alike for shape in self._shapes])
        self._rows = Rows(snapshot, self._scarce, self._shapes)
        self._enough_cpu: list[int] = []  # by kind: more makes no difference to any row
        self._columns: dict[State, Ints] = {}
        self._foreseen: set[State] = set()  # worked out ahead, and not asked for yet
        self._credit = 0  # for looking ahead: earned by columns that were there, spent on others
        self._seen = len(snapshot.changed)

    def best(
        self, pod_request: PodRequest, barred: Flags | None = None
    ) -> tuple[int, NodeAllocation] | None:
        """The best node that is not barred and its devices; None when the pod fits nowhere now."""
        row = self._row(pod_request)
        if not len(row):
            return None
        if barred is not None:
            row = np.where(barred, keys.BLOCKED, row)
        node = self._scoring.first(row)
        key = int(row[node])
        if key == keys.BLOCKED:
            return None
        chooser = pod_request.chooser
        at = self._rows.at[pod_request]
        alone = self._rows.alone(self._snapshot.node_shape[node], at)
        if alone and not self._mirror.is_irregular(node, pod_request.pod_shape.devices):
            choice = chooser.choose(node, self._scoring.left_of(key))
        else:
            choice = chooser.choose(node)
        assert choice is not None  # the key is fresh
        return node, choice

    def open(self, pod_request: PodRequest) -> Flags:
        """[nodes] Whether a pod fits on them now."""
        found: Flags = self._row(pod_request) != keys.BLOCKED
        return found

    def renew(self) -> None:
        """A new cycle begins: score what changed, and drop rows nobody asked for if many are."""
        if self._rows.trim(_MOST_ROWS):
            self._mirror.look_at(MemoryRequests.of(self._rows.by_memory.values()))
            self._forget()
        self._catch_up()
        self._seen = 0  # the session clears the list of changes
        self._credit = 0

    def _row(self, pod_request: PodRequest) -> Ints:
        self._catch_up()
        at = self._rows.at.get(pod_request)
        if at is None:
            at = self._rows.add(pod_request)
            self._mirror.look_at(MemoryRequests.of(self._rows.by_memory.values()))
            self._forget()
            self._fill(at, pod_request)
        used = self._rows.used
        used.pop(pod_request, None)
        used[pod_request] = None
        found: Ints = self._rows.keys[at]
        return found

    def _catch_up(self) -> None:
        changed = self._snapshot.changed
        if self._seen == len(changed):
            return
        recent = changed[self._seen :]
        self._seen = len(changed)
        if len(recent) == 1:
            self._mirror.changed(recent[0])
            self._renew(recent, fresh=True)
            return
        nodes = list(dict.fromkeys(recent))
        for node in nodes:
            self._mirror.changed(node)
        for begin in range(0, len(nodes), _COLUMN_CHUNK):
            chunk = nodes[begin : begin + _COLUMN_CHUNK]
            self._prepare(chunk)
            self._renew(chunk, fresh=False)

    def _renew(self, nodes: list[int], *, fresh: bool) -> None:
        """The keys of nodes; ``fresh``: those of all others are up to date."""
        rows, count = self._rows, self._rows.count
        for node in nodes if count else ():
            rows.keys[:count, node] = rows.admit(node, self._column(node, fresh=fresh))

    def _state(self, node: int) -> State:
        shape, (cpu, free) = self._snapshot.node_shape[node], self._mirror.of(node)
        enough = self._enough_cpu[shape]
        cpu = cpu if cpu < enough else enough
        return shape, self._scarce_of[node], cpu, free, self._mirror.exact(node)

    def _column(self, node: int, *, fresh: bool) -> Ints:
        """The keys of all rows on a node, whether they may go there or not."""
        state = self._state(node)
        column = self._columns.get(state)
        if column is None:
            self._credit += _EARNED_MISSING
            look = fresh and self._credit > _LOOK_FROM and not state[4]
            ahead = self._ahead(node) if look else {}
            if ahead:
                self._work_out(ahead | {state: node})
                self._foreseen.update(s for s in ahead if s in self._columns)
                self._credit -= (_COST_OF_LOOKING + len(ahead)) * _COST
            else:
                if len(self._columns) >= _MOST_STATES:
                    self._forget()
                self._columns[state] = self._column_of(node, state)
            column = self._columns[state]
        elif state in self._foreseen:
            self._foreseen.remove(state)
            self._credit = min(self._credit + _EARNED, _MOST_CREDIT)
        return column

    def _forget(self) -> None:
        """All columns, because there are too many or the rows are other ones."""
        most_cpu = self._rows.most_cpu
        self._enough_cpu = [shape.enough_cpu + most_cpu for shape in self._shapes]
        self._columns.clear()
        self._foreseen.clear()

    def _prepare(self, nodes: list[int]) -> None:
        """Work out the columns of many nodes together."""
        if not self._rows.count:
            return
        missing: dict[State, int | None] = {}
        for node in nodes:
            if node not in self._mirror.irregular and (s := self._state(node)) not in self._columns:
                missing.setdefault(s, node)
        self._work_out(missing)

    def _ahead(self, node: int) -> dict[State, int | None]:
        """States that come next if pods of the kinds asked for last go to their best nodes.

        But for ``node``, whose keys are not known yet.
        """
        rows, mirror, found = self._rows, self._mirror, dict[State, int | None]()
        last = list(islice(reversed(rows.used), _AHEAD))
        each = min(_AHEAD // max(1, len(last)), len(self._scarce_of))
        for pod_request in last:
            at = rows.at.get(pod_request)
            if at is None:
                continue
            row = rows.keys[at]
            best = row.argpartition(each - 1)[:each].tolist() if each > 1 else [int(row.argmin())]
            for n in best:
                if n != node and row[n] != keys.BLOCKED and n not in mirror.irregular:
                    state = self._after(at, n)
                    if state is not None and state not in self._columns:
                        found[state] = None
        return found

    def _after(self, at: int, node: int) -> State | None:
        """The state of a node once a pod is there, if that can be said at once."""
        shape, scarce, _, free, _ = self._state(node)
        ask, pod_request = self._rows.shape_requests(shape, at), self._rows.pod_requests[at]
        if self._rows.alone(shape, at):
            left = self._scoring.left_of(int(self._rows.keys[at, node]))
            free = swapped(free, left + ask.milli, left)
        elif ask.devices:
            fit = best_fit(free, ask) if ask.steps else UNSURE
            if not isinstance(fit, AllocationOutcome):
                return None
            free = tuple(fit.free_milli)
        cpu = self._mirror.of(node)[0] - pod_request.pod_shape.cpu_milli
        return shape, scarce, min(cpu, self._enough_cpu[shape]), free, ()

    def _work_out(self, wanted: Mapping[State, int | None]) -> None:
        """Remember the columns of states; of nodes that are in them, or None: of no node yet."""
        if len(self._columns) + len(wanted) > _MOST_STATES:
            self._forget()
        by_shape: dict[int, list[State]] = {}
        for state in wanted:
            by_shape.setdefault(state[0], []).append(state)
        for shape, states in by_shape.items():
            vague: set[int] = set()  # states of no node yet for which there is a search to do
            search = partial(self._picked_in, [wanted[state] for state in states], vague)
            _, scarce, cpu, free, _ = zip(*states, strict=True)
            batch = States(
                np.array(free, dtype=np.int64).reshape(len(states), -1),
                np.array(cpu, dtype=np.int64),
                np.array(scarce, dtype=np.int64),
            )
            found = columns_of(self._shapes[shape], self._rows.look(shape), batch, search)
            for number, state in enumerate(states):
                if number not in vague:
                    self._columns[state] = found[number]

    def _picked_in(
        self, nodes: Sequence[int | None], vague: set[int], state: int, row: int
    ) -> AllocationOutcome | None:
        """The devices for a row in one of the states of these nodes."""
        node = nodes[state]
        if node is None:
            vague.add(state)
            return None
        return self._picked(self._rows.pod_requests[row], node)

    def _column_of(self, node: int, state: State) -> Ints:
        """The column of one node."""
        shape, scarce, cpu, free, exact = state
        search = partial(self._picked_in, [node], set())
        column = column_of(self._shapes[shape], self._rows.look(shape), (free, cpu, scarce), search)
        for at, requests in self._rows.by_memory.items() if exact else ():
            if self._mirror.is_irregular(node, requests):
                column[at] = self._row_of(at, shape, np.array([node]), irregular=True)[0]
        return column

    def _fill(self, at: int, pod_request: PodRequest) -> None:
        """The new row, node by node of each kind."""
        rows, mirror = self._rows, self._mirror
        row = rows.keys[at]
        row[:] = keys.BLOCKED
        usable = rows.usable[at]
        irregular = np.zeros(len(usable), dtype=np.bool_)
        if at in rows.by_memory:
            requests = pod_request.pod_shape.devices
            irregular[[n for n in mirror.irregular if mirror.is_irregular(n, requests)]] = True
        for shape, members in enumerate(mirror.members):
            for those in (False, True):
                nodes = members[usable[members] & (irregular[members] == those)]
                if len(nodes):
                    row[nodes] = self._row_of(at, shape, nodes, irregular=those)
        rows.admit_row(at, mirror)

    def _row_of(self, at: int, shape: int, nodes: Ints, *, irregular: bool) -> Ints:
        """[nodes] The keys of one row on nodes of a kind; those in the same state share."""
        states = States(*self._mirror.of_many(shape, nodes), self._scarce[nodes])
        rows, ask = self._rows, self._rows.shape_requests(shape, at)
        if irregular:
            ask = ask if ask.milli == NEVER else BY_CHOOSER
        if irregular or (len(nodes) < _FEW and (ask.milli != PICKED or ask.steps)):
            first = like = np.arange(len(nodes))
        else:
            first, like = states.distinct()
        found = np.empty(len(first), dtype=np.int64)
        for begin in range(0, len(first), _ROW_CHUNK):
            chunk = first[begin : begin + _ROW_CHUNK]
            search = partial(self._picked_of, rows.pod_requests[at], nodes[chunk].tolist())
            found[begin : begin + _ROW_CHUNK] = row_of(
                self._shapes[shape], ask, rows.wants(at), states.take(chunk), search
            )
        row: Ints = found[like]
        return row

    def _picked_of(
        self, pod_request: PodRequest, nodes: Sequence[int], state: int, _row: int
    ) -> AllocationOutcome | None:
        return self._picked(pod_request, nodes[state])

    def _picked(self, pod_request: PodRequest, node: int) -> AllocationOutcome | None:
        snapshot, pod_shape = self._snapshot, pod_request.pod_shape
        if not pod_shape.devices or self._mirror.of(node)[0] < pod_shape.cpu_milli:
            return None
        choice = pod_request.chooser.choose(node)
        if choice is None:
            return None
        base = snapshot.cluster.first[node]
        last = snapshot.cluster.first[node + 1]
        free = [max(0, milli) for milli in snapshot.cluster.free_milli[base:last]]
        for pick in choice.picks:
            at = pick[1] - base
            free[at] = max(0, free[at] - snapshot.charge_milli(pick))
        return AllocationOutcome(free, choice.left_milli, self._rows.rank_of(choice))
