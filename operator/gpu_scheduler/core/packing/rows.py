"""The rows of a score table: the pod kinds asked about, and where they may run.

Arrays grow by doubling; ``keys[:count]`` and the others are valid. A row's kind is worked out once
per kind of node. Between cycles rows nobody asked for are dropped. Called by ``table``.
"""

from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.model.arrays import Ints
from gpu_scheduler.core.model.demand import Demand
from gpu_scheduler.core.model.devices import Choice
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.classes import PICKED, classify
from gpu_scheduler.core.packing.column import Column
from gpu_scheduler.core.packing.kinds import KindScores
from gpu_scheduler.core.packing.load import NEVER
from gpu_scheduler.core.packing.node_columns import Store


class Rows:
    """Pod kinds by nodes."""

    def __init__(self, snapshot: Snapshot, scarce: Ints, kinds: list[KindScores]) -> None:
        self._snapshot, self._scarce, self._kinds = snapshot, scarce, kinds
        self._nodes = len(snapshot.kind)
        self.demands: list[Demand] = []
        self.at: dict[Demand, int] = {}
        self.used: set[Demand] = set()
        self._most_memory = self._most_ephemeral = 0
        self._choosy = False  # whether a pod kind cannot go everywhere
        self._reset(8)

    @property
    def count(self) -> int:
        """Rows in use."""
        return len(self.demands)

    def add(self, demand: Demand) -> int:
        """A new row, not yet filled."""
        at = self.count
        if at == len(self.keys):
            self._grow()
        pod_kind = demand.pod_kind
        self.demands.append(demand)
        self.at[demand] = at
        self._cpu[at] = pod_kind.cpu_milli
        self._memory[at], self._ephemeral[at] = pod_kind.memory_bytes, pod_kind.ephemeral_bytes
        self.usable[at] = False
        self.usable[at, demand.usable] = True
        self._choosy |= len(demand.usable) < self._nodes
        self.least_scarce[at] = self._scarce[demand.could].min() if demand.could else 0
        for number, kind in enumerate(self._kinds):
            milli, count, rank = kind.asks(demand.chooser, number)
            self._asks[number][:, at] = milli, count, rank
            self._alone[number].append(count == 1 and 0 < milli < NEVER)
        self._most_memory = max(self._most_memory, pod_kind.memory_bytes)
        self._most_ephemeral = max(self._most_ephemeral, pod_kind.ephemeral_bytes)
        self._columns.clear()
        self._picked.clear()
        return at

    def trim(self, most: int) -> bool:
        """Drop rows that were not used since the last call when there are more than ``most``."""
        used, self.used = self.used, set()
        if self.count <= most:
            return False
        kept = [demand for demand in self.demands if demand in used]
        old = [self.keys[self.at[demand]] for demand in kept]
        self.demands, self.at = [], {}
        self._reset(max(8, len(kept)))
        for demand, row in zip(kept, old, strict=True):
            self.keys[self.add(demand)] = row
        return True

    def column(self, kind: int) -> Column:
        """All rows on a regular node of a kind."""
        column = self._columns.get(kind)
        if column is None:
            milli, count, size = self._asks[kind][:, : self.count]
            column = self._columns[kind] = self._column(kind, milli, count, size)
        return column

    def column_picked(self, kind: int) -> Column:
        """All rows on a node where Chooser has to pick whatever there is to pick."""
        column = self._picked.get(kind)
        if column is None:
            milli, count, size = self._asks[kind][:, : self.count]
            milli = np.where((milli == 0) | (milli == NEVER), milli, PICKED)
            column = self._picked[kind] = self._column(kind, milli, np.minimum(count, 1), size)
        return column

    def _column(self, kind: int, milli: Ints, count: Ints, size: Ints) -> Column:
        wants = self._cpu[: self.count], self.least_scarce[: self.count]
        return Column(classify(milli, count, size, wants), self._kinds[kind])

    def asks(self, kind: int, at: int) -> tuple[int, int, int]:
        """Milli, count and size of a row on a kind of node, as in ``Classes``."""
        milli, count, size = self._asks[kind][:, at].tolist()
        return milli, count, size

    def alone(self, kind: int, at: int) -> bool:
        """Whether a row is a lone request of one device there that ``Chooser`` need not pick."""
        return self._alone[kind][at]

    def rank_of(self, choice: Choice) -> int:
        """The mean rank of the devices of a choice; 0 unless the request is in MiB."""
        if not choice.rank:
            return 0
        devices = len({pick[1] for pick in choice.picks})
        return min(keys.MOST_RANKS, choice.rank // devices)

    def admit(self, node: int, column: Ints) -> Ints:
        """The column, blocked where the node is not the pod kind's or its memory is not enough."""
        n, cluster = self.count, self._snapshot.cluster
        if cluster.free_pods[node] <= 0:
            return np.full(n, keys.BLOCKED)
        memory, ephemeral = cluster.free_memory_bytes[node], cluster.free_ephemeral_bytes[node]
        enough = memory >= self._most_memory and ephemeral >= self._most_ephemeral
        if enough and not self._choosy:
            return column
        fits = self.usable[:n, node]
        if not enough:
            fits = fits & (self._memory[:n] <= memory) & (self._ephemeral[:n] <= ephemeral)
        return np.where(fits, column, keys.BLOCKED)

    def admit_row(self, at: int, mirror: Store) -> None:
        """The same for one row and all nodes."""
        room = mirror.room(int(self._memory[at]), int(self._ephemeral[at]))
        self.keys[at][~(self.usable[at] & room)] = keys.BLOCKED

    def _reset(self, size: int) -> None:
        self.keys = np.full((size, self._nodes), keys.BLOCKED)
        self.usable = np.zeros((size, self._nodes), dtype=np.bool_)
        self._cpu, self._memory, self._ephemeral, self.least_scarce = np.zeros(
            (4, size), dtype=np.int64
        )
        self._asks = [np.zeros((3, size), dtype=np.int64) for _ in self._kinds]
        self._alone: list[list[bool]] = [[] for _ in self._kinds]
        self._most_memory = self._most_ephemeral = 0
        self._choosy = False
        self._columns: dict[int, Column] = {}
        self._picked: dict[int, Column] = {}

    def _grow(self) -> None:
        self.keys, self.usable = _doubled(self.keys), _doubled(self.usable)
        self._cpu, self._memory = _doubled(self._cpu), _doubled(self._memory)
        self._ephemeral = _doubled(self._ephemeral)
        self.least_scarce = _doubled(self.least_scarce)
        self._asks = [_doubled(asks, axis=1) for asks in self._asks]


Array = TypeVar("Array", bound=npt.NDArray[Any])


def _doubled(array: Array, axis: int = 0) -> Array:
    return cast(Array, np.concatenate([array, np.zeros_like(array)], axis=axis))
