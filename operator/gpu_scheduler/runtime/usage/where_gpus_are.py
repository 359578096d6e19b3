"""Where the GPUs are: each adds up to exactly one over the states of ``GpuState``."""

from collections import Counter
from collections.abc import Iterable, Mapping

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.limits.in_pieces import in_pieces
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.ledger import Charge
from gpu_scheduler.usage.answer import ShareUse
from gpu_scheduler.usage.figures import GpuState, held_parts


async def gpus_by_state(
    state: ClusterState, seen: SeenUse, now: float, *, idle_seconds: float, piece_milli: int
) -> dict[GpuState, float]:
    """GPUs in each state, in pieces: of a cluster that changes meanwhile, node by node.

    Args:
        state: the cluster.
        seen: what shares do.
        now: monotonic seconds.
        idle_seconds: without a kernel after which a share is idle.
        piece_milli: smaller free parts are pieces.
    """
    milli: Counter[GpuState] = Counter()
    held: dict[str, list[tuple[PodUID, Charge]]] = {}
    async for uid, charge in in_pieces(state.ledger.charges.items()):
        held.setdefault(charge.node, []).append((uid, charge))
    shares = _Shares(state, seen, now)
    async for node in in_pieces([each.name for each in state.ledger.cluster.nodes]):
        cluster = state.ledger.cluster
        number = state.ledger.number_of(node)
        if number is None:
            continue  # it is gone
        on_it = _by_device(state, held.get(node, ()))
        for device in range(cluster.first[number], cluster.first[number + 1]):
            left = DEVICE_MILLI
            for uid, amount in on_it.get(cluster.dev_id[device], ()):
                taken = min(amount, left)  # bound by hand: more than there is
                left -= taken
                use = shares.of(uid, cluster.dev_id[device])
                _add_parts(milli, use, taken, idle_seconds)
            milli[_free(cluster, number, device, left, piece_milli)] += left
    return {each: milli[each] / DEVICE_MILLI for each in GpuState}


class _Shares:
    """Of pods on devices, each pod looked up once."""

    def __init__(self, state: ClusterState, seen: SeenUse, now: float) -> None:
        self._state = state
        self._seen = seen
        self._now = now
        self._known: dict[PodUID, Mapping[str, tuple[ShareUse, ...]]] = {}

    def of(self, uid: PodUID, device: str) -> tuple[ShareUse, ...]:
        found = self._known.get(uid)
        if found is None:
            by_device: dict[str, tuple[ShareUse, ...]] = {}
            pod = self._state.pods.known.get(uid)
            for share in self._seen.shares(pod, self._now) if pod is not None else ():
                by_device[share.device] = (*by_device.get(share.device, ()), share)
            found = self._known[uid] = by_device
        return found.get(device, ())


def _by_device(
    state: ClusterState, charges: Iterable[tuple[PodUID, Charge]]
) -> dict[str, list[tuple[PodUID, int]]]:
    """Who holds how much of each device of a node."""
    found: dict[str, list[tuple[PodUID, int]]] = {}
    for uid, charge in charges:
        for grant in state.ledger.resolved(charge.node, charge.grants):
            found.setdefault(grant.device, []).append((uid, grant.milli))
    return found


def _add_parts(
    to: Counter[GpuState], uses: tuple[ShareUse, ...], milli: int, idle_seconds: float
) -> None:
    """What a held part does; several containers of a pod share it."""
    busy = [use.busy for use in uses]
    idle = [use.idle_seconds for use in uses]
    known = bool(uses) and None not in busy and None not in idle
    used = round(DEVICE_MILLI * sum(each or 0.0 for each in busy)) if known else None
    for_long = known and min(each or 0 for each in idle) >= idle_seconds
    for state, part in held_parts(milli, used, idle=for_long):
        to[state] += part


def _free(cluster: Cluster, node: int, device: int, milli: int, piece_milli: int) -> GpuState:
    info = cluster.nodes[node]
    if info.foreign:
        return GpuState.NEIGHBOURS
    if info.unschedulable or not cluster.dev_healthy[device]:
        return GpuState.CLOSED
    if milli < piece_milli:
        return GpuState.FREE_IN_PIECES
    return GpuState.FREE
