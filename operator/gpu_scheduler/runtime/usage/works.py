"""The work that holds GPUs now, each with its pods and what they were seen doing."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from operator import add

import msgspec

from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.limits.in_pieces import in_parts
from gpu_scheduler.runtime.common.work_name import GPUJOB, WorkName
from gpu_scheduler.runtime.usage.held import Held, HeldGpus, NodeHeld
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.usage.advice.work import WorkType
from gpu_scheduler.usage.answer import ShareUse, Totals

_A_TURN = 200  # workloads
_SERVICES = frozenset({"deployment", "statefulset", "daemonset", "replicaset"})


class LiveWork(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A workload that holds GPUs; another object as soon as anything of it is another one.

    Attributes:
        name: by which it is known.
        job: the GPUJob, or the record of its group.
        held: what each pod of it holds on each node.
        pods: these, with what each was seen doing; nothing where it was not.
        shares: of all of them.
        milli: that they hold.
    """

    name: WorkName
    job: GPUJobRecord
    held: list[Held]
    pods: list[tuple[PodRecord, tuple[ShareUse, ...]]]
    shares: list[ShareUse]
    milli: int

    @property
    def project(self) -> str:
        """Who is charged; empty: nobody."""
        return self.held[0].project

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.job.namespace

    @property
    def type(self) -> WorkType:
        """What it is for."""
        return type_of(self.name, self.job)

    @property
    def shown(self) -> str:
        """What it is called: the GPUJob's name, or kind/name."""
        name = self.name
        return name.name if name.kind == GPUJOB else f"{name.kind}/{name.name}"

    def requested_gpus(self) -> float | None:
        """What a GPUJob asks for, with all pods that may run at once; None: in MiB, or nobody."""
        return requested_gpus(self.job) if self.name.kind == GPUJOB else None

    def busy(self) -> float | None:
        """Share of time with a kernel, mean over its shares; None: not known of one."""
        return busy_of(self.shares)

    def used(self) -> float | None:
        """GPUs in use, of each share at most the share; None: not known of one."""
        known = [(share.share, share.busy) for share in self.shares]
        if not known or any(busy is None for _, busy in known):
            return None
        return sum(min(share, busy or 0.0) for share, busy in known)

    def idle_seconds(self) -> int | None:
        """Since the last kernel of any of it; None: not known of one."""
        known = [share.idle_seconds for share in self.shares if share.idle_seconds is not None]
        return min(known) if known and len(known) == len(self.shares) else None

    def idle_since(self) -> float:
        """When its last kernel was, monotonic seconds, where that is known of all."""
        return max(
            held.answered - (use.idle_seconds or 0) for held in self.held for use in held.uses
        )

    def summed(self, name: str) -> float | None:
        """A figure of its shares, in all; None: not known of one."""
        return sum_of(self.shares, name)

    def by_container(self) -> dict[str, list[ShareUse]]:
        """Shares by the container's name; nothing where each pod has one container with GPUs."""
        found = defaultdict[str, list[ShareUse]](list)
        for share in self.shares:
            found[share.container].append(share)
        each = {(share.pod_uid, share.container) for share in self.shares}
        return found if len(each) > len({pod_uid for pod_uid, _ in each}) else {}

    def by_pod(self) -> dict[str, Totals]:
        """Since its containers began, of each pod that was seen."""
        return {
            pod.name: reduce(add, (share.totals for share in shares))
            for pod, shares in self.pods
            if shares
        }

    def of_containers(self, name: str) -> float | None:
        """A figure of its containers, in all, each once; None: not known of one."""
        each = {(share.pod_uid, share.container): getattr(share, name) for share in self.shares}
        return sum(each.values()) if each and None not in each.values() else None


