"""A pod as the operator remembers it: slim, and already judged.

Built once per watch event from the typed object; the object itself is not kept. What the record
says is read off the pod as the API server returned it, never off our own template: admission may
have added overhead, tolerations or defaults. A waiting pod's kind needs its job's request and is
added by ``state.cluster_state``.
"""

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from sys import intern

from gpu_scheduler.api import names
from gpu_scheduler.api.allocation import Allocation, BadAllocationError, parse
from gpu_scheduler.api.condition import ConditionType
from gpu_scheduler.api.numbers import number
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.tokens import token_of
from gpu_scheduler.core.wording import clip
from gpu_scheduler.kube.objects import Condition, Meta, Pod
from gpu_scheduler.state import containers
from gpu_scheduler.state.containers import Trouble
from gpu_scheduler.state.jobs import JobRecord, epoch_seconds
from gpu_scheduler.state.plugin import asked
from gpu_scheduler.state.shares import Share, group_uid, share_of

INDEX = "batch.kubernetes.io/job-completion-index"
_ENDED = {"Succeeded", "Failed"}
_SAID_BY_US = frozenset(map(str, Reason))  # before a colon, see ``runtime.pod_conditions``
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
    started: str  # status.startTime
    disrupted: bool  # DisruptionTarget or our time-limit condition is already there
    ran: bool  # at least one container status exists
    unscheduled: Condition | None  # PodScheduled, where somebody says that it is not
    plugin: tuple[str, ...]  # resources that it asks of the device plugin by itself
    holds: str = ""  # device that it holds for us against the device plugin's other customers
    report_token: str = ""  # with which a trial that runs may report
    checkpoint_token: str = ""  # with which it may say that it has saved its work
    pruned: str = ""  # when this trial was told to stop early; empty = it was not
    deletion: str = ""  # metadata.deletionTimestamp: by when its grace period is over
    trouble: Trouble | None = None  # why its containers do not start
    initializing: str = ""  # the init container that runs, of a pod that has not started
    failure: Trouble | None = None  # of a pod that has failed
    disruption: str = ""  # why it had to leave, as DisruptionTarget says
    saved: float = 0.0  # when its work last was, epoch seconds, as somebody says; 0 = it was not
    blocked: str = ""  # what keeps it from being placed, if that is not ours
    share: Share | None = None  # what it asks for by itself; None: it is no such pod
    warnings: tuple[Condition, ...] = ()  # that stand on it: of what its agent warns

    @property
    def unschedulable(self) -> Condition | None:
        """Kube-scheduler's verdict on a pod that has left its gate; what we said is none."""
        told = self.unscheduled
        if told is None or told.reason != "Unschedulable":
            return None
        return None if told.message.partition(": ")[0] in _SAID_BY_US else told

    @property
    def meta(self) -> Meta:
        """What names exactly this pod in a write."""
        return Meta(name=self.name, namespace=self.namespace, uid=self.uid)


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


@lru_cache(maxsize=4096)  # a pod tells the same one several times within seconds
def _allocation(text: str) -> Allocation | None:
    try:
        return parse(text) if text else None
    except BadAllocationError:
        return None


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
    disrupted, pruned, disruption = False, "", ""
    warnings: tuple[Condition, ...] = ()
    for condition in status.conditions:
        if condition.type == "PodScheduled":
            scheduled = condition
        elif condition.type in _DISRUPTED and condition.status == "True":
            disrupted = True
            if condition.type == names.CONDITION_DISRUPTION:
                disruption = intern(_disruption(condition))
        elif condition.type == names.CONDITION_PRUNED and condition.status == "True":
            pruned = condition.last_transition_time or ""
        elif condition.type in _WARNINGS and condition.status == "False":
            warnings += (condition,)
    stage, share = _stage(pod, placed=bool(node)), share_of(pod)
    told = meta.annotations if stage is not Stage.ENDED else {}
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
        reason=status.reason,
        message=status.message,
        started=status.start_time,
        disrupted=disrupted,
        ran=bool(status.container_statuses),
        unscheduled=scheduled if scheduled and scheduled.status == "False" else None,
        plugin=asked(pod) if allocation is None and not holds else (),
        holds=holds,
        report_token=token_of(told.get(names.REPORT_URL, "")),
        checkpoint_token=token_of(told.get(names.CHECKPOINT_URL, "")),
        pruned=pruned,
        deletion=meta.deletion_timestamp or "",
        trouble=containers.trouble(pod) if stage is Stage.PLACED else None,
        initializing=containers.initializing(pod) if stage is Stage.PLACED else "",
        failure=containers.failure(pod),
        disruption=disruption,
        saved=epoch_seconds(meta.annotations.get(names.CHECKPOINTED, "")),
        blocked=_blocked(pod) if stage is Stage.BLOCKED else "",
        share=share,
        warnings=warnings,
    )


def _disruption(condition: Condition) -> str:
    said = containers.line(condition.message, containers.SAID_CHARS)
    return f"{clip(condition.reason, 63)}: {said}" if said else clip(condition.reason, 63)


def _blocked(pod: Pod) -> str:
    """What keeps a pod from being placed that nobody is deleting; its gates before all."""
    if pod.metadata.deletion_timestamp:
        return ""
    foreign = [gate.name for gate in pod.spec.scheduling_gates if gate.name != names.GATE]
    why = f"names the scheduler {clip(pod.spec.scheduler_name, 63)}, which has not bound it yet"
    if foreign:
        why = f"has schedulingGates of others: {clip(', '.join(foreign), 200)}"
    return f"pod {pod.metadata.name} {why}"


def without_stranger(pod: PodRecord, job: JobRecord | None) -> PodRecord:
    """The record, without a Job that is another namespace's.

    Owners live in the namespace of what they own. The API server does not check that, so anybody
    who may create pods could otherwise have them placed as another project's.
    """
    return pod if job is None or job.namespace == pod.namespace else replace(pod, job_uid="")
