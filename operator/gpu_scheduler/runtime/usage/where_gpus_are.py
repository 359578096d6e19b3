"""Where the GPUs are: each adds up to exactly one over the states of ``GpuState``."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.limits.in_pieces import in_parts
from gpu_scheduler.runtime.usage.held import NodeHeld, on_devices
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.usage.answer import ShareUse
from gpu_scheduler.usage.figures import GpuState, held_parts

_A_TURN = 10  # nodes
_Milli = Counter[tuple[str, GpuState]]  # by project; what is free is nobody's


@dataclass(frozen=True, slots=True)
class WhereGpusAre:
    """Of one moment.

    Attributes:
        by_state: GPUs; they add up to all there are.
        milli: of each project, by state.
    """

    by_state: dict[GpuState, float]
    milli: Mapping[tuple[str, GpuState], int]


class GpuStates:
    """Remembers nodes: one of which nothing is new is not looked at again."""

    def __init__(self, idle_seconds: float) -> None:
        """``idle_seconds``: without a kernel after which a share is idle."""
        self._idle_seconds = idle_seconds
        self._known: dict[NodeHeld, _Milli] = {}
        self._piece_milli = 0

    async def of(self, nodes: Iterable[NodeHeld], piece_milli: int) -> WhereGpusAre:
        """In pieces; ``piece_milli``: smaller free parts are pieces."""
        if piece_milli != self._piece_milli:
            self._piece_milli = piece_milli
            self._known = {}
        known: dict[NodeHeld, _Milli] = {}
        whole: _Milli = Counter()
        async for part in in_parts(nodes, _A_TURN):
            for node in part:
                milli = self._known.get(node)
                if milli is None:
                    milli = _of_node(node, self._idle_seconds, piece_milli)
                known[node] = milli
                for key, each in milli.items():
                    whole[key] += each
        self._known = known
        sums = dict.fromkeys(GpuState, 0)
        for (_, state), each in whole.items():
            sums[state] += each
        return WhereGpusAre({each: sums[each] / DEVICE_MILLI for each in GpuState}, whole)


def _of_node(node: NodeHeld, idle_seconds: float, piece_milli: int) -> _Milli:
    milli: _Milli = Counter()
    if node.info is None:
        return milli
    there = on_devices(node.pods)
    for device in node.devices:
        left = DEVICE_MILLI
        for held, amount, _ in there.get(device.id, ()):
            taken = min(amount, left)  # bound by hand: more than there is
            left -= taken
            uses = [use for use in held.uses if use.device == device.id]
            for state, part in _parts(uses, taken, idle_seconds):
                milli[held.project, state] += part
        milli["", _free(node.info, device, left, piece_milli)] += left
    return milli


def _parts(
    uses: list[ShareUse], milli: int, idle_seconds: float
) -> tuple[tuple[GpuState, int], ...]:
    """What a held part does; several containers of a pod share it."""
    busy = [use.busy for use in uses]
    idle = [use.idle_seconds for use in uses]
    known = bool(uses) and None not in busy and None not in idle
    used = round(DEVICE_MILLI * sum(each or 0.0 for each in busy)) if known else None
    for_long = known and min(each or 0 for each in idle) >= idle_seconds
    return held_parts(milli, used, idle=for_long)


def _free(info: NodeInfo, device: NodeDevice, milli: int, piece_milli: int) -> GpuState:
    if info.foreign:
        return GpuState.NEIGHBOURS
    if info.unschedulable or device.trouble:
        return GpuState.CLOSED
    if milli < piece_milli:
        return GpuState.FREE_IN_PIECES
    return GpuState.FREE
