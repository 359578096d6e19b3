"""The rows of a score table: the pod shapes asked about, and where they may run.

Arrays grow by doubling; ``keys[:count]`` and the others are valid. A row's kind is worked out once
per kind of node. Between cycles rows nobody asked for are dropped. Called by ``table``.
"""

from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from gpu_scheduler.core.model.arrays import Ints
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.resources import Scalars
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.packing import keys
from gpu_scheduler.core.packing.classes import Classes, classify
from gpu_scheduler.core.packing.load import NEVER
from gpu_scheduler.core.packing.node_columns import FreeColumns
from gpu_scheduler.core.packing.shapes import ShapeRequest, ShapeScores


class Rows:
    """Pod shapes by nodes."""

    def __init__(self, snapshot: Snapshot, scarce: Ints, shapes: list[ShapeScores]) -> None:
        self._snapshot = snapshot
        self._scarce = scarce
        self._shapes = shapes
        self._nodes = len(snapshot.node_shape)
        self.pod_requests: list[PodRequest] = []
        self.at: dict[PodRequest, int] = {}
        self.used: dict[
            PodRequest, None
        ] = {}  # since the last trim, those asked for last at the end
        self.most_cpu = self._most_memory = self._most_ephemeral = 0
        self._choosy = False  # whether a pod shape cannot go everywhere
        self._reset(8)

    @property
    def count(self) -> int:
        """Rows in use."""
        return len(self.pod_requests)

    def add(self, pod_request: PodRequest) -> int:
        """A new row, not yet filled."""
        at = self.count
        if at == len(self.keys):
            self._grow()
        pod_shape = pod_request.pod_shape
        self.pod_requests.append(pod_request)
        self.at[pod_request] = at
        self._memory[at], self._ephemeral[at] = pod_shape.memory_bytes, pod_shape.ephemeral_bytes
        self.usable[at] = False
        self.usable[at, pod_request.usable] = True
        if pod_shape.scalars:
            self._scalars[at] = pod_shape.scalars
        if len(pod_shape.devices) > 1 or pod_request.chooser.by_size:
            self.by_memory[at] = pod_shape.devices
        self._choosy |= len(pod_request.usable) < self._nodes
        least = self._scarce[pod_request.could].min() if pod_request.could else 0
        self._wants[:, at] = pod_shape.cpu_milli, least
        for number, shape in enumerate(self._shapes):
            ask = shape.shape_requests(pod_request.chooser, number)
            self._shape_requests[number].append(ask)
            self._alone[number].append(ask.devices == 1 and 0 < ask.milli < NEVER)
        self.most_cpu = max(self.most_cpu, pod_shape.cpu_milli)
        self._most_memory = max(self._most_memory, pod_shape.memory_bytes)
        self._most_ephemeral = max(self._most_ephemeral, pod_shape.ephemeral_bytes)
        self._looks.clear()
        return at

    def trim(self, most: int) -> bool:
        """Drop rows that were not used since the last call when there are more than ``most``."""
        used, self.used = self.used, {}
        if self.count <= most:
            return False
        kept = [pod_request for pod_request in self.pod_requests if pod_request in used]
        old = [self.keys[self.at[pod_request]] for pod_request in kept]
        self.pod_requests = []
        self.at = {}
        self._reset(max(8, len(kept)))
        for pod_request, row in zip(kept, old, strict=True):
            self.keys[self.add(pod_request)] = row
        return True

    def look(self, shape: int) -> Classes:
        """All rows on a node of a kind."""
        look = self._looks.get(shape)
        if look is None:
            look = self._looks[shape] = classify(
                self._shapes[shape], self._shape_requests[shape], self._wants[:, : self.count]
            )
        return look

    def wants(self, at: int) -> tuple[int, int]:
        """The CPU of a row, and the scarcity of the least scarce node that it could use."""
        cpu, least = self._wants[:, at].tolist()
        return cpu, least

    def shape_requests(self, shape: int, at: int) -> ShapeRequest:
        """What a row asks of a kind of node."""
        return self._shape_requests[shape][at]

    def alone(self, shape: int, at: int) -> bool:
        """Whether a row is a lone request of one device there that nobody need pick."""
        return self._alone[shape][at]

    def rank_of(self, choice: NodeAllocation) -> int:
        """The mean rank of the devices of a choice; 0 unless the request is in MiB."""
        if not choice.rank:
            return 0
        devices = len({pick[1] for pick in choice.picks})
        return min(keys.MOST_RANKS, choice.rank // devices)

    def admit(self, node: int, column: Ints) -> Ints:
        """The column, blocked where a node is not the pod shape's or has not enough free."""
        n, cluster = self.count, self._snapshot.cluster
        if cluster.free_pods[node] <= 0:
            return np.full(n, keys.BLOCKED)
        memory = max(0, cluster.free_memory_bytes[node])
        ephemeral = max(0, cluster.free_ephemeral_bytes[node])
        little = memory < self._most_memory, ephemeral < self._most_ephemeral
        if not (self._choosy or any(little) or self._scalars):
            return column
        fits = self.usable[:n, node]
        if little[0]:
            fits = fits & (self._memory[:n] <= memory)
        if little[1]:
            fits = fits & (self._ephemeral[:n] <= ephemeral)
        short = [at for at, s in self._scalars.items() if not self._snapshot.has_scalars(node, s)]
        if short:
            fits = fits.copy()
            fits[short] = False
        return np.where(fits, column, keys.BLOCKED)

    def admit_row(self, at: int, mirror: FreeColumns) -> None:
        """The same for one row and all nodes."""
        room = mirror.room(
            int(self._memory[at]), int(self._ephemeral[at]), self._scalars.get(at, ())
        )
        self.keys[at][~(self.usable[at] & room)] = keys.BLOCKED

    def _reset(self, size: int) -> None:
        self.keys = np.full((size, self._nodes), keys.BLOCKED)
        self.usable = np.zeros((size, self._nodes), dtype=np.bool_)
        self._memory, self._ephemeral = np.zeros((2, size), dtype=np.int64)
        self._wants = np.zeros((2, size), dtype=np.int64)
        self._shape_requests: list[list[ShapeRequest]] = [[] for _ in self._shapes]
        self._alone: list[list[bool]] = [[] for _ in self._shapes]
        self.most_cpu = self._most_memory = self._most_ephemeral = 0
        self._scalars: dict[int, Scalars] = {}  # of the few rows that ask for any
        self._choosy = False
        self.by_memory: dict[int, tuple[DeviceRequest, ...]] = {}  # rows that look at memory
        self._looks: dict[int, Classes] = {}

    def _grow(self) -> None:
        self.keys = _doubled(self.keys)
        self.usable = _doubled(self.usable)
        self._memory = _doubled(self._memory)
        self._ephemeral = _doubled(self._ephemeral)
        self._wants = _doubled(self._wants, axis=1)


Array = TypeVar("Array", bound=npt.NDArray[Any])


def _doubled(array: Array, axis: int = 0) -> Array:
    return cast(Array, np.concatenate([array, np.zeros_like(array)], axis=axis))
