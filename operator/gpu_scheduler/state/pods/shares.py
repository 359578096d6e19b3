"""Pods that ask for a share by themselves: read off the pod, and put in groups as jobs are.

Such a pod is a group of its own, or of its gang. A group looks like a GPUJob with one Job to
whoever plans, so queues, quotas, reservations and victims know one kind of work. It lives as long
as its pods, and nobody writes a status of it. What a pod says of itself is what it asks for, and
never what it holds.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from gpu_scheduler.api import names
from gpu_scheduler.api.gpujob import GPUJobSpec, JobType
from gpu_scheduler.api.share_keys import FURTHER, GANGS, LIMITS_NOT_READ, NOT_READ, OF_CONTAINER
from gpu_scheduler.api.share_request import ShareRequest, request_of
from gpu_scheduler.api.share_words import read
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import DeviceRequest, JobKey, PodUID
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.kube.objects import Meta, Pod
from gpu_scheduler.limits.bounded import digest
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.pods.claims import VOLUMES
from gpu_scheduler.state.pods.containers import line
from gpu_scheduler.state.pods.pod_groups import FIELD, PodGroupStore

# What of a pod says what it asks for, beside ``names.ASKED``.
_ANNOTATIONS = (*FURTHER, *NOT_READ, *LIMITS_NOT_READ)
_TEMPLATE_HASH = "pod-template-hash"  # label of a Deployment's pods; ends their ReplicaSet's name
_MOST_CHARS = 63  # of a kind and a name, in a sentence
_MOST_ASKED = 4096  # characters: 16 containers with three words each
_MOST_PROBLEM = 1024  # characters


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PlainPodRequest:
    """What a pod asks for by itself.

    Attributes:
        request: None where its words mean nothing.
        problem: why they do not; empty = they do.
        interactive: it is not taken from inside its project's quota.
        controlled: somebody makes another pod in its place.
    """

    request: ShareRequest | None
    problem: str
    interactive: bool
    controlled: bool

    @property
    def devices(self) -> tuple[DeviceRequest, ...]:
        """By container."""
        return self.request.devices if self.request is not None else ()

    @property
    def models(self) -> tuple[str, ...]:
        """Accepted parts of product names; empty = any."""
        return self.request.models if self.request is not None else ()

    @property
    def gang(self) -> str:
        """Name of its gang; empty = it is alone."""
        return self.request.gang if self.request is not None else ""

    @property
    def pod_group(self) -> str:
        """The PodGroup that its gang is; empty = it is alone, or of another kind of gang."""
        return "" if self.request is None or self.request.gang_size else self.request.gang


def share_of(pod: Pod) -> PlainPodRequest | None:
    """What a pod asks for by itself; None where it does not."""
    notes = pod.metadata.annotations
    asked = notes.get(names.ASKED)
    if asked is None:
        return None
    said = tuple((key, notes[key]) for key in _ANNOTATIONS if key in notes)
    said += tuple(sorted((k, v) for k, v in notes.items() if OF_CONTAINER.fullmatch(k)))
    tags = pod.metadata.labels
    gangs = tuple((label, tags[label]) for label, _ in GANGS if label in tags)
    controlled = any(owner.controller for owner in pod.metadata.owner_references)
    group = pod.spec.scheduling_group
    told = _RequestTexts(asked, said, gangs, group.pod_group_name if group is not None else "")
    key = digest(*told, pod.spec.restart_policy, controlled)
    share = _KNOWN.get(key)
    if share is None:
        share = _KNOWN[key] = _share(told, pod.spec.restart_policy, controlled)
    return share


class _RequestTexts(NamedTuple):
    asked: str
    notes: tuple[tuple[str, str], ...]
    gangs: tuple[tuple[str, str], ...]
    pod_group: str


# Pods of one template say the same: they share it as long as one of them is there.
_KNOWN: WeakValueDictionary[bytes, PlainPodRequest] = WeakValueDictionary()


def _share(told: _RequestTexts, restart_policy: str, controlled: bool) -> PlainPodRequest:
    asked = told.asked
    forever, field = restart_policy in ("", "Always"), f"metadata.annotations[{names.ASKED}]"
    if len(asked) > _MOST_ASKED:
        problem = f"{field}: {len(asked)} characters; at most {_MOST_ASKED} ask for GPUs"
        return PlainPodRequest(None, problem, forever, controlled)
    try:
        found = read(asked)
    except ValueError as error:
        return PlainPodRequest(None, clip(f"{field}: {error}", _MOST_PROBLEM), forever, controlled)
    request = request_of(found, dict(told.gangs), dict(told.notes), told.pod_group)
    if isinstance(request, tuple):
        problem = clip("; ".join(map(str, request)), _MOST_PROBLEM)
        return PlainPodRequest(None, problem, forever, controlled)
    kind = request.type
    interactive = forever if kind is None else kind is JobType.INTERACTIVE
    return PlainPodRequest(request, "", interactive, controlled)


def group_name(pod: Pod, share: PlainPodRequest) -> str:
    """What the group of a pod is called: who made the pod, or its gang, or else the pod itself.

    Of a ReplicaSet that is its Deployment. Several pods of one are called the same.
    """
    meta = pod.metadata
    owner = next((each for each in meta.owner_references if each.controller), None)
    if share.gang or owner is None:
        return str(_key(meta, share))
    kind, name = owner.kind.lower(), owner.name
    part = f"-{meta.labels.get(_TEMPLATE_HASH, '')}"
    if kind == "replicaset" and len(part) > 1 and name.endswith(part):
        kind, name = "deployment", name.removesuffix(part)
    # Nobody checks what an owner is called.
    return f"{meta.namespace}/{line(kind, _MOST_CHARS)} {line(name, _MOST_CHARS)}"


def _key(meta: Meta, share: PlainPodRequest) -> JobKey:
    named = f"gang {share.gang}" if share.gang else f"pod {meta.name}"
    named = f"podgroup {share.gang}" if share.pod_group else named
    return JobKey(f"{meta.namespace}/{named}")


def group_uid(pod: Pod, share: PlainPodRequest) -> str:
    """What the group of a pod is known by; no object has such a uid."""
    meta = pod.metadata
    if share.pod_group:
        return pod_group_uid(meta.namespace, share.pod_group)
    return f"share/{meta.namespace}/{share.gang}" if share.gang else f"share/{meta.uid}"


def pod_group_uid(namespace: str, name: str) -> str:
    """What the group of a PodGroup's pods is known by."""
    return f"share/{namespace}//{name}"


