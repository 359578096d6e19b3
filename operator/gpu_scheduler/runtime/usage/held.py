"""What holds GPUs, node by node: read anew where something of a node is another one.

Whether it is, is seen by what it was read from: charges, records of pods, whose these are, what the
agent answered. All of that is replaced and never changed, so nobody has to tell of changes, and
none can be missed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.limits.in_pieces import in_parts
from gpu_scheduler.runtime.common.work_name import WorkName, work_of
from gpu_scheduler.runtime.usage.seen import NodeAnswer, SeenUse
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.state.nodes.ledger import Charge
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.usage.answer import ShareUse

_A_TURN = 4  # nodes; a pod that is read anew takes some microseconds


class Held(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What one pod holds on its node.

    Attributes:
        pod: its record; None: it is not known yet.
        uid: of the pod.
        name: of whose it is; None: nobody's as far as known.
        job: the key of that GPUJob, or of its group.
        project: that is charged; empty: none.
        devices: with each device under the id that it has now.
        milli: in all.
        uses: what it was seen doing; nothing where its agent was not heard of late.
        answered: when that was said, monotonic seconds.
    """

    pod: PodRecord | None
    uid: PodUID
    name: WorkName | None
    job: JobKey
    project: str
    devices: tuple[DeviceAllocation, ...]
    milli: int
    uses: tuple[ShareUse, ...]
    answered: float


class NodeHeld(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A node; another object as soon as anything of it is another one.

    Attributes:
        info: as the planner sees it; None: there is no such node, but pods hold something there.
        devices: that it lists.
        said: what its agent said last; None: nothing of late.
        pods: that hold something on it.
    """

    name: str
    info: NodeInfo | None
    devices: tuple[NodeDevice, ...]
    said: NodeAnswer | None
    pods: tuple[Held, ...]


_Holds = tuple[Charge, PodRecord | None, str | None]
"""What a pod holds, its record, and the uid of whose it is."""
_Pods = list[tuple[PodUID, Charge, PodRecord | None]]
_MadeOf = tuple[object, object]


class HeldGpus:
    """Remembers what it read last."""

    def __init__(self, state: ClusterState, seen: SeenUse) -> None:
        """Nothing is read yet; ``seen``: what shares do."""
        self._state = state
        self._seen = seen
        self._known: dict[str, tuple[_MadeOf, NodeHeld]] = {}
        self._holds: dict[PodUID, _Holds] = {}
        self._owners: object = None

    async def read(self, now: float) -> Mapping[str, NodeHeld]:
        """All nodes, by name, and those that are gone; ``now``: monotonic seconds. In pieces."""
        state = self._state
        if self._owners is not state.projects.owners:
            self._owners = state.projects.owners
            self._known = {}
        holds = self._read_holds()
        await asyncio.sleep(0)
        others = _nodes_of_others(self._holds, holds)
        pods = defaultdict[str, _Pods](list)
        for uid, (charge, pod, _) in holds.items():
            pods[charge.node].append((uid, charge, pod))
        await asyncio.sleep(0)
        cluster = state.ledger.cluster
        names = dict.fromkeys((*(node.name for node in cluster.nodes), *pods))
        known: dict[str, tuple[_MadeOf, NodeHeld]] = {}
        async for part in in_parts(names, _A_TURN):
            for name in part:
                was = self._known.get(name) if name not in others else None
                known[name] = self._node(name, pods.get(name, []), was, now)
        self._known = known
        self._holds = holds
        return {name: node for name, (_, node) in known.items()}

    def _read_holds(self) -> dict[PodUID, _Holds]:
        """Of all pods that hold something of a device; in one turn, some 0.5 µs each."""
        state = self._state
        charges = {uid: each for uid, each in state.ledger.charges.items() if each.devices}
        pods = list(map(state.pods.known.get, charges))
        holds = zip(charges.values(), pods, state.workloads.uids_of(pods), strict=True)
        return dict(zip(charges, holds, strict=True))

    def _node(
        self, name: str, pods: _Pods, was: tuple[_MadeOf, NodeHeld] | None, now: float
    ) -> tuple[_MadeOf, NodeHeld]:
        """As it ``was`` where nothing of it is another one; None: its pods hold something else."""
        state, said = self._state, self._seen.said(name, now)
        number, listed = state.ledger.number_of(name), state.ledger.node(name)
        info = state.ledger.cluster.nodes[number] if number is not None else None
        devices = listed[1] if listed is not None else ()
        made_of = info, devices
        if was is not None and was[1].said is said and was[0] == made_of:
            return was
        held = tuple(self._held(*each, said) for each in pods)
        return made_of, NodeHeld(name, info, devices, said, held)

    def _held(
        self, uid: PodUID, charge: Charge, pod: PodRecord | None, said: NodeAnswer | None
    ) -> Held:
        state = self._state
        named = work_of(state, pod) if pod is not None else None
        name, job = named if named is not None else (None, None)
        return Held(
            pod,
            uid,
            name,
            job.key if job is not None else JobKey(""),
            str(state.projects.owner(charge.namespace) or ""),
            state.ledger.resolved(charge.node, charge.devices),
            charge.milli,
            tuple(said.pods.get(uid, {}).values()) if said is not None else (),
            said.at if said is not None else 0.0,
        )


def _nodes_of_others(before: Mapping[PodUID, _Holds], now: Mapping[PodUID, _Holds]) -> set[str]:
    """The nodes of all pods that came, are gone, or hold something else."""
    olds = map(before.get, now)
    changed = [each for each in zip(olds, now.values(), strict=True) if each[0] != each[1]]
    found = {hold[0].node for pair in changed for hold in pair if hold is not None}
    return found | {before[uid][0].node for uid in before.keys() - now.keys()}


def on_devices(pods: Sequence[Held]) -> Mapping[str, list[tuple[Held, int, int]]]:
    """Who holds how much of each device: milli-GPU and MiB."""
    found: dict[str, dict[Held, tuple[int, int]]] = {}
    for held in pods:
        for allocated in held.devices:
            there = found.setdefault(allocated.device, {})
            milli, mib = there.get(held, (0, 0))
            there[held] = milli + allocated.milli, mib + allocated.mib
    return {
        device: [(held, *amounts) for held, amounts in there.items()]
        for device, there in found.items()
    }
