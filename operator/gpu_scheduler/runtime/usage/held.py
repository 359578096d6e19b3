"""What holds GPUs, node by node: read anew where something of a node is another one.

Whether it is, is seen by what it was read from: charges, records of pods, whose these are, what the
agent answered. All of that is replaced and never changed, so nobody has to tell of changes, and
none can be missed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.decision import Grant
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
        grants: with each device under the id that it has now.
        milli: in all.
        uses: what it was seen doing; nothing where its agent was not heard of late.
        answered: when that was said, monotonic seconds.
    """

    pod: PodRecord | None
    uid: PodUID
    name: WorkName | None
    job: JobKey
    project: str
    grants: tuple[Grant, ...]
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


_Charges = list[tuple[PodUID, Charge]]
_MadeOf = tuple[object, object, _Charges, list[PodRecord | None], list[str | None]]


class HeldGpus:
    """Remembers what it read last."""

    def __init__(self, state: ClusterState, seen: SeenUse) -> None:
        """Nothing is read yet; ``seen``: what shares do."""
        self._state = state
        self._seen = seen
        self._known: dict[str, tuple[_MadeOf, NodeHeld]] = {}
        self._owners: object = None

    async def read(self, now: float) -> Mapping[str, NodeHeld]:
        """All nodes, by name, and those that are gone; ``now``: monotonic seconds. In pieces."""
        state, charges = self._state, defaultdict[str, _Charges](list)
        if self._owners is not state.projects.owners:
            self._owners = state.projects.owners
            self._known = {}
        for uid, charge in state.ledger.charges.items():
            if charge.grants:
                charges[charge.node].append((uid, charge))
        cluster = state.ledger.cluster
        names = dict.fromkeys((*(node.name for node in cluster.nodes), *charges))
        known: dict[str, tuple[_MadeOf, NodeHeld]] = {}
        async for part in in_parts(names, _A_TURN):
            for name in part:
                known[name] = self._node(name, charges.get(name, []), now)
        self._known = known
        return {name: node for name, (_, node) in known.items()}

    def _node(self, name: str, charges: _Charges, now: float) -> tuple[_MadeOf, NodeHeld]:
        state, said, before = self._state, self._seen.said(name, now), self._known.get(name)
        number, listed = state.ledger.number_of(name), state.ledger.node(name)
        info = state.ledger.cluster.nodes[number] if number is not None else None
        devices = listed[1] if listed is not None else ()
        pods = [state.pods.known.get(uid) for uid, _ in charges]
        owners = state.workloads.uids_of(pods)
        made_of = info, devices, charges, pods, owners
        if before is not None and before[1].said is said and before[0] == made_of:
            return before
        held = zip(charges, pods, strict=True)
        return made_of, NodeHeld(
            name, info, devices, said, tuple(self._held(*c, pod, said) for c, pod in held)
        )

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
            state.ledger.resolved(charge.node, charge.grants),
            charge.milli,
            tuple(said.pods.get(uid, {}).values()) if said is not None else (),
            said.at if said is not None else 0.0,
        )


def on_devices(pods: Sequence[Held]) -> Mapping[str, list[tuple[Held, int, int]]]:
    """Who holds how much of each device: milli-GPU and MiB."""
    found: dict[str, dict[Held, tuple[int, int]]] = {}
    for held in pods:
        for grant in held.grants:
            there = found.setdefault(grant.device, {})
            milli, mib = there.get(held, (0, 0))
            there[held] = milli + grant.milli, mib + grant.mib
    return {
        device: [(held, *amounts) for held, amounts in there.items()]
        for device, there in found.items()
    }
