"""Nodes and devices with what is on them, read off what is held and the agents' last answers."""

from collections.abc import Iterable

from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.dashboard.reading.refs import of_name
from gpu_scheduler.dashboard.rows import DeviceRow, NodeRow, ShareRow
from gpu_scheduler.limits.in_pieces import in_parts
from gpu_scheduler.runtime.usage.held import Held, NodeHeld, on_devices
from gpu_scheduler.runtime.usage.works import sum_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.devices import NodeDevice

_A_TURN = 10  # nodes
_TOPOLOGY = frozenset({"zone", "region", "rack", "block", "row", "room"})


class NodeRows:
    """Remembers rows from picture to picture: of a node of which nothing is new none is made."""

    def __init__(self, state: ClusterState, idle_seconds: float, ahead: float) -> None:
        """Nothing is read yet.

        Args:
            state: the cluster.
            idle_seconds: without a kernel after which a share is idle.
            ahead: epoch seconds at monotonic 0.
        """
        self._state = state
        self._idle_seconds = idle_seconds
        self._ahead = ahead
        self._rows: dict[NodeHeld, tuple[object, NodeRow]] = {}  # and what else each was made of

    async def read(self, nodes: Iterable[NodeHeld]) -> tuple[NodeRow, ...]:
        """Those that are there, in their order. In pieces."""
        rows: dict[NodeHeld, tuple[object, NodeRow]] = {}
        ledger, agents = self._state.ledger, self._state.nodes.agents
        async for part in in_parts(nodes, _A_TURN):
            for node in part:
                number = ledger.number_of(node.name)
                if node.info is None or number is None:
                    continue  # it is gone
                free_cpu = ledger.cluster.free_cpu_milli[number]
                agent = "none"
                if node.name in agents.devices:
                    agent = agents.silence(node.name) or "ok"
                known = self._rows.get(node)
                if known is None or known[0] != (free_cpu, agent):
                    row = self._row(node, node.info, free_cpu, agent)
                    known = (free_cpu, agent), row
                rows[node] = known
        self._rows = rows
        return tuple(row for _, row in rows.values())

    def _row(self, node: NodeHeld, info: NodeInfo, free_cpu: int, agent: str) -> NodeRow:
        """``agent``: 'none', 'ok', or why it counts as silent."""
        there = on_devices(node.pods)
        devices = [self._device(node, each, there.get(each.id, [])) for each in node.devices]
        closed = info.unschedulable or (agent if agent not in ("none", "ok") else "")
        first = devices[0] if devices else None
        return NodeRow(
            name=node.name,
            model=first.model if first is not None else "",
            memory_mib=first.memory_mib if first is not None else 0,
            closed=closed,
            agent="none" if agent == "none" else "ok" if agent == "ok" else "silent",
            labels={
                part: value
                for key, value in info.labels.items()
                if (part := key.rpartition("/")[2]) in _TOPOLOGY
            },
            free=0.0 if closed else round(sum(d.free for d in devices if not d.problem), 3),
            cpu_free=round(max(free_cpu, 0) / 1000, 1),
            cpu_total=round(info.cpu_milli / 1000, 1),
            devices=tuple(devices),
        )

    def _device(
        self, node: NodeHeld, listed: NodeDevice, there: list[tuple[Held, int, int]]
    ) -> DeviceRow:
        now = node.said.devices.get(listed.id) if node.said is not None else None
        health = now.health if now is not None else None
        shares = [self._share(listed.id, *each) for each in there]
        left = DEVICE_MILLI - sum(milli for _, milli, _ in there)
        return DeviceRow(
            index=listed.index,
            uuid=listed.id,
            model=listed.model,
            memory_mib=listed.usable_mib,
            problem=listed.trouble,
            free=max(left, 0) / DEVICE_MILLI,
            busy=now.busy if now is not None else None,
            memory_used_mib=now.memory_mib if now is not None else None,
            celsius=health.celsius if health is not None else None,
            shares=tuple(sorted(shares, key=lambda share: (-share.gpus, share.pod))),
        )

    def _share(self, device: str, held: Held, milli: int, mib: int) -> ShareRow:
        uses = [use for use in held.uses if use.device == device]
        busy = [use.busy for use in uses]
        idle = [use.idle_seconds for use in uses]
        known = bool(uses) and None not in busy and None not in idle
        least = min((each or 0 for each in idle), default=0)
        pod, idles = held.pod, known and least >= self._idle_seconds
        return ShareRow(
            ref=of_name(pod.namespace, held.name) if pod is not None and held.name else None,
            project=held.project,
            pod=pod.name if pod is not None else "",
            gpus=milli / DEVICE_MILLI,
            busy=min(sum(each or 0.0 for each in busy), 1.0) if known else None,
            memory_mib=sum_of(uses, "memory_mib"),
            cap_mib=mib or None,
            idle_since=self._ahead + held.answered - least if idles else None,
        )