def alike(pod: Pod) -> str:
    """What is the same of pods that start, or do not, for the same reasons: see ``Doubts``.

    Those of one maker, or of one name, whose containers are the same; what placing a pod changes of
    it is not looked at.
    """
    spec = pod.spec
    what = spec.containers, spec.init_containers, [volume.name for volume in spec.volumes]
    return hashlib.sha256(msgspec.json.encode(what)).hexdigest()


@dataclass(slots=True)
class _Group:
    record: GPUJobRecord
    own: JobRecord
    problems: dict[PodUID, str]  # of its pods; empty = none
    share: PlainPodRequest  # of its first pod

    def judge(self) -> bool:
        """A gang waits while one of its pods has a problem; True when that changed."""
        before = self.record.problem
        self.record.problem = next(filter(None, self.problems.values()), "")
        mounts = self.record.problem.startswith(VOLUMES)
        self.record.problem_as = Reason.VOLUME_NOT_MOUNTED if mounts else Reason.INVALID
        return self.record.problem != before


class ShareGroups:
    """The groups, by uid and by key."""

    def __init__(self) -> None:
        """There are none yet."""
        self.pod_groups = PodGroupStore()
        self.unmounted: Callable[[Pod], str] = lambda pod: ""
        """Why a pod that waits cannot mount a claim; told by ``set_problem`` when that changes."""
        self._groups: dict[str, _Group] = {}
        self._records: dict[JobKey, GPUJobRecord] = {}
        self.records: Mapping[JobKey, GPUJobRecord] = self._records
        self._names: dict[JobKey, str] = {}
        self.names: Mapping[JobKey, str] = self._names  # in sentences, other than by their key

    def name_of(self, key: JobKey) -> str:
        """What a GPUJob, or a group of pods without one, is called in sentences."""
        return self._names.get(key, key)

    def put(self, pod: Pod, share: PlainPodRequest, problem: str) -> tuple[JobRecord, bool]:
        """Take over what a pod says: its group, and whether that is another one than before.

        ``problem``: why it is not planned, whatever it asks for; empty = it is.
        """
        uid, member = group_uid(pod, share), PodUID(pod.metadata.uid)
        known, (size, unknown) = self._groups.get(uid), self._size(pod.metadata.namespace, share)
        problem = problem or unknown
        if known is not None:
            known.problems[member] = problem
            return known.own, known.judge()
        record, own = _group(pod.metadata, share, uid, problem)
        own = _resized(record, own, share, size)
        self._groups[uid] = group = _Group(record, own, {member: problem}, share)
        group.judge()
        self._records[record.key] = record
        if (name := group_name(pod, share)) != record.key:
            self._names[record.key] = name
        record.alike = f"{name} {alike(pod)}"
        return own, True

    def set_problem(self, uid: str, member: PodUID, kind: str, problem: str) -> None:
        """A pod has a problem of a kind, by how that begins, or has it no more."""
        known = self._groups.get(uid)
        if known is not None and (known.problems.get(member) or kind).startswith(kind):
            known.problems[member] = problem
            known.judge()

    def _size(self, namespace: str, share: PlainPodRequest) -> tuple[int, str]:
        """With how many pods the group of one starts, and what is wrong with that."""
        if share.pod_group:
            return self.pod_groups.least(namespace, share.pod_group)
        return (max(1, share.request.gang_size) if share.request is not None else 1), ""

    def resize(self, namespace: str, name: str) -> JobKey | None:
        """A PodGroup says something else; the key of its pods' group."""
        known = self._groups.get(uid := pod_group_uid(namespace, name))
        if known is None:
            return None
        size, unknown = self.pod_groups.least(namespace, name)
        for member in known.problems:
            self.set_problem(uid, member, FIELD, unknown)
        known.own = _resized(known.record, known.own, known.share, size)
        return known.record.key

    def own(self, key: JobKey) -> JobRecord:
        """The Job that stands for a group."""
        return self._groups[self._records[key].uid].own

    def drop(self, uid: str, member: PodUID) -> JobRecord | None:
        """A pod is gone; its group, if that went with it."""
        known = self._groups.get(uid)
        if known is None:
            return None
        known.problems.pop(member, None)
        if known.problems:
            known.judge()
            return None
        del self._groups[uid]
        if self._records.get(known.record.key) is known.record:
            del self._records[known.record.key]
            self._names.pop(known.record.key, None)
        return known.own


