"""A pod as the operator remembers it: slim, and already judged.

Built once per watch event from the typed object; the object itself is not kept. What the record
says is read off the pod as the API server returned it, never off our own template: admission may
have added overhead, tolerations or defaults. A waiting pod's shape needs its job's request and is
added by ``state.cluster_state``.
"""

from dataclasses import dataclass, replace
from enum import Enum
from sys import intern

import msgspec

from gpu_scheduler.api import names
from gpu_scheduler.api.allocation import Allocation, BadAllocationError, parse
from gpu_scheduler.api.condition import ConditionType
from gpu_scheduler.api.numbers import number
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.kube.objects import Condition, Meta, Pod
from gpu_scheduler.limits.bounded import Bounded, digest
from gpu_scheduler.state.jobs.job import JobRecord, epoch_seconds
from gpu_scheduler.state.pods import claims, containers
from gpu_scheduler.state.pods.containers import Trouble
from gpu_scheduler.state.pods.device_classes import gpus_by_claim
from gpu_scheduler.state.pods.plugin import asked
from gpu_scheduler.state.pods.shares import PlainPodRequest, group_uid, share_of
from gpu_scheduler.state.pods.slim import INDEX, too_heavy

# A pod tells the same one several times within seconds.
_ALLOCATIONS: Bounded[bytes, Allocation] = Bounded(2 << 20)
_BYTES_PER_CHAR = 8  # of an allocation, read
_ENDED = {"Succeeded", "Failed"}
_MOST_CHARS = 2048  # of a sentence that somebody wrote into a pod's status
_MOST_RESOURCES = 16  # of the device plugin's, that a pod asks for
# Why it has not bound a pod: no node does, or its Binding was refused.
_BY_KUBE_SCHEDULER = ("Unschedulable", "SchedulerError")
_SAID_BY_US = frozenset(map(str, Reason))  # before a colon, see ``runtime.status.pod_conditions``
_FAILING = "PodFailed"  # a kubelet holds the phase back until no container runs
_DISRUPTED = (names.CONDITION_DISRUPTION, names.CONDITION_TIME_LIMIT)
# What is to be said of a pod that has no GPUJob to say so, as it stands there.
_WARNINGS = tuple(
    f"{names.GROUP}/{kind}"
    for kind in (ConditionType.PROTECTED, ConditionType.DEVICES_HEALTHY, ConditionType.OWNED)
)


class Stage(Enum):
    """How far a pod has come."""

    WAITING = "waiting"  # needs a decision
    BLOCKED = "blocked"  # not ours to place: foreign gate, other scheduler, being deleted
    PLACED = "placed"  # has an allocation or a node, and has not started
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class PodRecord:
    """What is kept of a pod."""

    uid: PodUID
    namespace: str
    name: str
    version: int  # resourceVersion
    job_uid: str  # of the controlling batch/v1 Job, or of its group (``shares``); empty = none
    index: int
    stage: Stage
    node: str  # where it is or is pinned; empty while it waits
    allocation: Allocation | None
    bound: bool  # spec.nodeName is set
    deleting: bool
    created: str
    phase: str
    reason: str
    message: str
    started: str  # when it was bound, once its kubelet has taken it; by the API server's clock
    disrupted: bool  # DisruptionTarget or our time-limit condition is already there
    ran: bool  # at least one container status exists
    unscheduled: Condition | None  # PodScheduled, where somebody says that it is not
    plugin: tuple[str, ...]  # resources that it asks of the device plugin by itself
    claimed: bool = False  # a DRA driver gives it GPUs that it asks for as of the plugin
    tracked: bool = False  # its Job's controller has not counted its end
    unexplained: bool = False  # an admission policy alone says why it failed (ADR 0073)
    holds: str = ""  # device that it holds for us against the device plugin's other customers
    pruned: str = ""  # when this trial was told to stop early; empty = it was not
    deletion: str = ""  # metadata.deletionTimestamp: by when its grace period is over
    trouble: Trouble | None = None  # why its containers do not start
    initializing: str = ""  # the init container that runs, of a pod that has not started
    failure: Trouble | None = None  # of a pod that has failed
    time_limit: str = ""  # the field that limits how long it runs, and to what; empty: none does
    failing: bool = False  # its kubelet ends it as failed, and its containers still run
    disruption: str = ""  # why it had to leave, as DisruptionTarget says
    saved: float = 0.0  # when its work last was, epoch seconds, as somebody says; 0 = it was not
    blocked: str = ""  # what keeps it from being placed, if that is not ours
    share: PlainPodRequest | None = None  # what it asks for by itself; None: it is no such pod
    names_us: str = ""  # by what it waits for us: a field of its spec; empty: it does not
    warnings: tuple[Condition, ...] = ()  # that stand on it: of what its agent warns
    advised: Condition | None = None  # what stands on it of what to change

    @property
    def unschedulable(self) -> Condition | None:
        """Kube-scheduler's verdict on a pod that has left its gate; what we said is none."""
        told = self.unscheduled
        if told is None or told.reason not in _BY_KUBE_SCHEDULER:
            return None
        return None if told.message.partition(": ")[0] in _SAID_BY_US else told

    @property
    def meta(self) -> Meta:
        """What names exactly this pod in a write."""
        return Meta(name=self.name, namespace=self.namespace, uid=self.uid)


