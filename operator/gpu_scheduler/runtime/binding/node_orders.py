"""Tells each agent of its node: which pods have which GPUs, and what versions its own objects have.

An agent may read nothing of the API server, so what it needs stands as an annotation on its own pod
(``api.orders``). A node without an agent costs no write, one with an agent at most one in three
seconds, the first at once, and none when nothing changed that the agent goes by. What concerns one
node alone fails alone.
Follows the pods; the operator runs it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeVar

from msgspec.structs import replace

from gpu_scheduler.api import orders
from gpu_scheduler.api.gpuproject import OverCapPolicy
from gpu_scheduler.api.names import LABEL_JOB, ORDERS
from gpu_scheduler.api.orders import GPUNodeAt, Neighbour, OrderedContainer, OrderedPod, Orders
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.paths import pod as pod_path
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.agent_pods import is_agent
from gpu_scheduler.runtime.common.work_name import of_role, work_of
from gpu_scheduler.runtime.informers.changed_nodes import ChangedNodes
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.gpu_containers import (
    container_ids,
    ephemeral_containers,
    gpu_containers,
)
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.state.pods.shares import group_name

log = logging.getLogger(__name__)

_GATHER_SECONDS = 0.2  # what comes together is told together
_PAUSE_SECONDS = 3.0
_AT_ONCE = 8  # writes in flight
_RETRY_SECONDS = 5.0  # at first
# Of other pods those of a daemon are told at once, lest it be taken for a stranger. What any other
# pod is called is told with the next news; if it is a stranger, its report is such news.
_DAEMONS = frozenset({"DaemonSet", "Node"})

_Key = tuple[object, ...]
T = TypeVar("T")


@dataclass(slots=True)
class _Agent:
    """A pod of an agent, and what it was told last."""

    namespace: str
    name: str
    uid: str
    node: str
    containers: dict[str, str]  # a container that starts anew must learn the versions anew
    told: _Key | None = None


@dataclass(frozen=True, slots=True)
class _OnNode:
    """What is kept of a pod beside its record."""

    node: str
    job: str
    containers: tuple[OrderedContainer, ...]
    daemon: bool
    ephemeral: Mapping[str, str]


class NodeVersions(NamedTuple):
    """Versions of a node's own objects, as its agent should have them.

    Attributes:
        gpu_node: uid and resourceVersion of its GPUNode; None where there is none.
        lease: resourceVersion of its Lease; empty where there is none.
        overdue: whether that should have been renewed: only then is its version news, since it
            changes with every heartbeat.
    """

    gpu_node: tuple[str, str] | None
    lease: str
    overdue: bool


class NodeOrders:
    """Keeps the agents' annotations true."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        namespace: str,
        changed: ChangedNodes,
        versions: Callable[[str], NodeVersions],
        *,
        usage_digest: Callable[[str], str] = lambda uid: "",
        clock: Callable[[], float],
    ) -> None:
        """Know no agent yet.

        Args:
            state: What is known.
            client: To write with.
            namespace: Of the agents; elsewhere a label proves nothing.
            changed: Nodes of which others know that something has changed.
            versions: Of a node's own objects.
            usage_digest: Of the key with which the agent of a UID is asked; empty: it is not.
            clock: Monotonic seconds.
        """
        self._state = state
        self._client = client
        self._namespace = namespace
        self._changed = changed
        self._versions = versions
        self._usage_digest = usage_digest
        self._clock = clock
        self._agents: dict[str, dict[PodUID, _Agent]] = {}  # by node
        self._pods: dict[PodUID, _OnNode] = {}
        self._on: dict[str, dict[PodUID, None]] = {}
        self._due: dict[str, None] = {}
        self._told_at: dict[str, float] = {}
        self._failures: Failures[str] = Failures(clock, first_seconds=_RETRY_SECONDS)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.writes = 0
        """Annotations written."""

    def observe(self, pod: Pod, record: PodRecord) -> None:
        """A pod was added or changed."""
        known = self._pods.get(record.uid)
        if not record.node or record.stage is Stage.ENDED:
            if known is not None:
                self.gone(record.uid)
            return
        held = gpu_containers(pod, record.allocation) if record.allocation else ()
        kinds = {owner.kind for owner in pod.metadata.owner_references if owner.controller}
        job = pod.metadata.labels.get(LABEL_JOB, "")
        if record.share is not None:
            job = group_name(pod, record.share).partition("/")[2]
        added = ephemeral_containers(pod) if held else {}
        new = _OnNode(record.node, job, held, bool(kinds & _DAEMONS), added)
        if known is not None and known.node != new.node:
            self.gone(record.uid)
        self._pods[record.uid] = new
        self._on.setdefault(record.node, {})[record.uid] = None
        if is_agent(pod, record, self._namespace):
            self._agent(pod, record)
        if new != known:
            self._changed.add(record.node)

    def gone(self, uid: PodUID) -> None:
        """A pod is gone, or has ended."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        _take_out(self._on, known.node, uid)
        _take_out(self._agents, known.node, uid)
        self._changed.add(known.node)

    async def run(self) -> NoReturn:
        """Tell for ever."""
        while True:
            await self._changed.some.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            for node in self._changed.take():
                self._due |= dict.fromkeys((node,) if node else self._agents)
            now = self._clock()
            self._told_at = {
                node: at for node, at in self._told_at.items() if now - at < _PAUSE_SECONDS
            }
            due = [
                node
                for node in self._due
                if node not in self._told_at and self._failures.may_try(node)
            ]
            for node in due:
                del self._due[node]
            await asyncio.gather(*(self._tell(node) for node in due))
            if self._due:
                self._changed.some.set()

    def orders(self, node: str) -> tuple[Orders, _Key]:
        """What a node's agent must know, and the part of it that is news when it changes."""
        pods: list[OrderedPod] = []
        others: list[Neighbour] = []
        telling: list[Neighbour] = []
        for uid in sorted(self._on.get(node, ())):
            record, known = self._state.pods.known.get(uid), self._pods[uid]
            if record is None:
                continue
            project = self._state.projects.owner(record.namespace)
            if known.containers:
                pods.append(self._ours(record, known))
                continue
            other = Neighbour(
                uid,
                record.namespace,
                record.name,
                tenant=project is not None,
                whole_gpus=bool(record.plugin),
            )
            others.append(other)
            if known.daemon or record.plugin:
                telling.append(other)
        found, version, overdue = self._versions(node)
        result = Orders(
            node_uid=self._state.nodes.uid(node),
            v=orders.VERSION,
            gpu_node=GPUNodeAt(*found) if found else None,
            lease_version=version,
            pods=tuple(pods),
            others=tuple(others),
        )
        key = (
            *(result.node_uid, found, version if overdue or not version else "known"),
            *(result.pods, tuple(telling)),
        )
        return result, key

    def _ours(self, record: PodRecord, known: _OnNode) -> OrderedPod:
        project = self._state.projects.owner(record.namespace)
        policy = self._state.projects.records[project].over_cap_policy if project else ""
        work = work_of(self._state, record)
        return OrderedPod(
            uid=record.uid,
            namespace=record.namespace,
            name=record.name,
            containers=known.containers,
            job=known.job,
            work=of_role(work[0].key, self._role(record)) if work is not None else "",
            project=project or "",
            kill=policy == OverCapPolicy.KILL,
            ephemeral=dict(known.ephemeral),
        )

    def _role(self, record: PodRecord) -> str:
        return self._state.workloads.role_of(record) if record.share is None else ""

    def _agent(self, pod: Pod, record: PodRecord) -> None:
        ids = container_ids(pod)
        if not ids:
            return  # there is nobody yet who could read it
        here = self._agents.setdefault(record.node, {})
        known = here.get(record.uid)
        if known is None:
            meta = pod.metadata
            here[record.uid] = _Agent(meta.namespace, meta.name, meta.uid, record.node, ids)
            self._changed.add(record.node)
        elif known.containers != ids:
            known.containers = ids
            known.told = None
            self._changed.add(record.node)

    async def _tell(self, node: str) -> None:
        try:
            async with self._slots:
                await asyncio.sleep(0)  # a few nodes at a time, and others in between
                for agent in tuple(self._agents.get(node, {}).values()):
                    await self._tell_one(agent)
            self._failures.over(node)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            if not isinstance(error, errors.NotFound):  # it is about to be gone from here too
                if self._failures.note(node, error):
                    log.warning("telling the agent of %s: %s", node, error)
                self._changed.add(node)
        except Exception:  # this node's agent goes on with what it knew
            unexpected("node-orders", node)

    async def _tell_one(self, agent: _Agent) -> None:
        told, key = self.orders(agent.node)
        if agent.told == key:
            return
        told = replace(told, usage_digest=self._usage_digest(agent.uid))
        body = {"metadata": {"uid": agent.uid, "annotations": {ORDERS: orders.dumps(told)}}}
        self._told_at[agent.node] = self._clock()
        agent.told = key  # before the answer: what is news meanwhile must not be forgotten
        try:
            await self._client.merge_patch(pod_path(agent.namespace, agent.name), body)
        except BaseException:
            agent.told = None
            raise
        self.writes += 1


def _take_out(index: dict[str, dict[PodUID, T]], node: str, uid: PodUID) -> None:
    there = index.get(node, {})
    there.pop(uid, None)
    if not there:
        index.pop(node, None)