def _resized(record: GPUJobRecord, own: JobRecord, share: PlainPodRequest, size: int) -> JobRecord:
    """A group starts with so many pods; 0: they start one by one."""
    request = share.request
    record.spec = _spec(
        share.interactive,
        request.priority if request is not None else 0,
        request.time_limit_seconds if request is not None else None,
        None if not share.gang or request is None or not size else request.distinct_gpus,
        max(1, size),
    )
    record.elastic = bool(share.pod_group)
    return replace(own, parallelism=max(1, size), completions=max(1, size))


def _group(
    meta: Meta, share: PlainPodRequest, uid: str, problem: str
) -> tuple[GPUJobRecord, JobRecord]:
    key, name = _key(meta, share), share.gang or meta.name
    record = GPUJobRecord(
        key=key,
        namespace=meta.namespace,
        name=name,
        uid=uid,
        generation=0,
        created=meta.creation_timestamp,
        deleting=False,
        spec=None,
        problem=problem,
    )
    own = JobRecord(
        uid=uid,
        namespace=meta.namespace,
        name=name,
        owner_uid=uid,
        owner=key,
        version=0,
        deleting=False,
        parallelism=1,
        completions=1,
        suspend=False,
        succeeded=0,
        failed=0,
        failed_indexes=0,
        complete=False,
        failure="",
        created=meta.creation_timestamp,
    )
    return record, own


@lru_cache(maxsize=1024)  # of numbers alone
def _spec(
    interactive: bool, priority: int, time_limit: int | None, distinct: bool | None, size: int
) -> GPUJobSpec:
    """``distinct``: whether pods of the gang share no GPU; None: it is no gang."""
    said = {
        "gpu": 1,  # read off each pod
        "type": JobType.INTERACTIVE if interactive else JobType.TRAINING,
        "priority": priority,
        "timeLimitSeconds": time_limit,
        "gang": None if distinct is None else True,
        "distinctGPUs": distinct,
        "parallelism": size,
    }
    return GPUJobSpec.model_validate(said)
