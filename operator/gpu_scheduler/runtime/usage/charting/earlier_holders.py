"""Who held each GPU before: as pods gave it back, since this replica leads; kept nowhere."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.common.work_name import WorkName, work_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.state.pods.pod import PodRecord

MOST = 10  # workloads of a GPU
MOST_GPUS = 20_000  # that are remembered, also of nodes that are gone

_Gpu = tuple[str, str]  # node and device
K = TypeVar("K")
V = TypeVar("V")


class EarlierHolder(msgspec.Struct, frozen=True, gc=False):
    """A workload of which pods gave a GPU back.

    Attributes:
        milli: that one of them held at most.
        pods: how many they were.
        since: when the first of them got it, epoch seconds.
        until: when the last of them gave it back.
    """

    namespace: str
    name: WorkName
    milli: int
    pods: int
    since: float
    until: float


@dataclass(slots=True)
class _Holding:
    """What a pod holds; ``name``: None, as it is not known yet whose it is."""

    namespace: str
    pod: str
    node: str
    devices: tuple[DeviceAllocation, ...]
    name: WorkName | None
    since: float


class EarlierHolders:
    """Follows pods."""

    def __init__(self, state: ClusterState, clock: Clock) -> None:
        """Nothing is known yet."""
        self._state = state
        self._clock = clock
        self._began = clock.monotonic()
        self._holdings: dict[PodUID, _Holding] = {}
        self._before: dict[_Gpu, dict[str, EarlierHolder]] = {}  # who gave back last is last

    @property
    def began(self) -> float:
        """Since when pods are followed, epoch seconds; the clock is anchored anew after that."""
        return self._clock.now() - (self._clock.monotonic() - self._began)

    def of(self, node: str, device: str) -> Sequence[EarlierHolder]:
        """Of a GPU, who gave it back last is first; ``device``: its id."""
        return tuple(reversed(self._before.get((node, device), {}).values()))

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod was added or changed."""
        charge = self._state.ledger.charges.get(pod.uid)
        held = (charge.node, charge.devices) if charge is not None and charge.devices else None
        known = self._holdings.get(pod.uid)
        if known is not None and (known.node, known.devices) != held:
            self.gone(pod.uid)
            known = None
        if held is None or (known is not None and known.name is not None):
            return
        named = work_of(self._state, pod)
        name = named[0] if named is not None else None
        if known is not None:
            known.name = name
        else:
            since = epoch_seconds(pod.started) or self._clock.now()
            self._holdings[pod.uid] = _Holding(pod.namespace, pod.name, *held, name, since)

    def gone(self, uid: PodUID) -> None:
        """A pod is gone, or has given back what it held."""
        known = self._holdings.pop(uid, None)
        if known is None:
            return
        milli = Counter[str]()
        for allocated in self._state.ledger.resolved(known.node, known.devices):
            milli[allocated.device] += allocated.milli
        for device, each in milli.items():
            self._gave_back((known.node, device), known, each)

    def _gave_back(self, gpu: _Gpu, held: _Holding, milli: int) -> None:
        name = held.name or WorkName(f"{held.namespace}/pod {held.pod}", "pod", held.pod)
        there = self._before.pop(gpu, {})
        nobody = EarlierHolder(held.namespace, name, 0, 0, held.since, 0.0)
        was = there.pop(name.key, nobody)
        there[name.key] = EarlierHolder(
            held.namespace,
            name,
            max(was.milli, milli),
            was.pods + 1,
            min(was.since, held.since),
            self._clock.now(),
        )
        self._before[gpu] = there
        _keep(there, MOST)
        _keep(self._before, MOST_GPUS)


def _keep(each: dict[K, V], most: int) -> None:
    """The last ones."""
    if len(each) > most:
        del each[next(iter(each))]