_OF_THE_GATE = ("", "default-scheduler")  # who binds pods that have left our gate
_MUTATED = (
    "a mutating policy or webhook of the cluster has set spec.schedulerName, which its Job has "
    f"otherwise; leave out pods with the label {names.LABEL_JOB} there, and delete the pod"
)


def _owner_job(pod: Pod) -> str:
    for owner in pod.metadata.owner_references:
        if owner.controller and owner.kind == "Job":
            return intern(owner.uid)
    return ""


def _index(pod: Pod) -> int:
    return number(pod.metadata.annotations.get(INDEX, "")) or 0


def _stage(pod: Pod, placed: bool) -> Stage:
    if pod.status.phase in _ENDED:
        return Stage.ENDED
    if pod.status.phase == "Running":
        return Stage.RUNNING
    if placed or pod.spec.node_name:
        return Stage.PLACED
    gates = [g.name for g in pod.spec.scheduling_gates]
    ours = gates == [names.GATE] or (not gates and pod.spec.scheduler_name == names.SCHEDULER_NAME)
    return Stage.WAITING if ours and not pod.metadata.deletion_timestamp else Stage.BLOCKED


def _names_us(pod: Pod) -> str:
    spec = pod.spec
    if any(gate.name == names.GATE for gate in spec.scheduling_gates):
        return f"the scheduling gate {names.GATE}"
    ours = spec.scheduler_name == names.SCHEDULER_NAME
    return f"schedulerName: {names.SCHEDULER_NAME}" if ours else ""


def _allocation(text: str) -> Allocation | None:
    if not text:
        return None
    key = digest(text)
    found = _ALLOCATIONS.get(key)
    if found is None:
        try:
            found = parse(text)
        except BadAllocationError:
            return None
        _ALLOCATIONS.put(key, found, _BYTES_PER_CHAR * len(text))
    return found


def _holds(pod: Pod, holders_in: str) -> str:
    """What a pod holds for us. A label alone proves nothing: anybody may write it elsewhere."""
    meta = pod.metadata
    ours = holders_in and meta.namespace == holders_in
    if not ours or meta.labels.get(names.LABEL_COMPONENT) != names.COMPONENT_HOLDER:
        return ""
    return meta.labels.get(names.LABEL_HOLDS, "")


def record(pod: Pod, holders_in: str = "") -> PodRecord:
    """The record of a pod. An allocation that we could not have written counts as none.

    ``holders_in``: namespace of the operator, the only one in which pods hold devices for us.
    """
    meta, status = pod.metadata, pod.status
    allocation = _allocation(meta.annotations.get(names.ALLOCATION, ""))
    holds = _holds(pod, holders_in)
    # Before it is bound, only a pod that has left our gate may hold an allocation.
    released = not pod.spec.scheduling_gates and pod.spec.scheduler_name != names.SCHEDULER_NAME
    node = pod.spec.node_name or (allocation.node if allocation and released else "")
    scheduled: Condition | None = None
    disrupted, unexplained, failing, pruned, disruption = False, False, False, "", ""
    warnings: tuple[Condition, ...] = ()
    advised: Condition | None = None
    for condition in status.conditions:
        if condition.type == "PodScheduled":
            scheduled = condition
        elif condition.type == "Ready":
            failing = condition.reason == _FAILING
        elif condition.type in _DISRUPTED and condition.status == "True":
            disrupted, unexplained = True, condition.reason == names.SAID_BY_POLICY
            if condition.type == names.CONDITION_DISRUPTION and not unexplained:
                disruption = intern(_disruption(condition))
        elif condition.type == names.CONDITION_PRUNED and condition.status == "True":
            pruned = condition.last_transition_time or ""
        elif condition.type in _WARNINGS and condition.status == "False":
            warnings += (_short(condition),)
        elif condition.type == names.CONDITION_ADVICE:
            advised = _short(condition)
    stage, share, plugin = _stage(pod, placed=bool(node)), share_of(pod), asked(pod)
    heavy = too_heavy(pod) if stage is Stage.WAITING else ""
    if heavy and share is not None:  # told like whatever else is wrong with it
        share = replace(share, request=None, problem=heavy)
    elif heavy or (plugin and stage is Stage.WAITING and share is None):
        stage = Stage.BLOCKED  # of pods that ask by themselves ``lacks`` says it
    return PodRecord(
        uid=PodUID(meta.uid),
        namespace=intern(meta.namespace),
        name=meta.name,
        version=int(meta.resource_version or 0),
        job_uid=_owner_job(pod) if share is None else group_uid(pod, share),
        index=_index(pod),
        stage=stage,
        node=intern(node),
        allocation=allocation if node else None,
        bound=bool(pod.spec.node_name),
        deleting=bool(meta.deletion_timestamp),
        created=meta.creation_timestamp,
        phase=intern(status.phase),
        reason=clip(status.reason, _MOST_CHARS),
        message=clip(status.message, _MOST_CHARS),
        started=_started(pod, scheduled),
        disrupted=disrupted,
        unexplained=unexplained,
        tracked=names.JOB_TRACKING in meta.finalizers,
        ran=bool(status.container_statuses),
        unscheduled=_short(scheduled) if scheduled and scheduled.status == "False" else None,
        plugin=plugin[:_MOST_RESOURCES] if not holds else (),
        claimed=bool(plugin) and not holds and gpus_by_claim(pod),
        holds=holds,
        pruned=pruned,
        deletion=meta.deletion_timestamp or "",
        trouble=_trouble(pod, scheduled) if stage is Stage.PLACED else None,
        initializing=containers.initializing(pod) if stage is Stage.PLACED else "",
        failure=containers.failure(pod),
        time_limit=containers.time_limit(pod),
        failing=failing and stage is not Stage.ENDED,
        disruption=disruption,
        saved=epoch_seconds(meta.annotations.get(names.CHECKPOINTED, "")),
        blocked=_blocked(pod, heavy) if stage is Stage.BLOCKED else _taken(pod, allocation),
        share=share,
        names_us=_names_us(pod) if stage in (Stage.WAITING, Stage.BLOCKED) else "",
        warnings=warnings,
        advised=advised,
    )


