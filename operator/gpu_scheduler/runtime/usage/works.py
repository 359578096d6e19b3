"""The work that holds GPUs now, each with its pods and what they were seen doing."""

from collections import defaultdict
from collections.abc import Collection, Iterable

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
from gpu_scheduler.usage.answer import ShareUse

_A_TURN = 500  # workloads
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
        known = [share.idle_seconds for share in self.shares]
        return min((each or 0 for each in known), default=None) if None not in known else None

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

    def of_containers(self, name: str) -> float | None:
        """A figure of its containers, in all, each once; None: not known of one."""
        each = {(share.pod_uid, share.container): getattr(share, name) for share in self.shares}
        return sum(each.values()) if each and None not in each.values() else None


class LiveWorks:
    """Remembers: work of which nothing is new stays the same object."""

    def __init__(self, state: ClusterState) -> None:
        """Nothing is known yet."""
        self._state = state
        self._known: dict[str, LiveWork] = {}

    async def of(self, nodes: Iterable[NodeHeld]) -> dict[str, LiveWork]:
        """All work that holds something on these nodes, by key. In pieces."""
        by_work = defaultdict[str, list[Held]](list)
        for node in nodes:
            for held in node.pods:
                if held.name is not None and held.milli:
                    by_work[held.name.key].append(held)
        found: dict[str, LiveWork] = {}
        gpujobs, groups = self._state.gpujobs, self._state.groups.records
        async for part in in_parts(by_work.items(), _A_TURN):
            for key, pods in part:
                of, known = pods[0].job, self._known.get(key)
                job = gpujobs.get(of) or groups.get(of)
                if job is None:
                    continue  # it has just gone
                if known is None or known.job is not job or known.held != pods:
                    known = _live_work(job, pods)
                found[key] = known
        self._known = found
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
    whole = sum(share.share for share in shares)
    if not whole or any(share.busy is None for share in shares):
        return None
    return sum(share.share * (share.busy or 0.0) for share in shares) / whole


def sum_of(shares: Collection[ShareUse], name: str) -> float | None:
    """A figure of shares, in all; None: not known of one, or there is none."""
    known = [getattr(share, name) for share in shares]
    return sum(known) if known and None not in known else None