class LiveWorks:
    """Remembers: work of which nothing is new stays the same object.

    What of a node holds GPUs is looked at where the node is another object than before.
    """

    def __init__(self, state: ClusterState) -> None:
        """Nothing is known yet."""
        self._state = state
        self._known: dict[str, LiveWork] = {}
        self._nodes: frozenset[NodeHeld] = frozenset()
        self._lost: set[str] = set()  # whose records were not there

    async def of(self, nodes: Collection[NodeHeld]) -> dict[str, LiveWork]:
        """All work that holds something on these nodes, by key. In pieces."""
        now = frozenset(nodes)
        renewed = self._lost | _keys_on(now ^ self._nodes)
        works = [work for key, work in self._known.items() if key not in renewed]
        found, lost = dict[str, LiveWork](), set[str]()
        gpujobs, groups = self._state.gpujobs, self._state.groups.records
        async for part in in_parts(works, _A_TURN):
            for work in part:
                of, key = work.job.key, work.name.key
                if (gpujobs.get(of) or groups.get(of)) is work.job:
                    found[key] = work
                else:
                    renewed.add(key)
        await asyncio.sleep(0)
        async for some in in_parts(_by_work(nodes, renewed).items(), _A_TURN):
            for key, pods in some:
                of, known = pods[0].job, self._known.get(key)
                job = gpujobs.get(of) or groups.get(of)
                if job is None:
                    lost.add(key)  # it has just gone
                elif known is None or known.job is not job or known.held != pods:
                    found[key] = _live_work(job, pods)
                else:
                    found[key] = known
        self._known = found
        self._lost = lost
        self._nodes = now
        return found


def _keys_on(nodes: Iterable[NodeHeld]) -> set[str]:
    return {held.name.key for node in nodes for held in node.pods if held.name is not None}


def _by_work(nodes: Iterable[NodeHeld], keys: Collection[str]) -> Mapping[str, list[Held]]:
    """What each of these works holds."""
    found = defaultdict[str, list[Held]](list)
    if not keys:
        return found
    for node in nodes:
        for held in node.pods:
            if held.name is not None and held.milli and (key := held.name.key) in keys:
                found[key].append(held)
    return found


def _live_work(job: GPUJobRecord, held: list[Held]) -> LiveWork:
    name = held[0].name
    assert name is not None
    pods = [(each.pod, each.uses) for each in held if each.pod is not None]
    shares = [use for each in held for use in each.uses]
    return LiveWork(name, job, held, pods, shares, sum(each.milli for each in held))


async def live_works(state: ClusterState, seen: SeenUse, now: float) -> dict[str, LiveWork]:
    """All of it by key; ``now``: monotonic seconds."""
    return await LiveWorks(state).of((await HeldGpus(state, seen).read(now)).values())


def in_step(work: LiveWork) -> bool:
    """Whether its pods do the same and wait for each other; of who asks by itself nobody knows."""
    spec = work.job.said or work.job.spec
    if work.name.kind != GPUJOB or spec is None:
        return True
    if spec.roles is not None:
        return len(spec.roles) == 1 and spec.gang is not False
    return spec.gang is True and spec.sweep is None


def type_of(name: WorkName, job: GPUJobRecord) -> WorkType:
    """What work is for."""
    if name.kind in _SERVICES:
        return WorkType.SERVICE
    return WorkType(str(job.spec.type)) if job.spec is not None else WorkType.TRAINING


def gpus(milli: int) -> float:
    """GPUs of milli-GPU."""
    return milli / DEVICE_MILLI


def requested_gpus(job: GPUJobRecord) -> float | None:
    """What a GPUJob asks for, with all pods that may run at once; None: in MiB, or nothing."""
    asked = job.requests.values()
    devices = [(role.at_once * each.count, each) for role in asked for each in role.devices]
    if not devices or any(each.mib for _, each in devices):
        return None
    return gpus(sum(count * each.milli for count, each in devices))


def busy_of(shares: Collection[ShareUse]) -> float | None:
    """Share of time with a kernel, mean over shares; None: not known of one, or there is none."""
    whole = used = 0.0
    for share in shares:
        if share.busy is None:
            return None
        whole += share.share
        used += share.share * share.busy
    return used / whole if whole else None


def sum_of(shares: Collection[ShareUse], name: str) -> float | None:
    """A figure of shares, in all; None: not known of one, or there is none."""
    known = [getattr(share, name) for share in shares]
    return sum(known) if known and None not in known else None
