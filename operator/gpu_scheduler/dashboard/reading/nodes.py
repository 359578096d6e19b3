"""Nodes and devices with what is on them, read off the ledger and the agents' last answers."""

from collections.abc import Sequence

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.dashboard.reading.refs import of_pod
from gpu_scheduler.dashboard.rows import Device, NodeRow, Share
from gpu_scheduler.limits.in_pieces import in_pieces
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.runtime.usage.works import sum_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.usage.answer import ShareUse

_TOPOLOGY = frozenset({"zone", "region", "rack", "block", "row", "room"})
_Held = dict[str, dict[PodUID, tuple[int, int]]]  # by device: milli and MiB of each pod


class NodeRows:
    """Remembers rows from picture to picture: of a node of which nothing is new none is made."""

    def __init__(self, state: ClusterState, seen: SeenUse, idle_seconds: float) -> None:
        """Nothing is read yet.

        Args:
            state: the cluster.
            seen: what shares do.
            idle_seconds: without a kernel after which a share is idle.
        """
        self._state = state
        self._seen = seen
        self._idle_seconds = idle_seconds
        self._rows: dict[str, tuple[object, NodeRow]] = {}  # and what each was made of

    async def read(self, now: float, at: float) -> tuple[NodeRow, ...]:
        """All nodes with GPUs, by name; ``now``: monotonic seconds, ``at``: since the epoch."""
        state, held = self._state, await self._held()
        rows, cluster = {}, state.ledger.cluster
        reader = _Reader(state, self._seen, now, at, self._idle_seconds)
        async for name in in_pieces(sorted(each.name for each in cluster.nodes)):
            number = state.ledger.number_of(name)
            if number is None:
                continue  # it is gone
            cluster, there = state.ledger.cluster, held.get(name, {})
            silence = state.nodes.agents.silence(name)
            made_of = (
                there,
                self._seen.answered_at(name, now),
                state.ledger.node(name),
                cluster.free_cpu_milli[number],
                silence,
            )
            known = self._rows.get(name)
            if known is None or known[0] != made_of:
                known = made_of, reader.node(name, number, there)
            rows[name] = known
        self._rows = rows
        return tuple(row for _, row in rows.values())

    async def _held(self) -> dict[str, _Held]:
        """What pods hold, by node."""
        held: dict[str, _Held] = {}
        ledger = self._state.ledger
        async for uid, charge in in_pieces(ledger.charges.items()):
            if not charge.grants:
                continue
            there = held.setdefault(charge.node, {})
            for grant in ledger.resolved(charge.node, charge.grants):
                by_pod = there.setdefault(grant.device, {})
                milli, mib = by_pod.get(uid, (0, 0))
                by_pod[uid] = milli + grant.milli, mib + grant.mib
        return held


class _Reader:
    """Of one moment."""

    def __init__(
        self, state: ClusterState, seen: SeenUse, now: float, at: float, idle_seconds: float
    ) -> None:
        self._state = state
        self._seen = seen
        self._now = now
        self._at = at
        self._idle_seconds = idle_seconds

    def node(self, name: str, number: int, held: _Held) -> NodeRow:
        cluster, agents = self._state.ledger.cluster, self._state.nodes.agents
        info, silence = cluster.nodes[number], agents.silence(name)
        known = self._state.ledger.node(name)
        devices = [
            self._device(cluster, at, listed, name, held.get(cluster.dev_id[at], {}))
            for at, listed in enumerate(known[1] if known else (), cluster.first[number])
        ]
        closed = info.unschedulable or silence
        first = devices[0] if devices else None
        return NodeRow(
            name=name,
            model=first.model if first is not None else "",
            memory_mib=first.memory_mib if first is not None else 0,
            closed=closed,
            agent="none" if name not in agents.devices else "silent" if silence else "ok",
            labels={
                part: value
                for key, value in info.labels.items()
                if (part := key.rpartition("/")[2]) in _TOPOLOGY
            },
            free=0.0 if closed else round(sum(d.free for d in devices if not d.problem), 3),
            cpu_free=round(max(cluster.free_cpu_milli[number], 0) / 1000, 1),
            cpu_total=round(info.cpu_milli / 1000, 1),
            devices=tuple(devices),
        )

    def _device(
        self,
        cluster: Cluster,
        at: int,
        listed: NodeDevice,
        node: str,
        held: dict[PodUID, tuple[int, int]],
    ) -> Device:
        now = self._seen.device(node, listed.id, self._now)
        shares = [self._share(uid, listed.id, *amounts) for uid, amounts in held.items()]
        trouble = "" if cluster.dev_healthy[at] else listed.trouble or "takes no new pods"
        return Device(
            index=listed.index,
            uuid=listed.id,
            model=listed.model,
            memory_mib=listed.usable_mib,
            problem=trouble,
            free=max(cluster.free_milli[at], 0) / DEVICE_MILLI,
            busy=now.busy if now is not None else None,
            memory_used_mib=now.memory_mib if now is not None else None,
            shares=tuple(sorted(shares, key=lambda share: (-share.gpus, share.pod))),
        )

    def _share(self, uid: PodUID, device: str, milli: int, mib: int) -> Share:
        pod = self._state.pods.known.get(uid)
        uses: Sequence[ShareUse] = ()
        if pod is not None:
            uses = [use for use in self._seen.shares(pod, self._now) if use.device == device]
        busy = [use.busy for use in uses]
        idle = [use.idle_seconds for use in uses]
        known = bool(uses) and None not in busy and None not in idle
        least = min((each or 0 for each in idle), default=0)
        namespace = pod.namespace if pod is not None else ""
        return Share(
            ref=of_pod(self._state, pod) if pod is not None else None,
            project=str(self._state.projects.owner(namespace) or ""),
            pod=pod.name if pod is not None else "",
            gpus=milli / DEVICE_MILLI,
            busy=min(sum(each or 0.0 for each in busy), 1.0) if known else None,
            memory_mib=sum_of(uses, "memory_mib"),
            cap_mib=mib or None,
            idle_since=self._at - least if known and least >= self._idle_seconds else None,
        )