def _trouble(pod: Pod, scheduled: Condition | None) -> Trouble | None:
    """Why a pod that has its place does not start there."""
    unbound = scheduled is not None and scheduled.status == "False" and not pod.spec.node_name
    if unbound and scheduled is not None and scheduled.reason in _BY_KUBE_SCHEDULER:
        return claims.trouble(pod, scheduled)
    return containers.trouble(pod)


def _started(pod: Pod, scheduled: Condition | None) -> str:
    """When a pod that its kubelet has taken was bound: startTime is of a moment later.

    That is the node's clock, which may be any; a Binding is dated by the API server.
    """
    told = pod.status.start_time
    if not told:
        return ""
    bound = scheduled is not None and scheduled.status == "True" and scheduled.last_transition_time
    return bound or max(told, pod.metadata.creation_timestamp)


def _disruption(condition: Condition) -> str:
    said = containers.line(condition.message, containers.SAID_CHARS)
    return f"{clip(condition.reason, 63)}: {said}" if said else clip(condition.reason, 63)


def _short(condition: Condition) -> Condition:
    if len(condition.message) <= _MOST_CHARS:
        return condition
    return msgspec.structs.replace(condition, message=clip(condition.message, _MOST_CHARS))


def _blocked(pod: Pod, heavy: str) -> str:
    """What keeps a pod from being placed that nobody is deleting; its gates before all."""
    if pod.metadata.deletion_timestamp:
        return ""
    if heavy:
        return f"pod {pod.metadata.name} says too much to be planned: {heavy}"
    foreign = [gate.name for gate in pod.spec.scheduling_gates if gate.name != names.GATE]
    if (plugin := asked(pod)) and not foreign:
        return f"pod {pod.metadata.name} asks the device plugin for {plugin[0]} as well"
    why = f"names the scheduler {clip(pod.spec.scheduler_name, 63)}"
    why += f": {_MUTATED}" if _is_rendered(pod) else ", which has not bound it yet"
    if foreign:
        why = f"has schedulingGates of others: {clip(', '.join(foreign), 200)}"
    return f"pod {pod.metadata.name} {why}"


def _taken(pod: Pod, allocation: Allocation | None) -> str:
    """Who places a pod of a GPUJob in our stead, since its scheduler was set to another."""
    name = pod.spec.scheduler_name
    if name == names.SCHEDULER_NAME or not _is_rendered(pod) or pod.metadata.deletion_timestamp:
        return ""
    scheduler = clip(name, 63)
    if allocation is None and pod.spec.node_name and pod.status.phase not in _ENDED:
        where = f"was put on node {pod.spec.node_name} by the scheduler {scheduler}, without a GPU"
        return f"pod {pod.metadata.name} {where}: {_MUTATED}"
    if allocation is not None and not pod.spec.node_name and name not in _OF_THE_GATE:
        return f"pod {pod.metadata.name} waits for the scheduler {scheduler}: {_MUTATED}"
    return ""


def _is_rendered(pod: Pod) -> bool:
    """Whether a Job of ours made it, as its label and its owner say."""
    return names.LABEL_JOB in pod.metadata.labels and bool(_owner_job(pod))


def without_stranger(pod: PodRecord, job: JobRecord | None) -> PodRecord:
    """The record, without a Job that is another namespace's.

    Owners live in the namespace of what they own. The API server does not check that, so anybody
    who may create pods could otherwise have them placed as another project's.
    """
    return pod if job is None or job.namespace == pod.namespace else replace(pod, job_uid="")
