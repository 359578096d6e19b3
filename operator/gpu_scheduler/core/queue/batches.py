"""Runs of groups: those of one job that follow one another and are alike.

A job with hundreds of equal pods is one run, and its groups are made one by one when they are asked
for: most have to wait, and about those nothing is asked but what they are like. Whether groups can
never start is said of each signature when the first of it is made.
"""

from collections import Counter
from typing import Protocol

from gpu_scheduler.core.affinity.signatures import AffinitySignatures
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.pod_request import PodRequests
from gpu_scheduler.core.model.request import Gang, Project, WaitingJob, WaitingPod
from gpu_scheduler.core.queue.order import job_rank
from gpu_scheduler.core.queue.pod_group import (
    GroupRequest,
    PodGroup,
    Position,
    RequestKey,
    Signature,
    ordered,
    size,
)

_LONE = Gang(1, 1)


class Judge(Protocol):
    """Says what can never be."""

    def never(self, group: PodGroup) -> Reason | None:
        """Why a group can never start on these nodes, or in its project; None when it may."""


class Batch:
    """So many groups of a job, from one of its waiting pods on."""

    __slots__ = ("_groups", "count", "index", "job", "position", "project", "signature")

    def __init__(
        self,
        job: WaitingJob,
        project: Project,
        signature: Signature,
        index: int,
        group: PodGroup | None,
    ) -> None:
        """``index``: of the first pod; ``group``: the first one, where it is made already."""
        self.job = job
        self.project = project
        self.signature = signature
        self.count = 1
        self.index = index
        self._groups = [] if group is None else [group]
        self.position: Position = (*job_rank(job), index)
        """Of the first group."""

    def group(self, number: int) -> PodGroup:
        """One of them; those before it have been asked for."""
        if number == len(self._groups):
            index = self.index + number
            (pod_request,) = self.signature.needs.counts
            members = ((self.job.pods[index], pod_request),)
            self._groups.append(PodGroup(self.job, self.project, members, self.signature, index))
        return self._groups[number]


class Batches:
    """Makes them, with one object for all groups that have the same needs, or signature."""

    def __init__(self, pod_requests: PodRequests, affinity_signatures: AffinitySignatures) -> None:
        self._pod_requests = pod_requests
        self._affinity_signatures = affinity_signatures
        self._needs: dict[RequestKey, GroupRequest] = {}
        self._signatures: dict[tuple[object, ...], Signature] = {}

    def __len__(self) -> int:
        """How many signatures are remembered."""
        return len(self._signatures)

    def of(self, job: WaitingJob, project: Project, judge: Judge) -> list[Batch]:
        """The runs of a job, in the order of its pods."""
        if job.gang is not None:
            return [self._of_gang(job, project, job.gang, judge)] if job.pods else []
        found: list[Batch] = []
        last: WaitingPod | None = None
        for index, pod in enumerate(job.pods):
            if last is not None and _alike(pod, last):
                found[-1].count += 1
            else:
                found.append(self._of_pod(job, project, pod, index, judge))
                last = pod
        return found

    def _of_pod(
        self, job: WaitingJob, project: Project, pod: WaitingPod, index: int, judge: Judge
    ) -> Batch:
        pod_request = self._pod_requests.of(pod.pod_shape)
        request_key = (id(pod_request), pod.avoid, self._affinity_signatures.of(pod.affinity))
        needs = self._needs.get(request_key)
        if needs is None:
            needs = self._needs[request_key] = GroupRequest(
                request_key, _LONE, {pod_request: 1}, pod_request.least_milli
            )
        signature, new = self._signature(job, project, needs, (pod.role,))
        if new:
            _judge(PodGroup(job, project, ((pod, pod_request),), signature, index), judge)
        return Batch(job, project, signature, index, None)

    def _of_gang(self, job: WaitingJob, project: Project, gang: Gang, judge: Judge) -> Batch:
        members = [(pod, self._pod_requests.of(pod.pod_shape)) for pod in job.pods]
        told = self._affinity_signatures.of
        counted = Counter(
            (id(pod_request), pod.avoid, told(pod.affinity)) for pod, pod_request in members
        )
        request_key = (
            tuple(counted.items()),
            gang.distinct,
            gang.topology,
            gang.nodes,
            gang.devices,
        )
        needs = self._needs.get(request_key)
        if needs is None:
            least = sum(pod_request.least_milli for _, pod_request in members)
            counts = Counter(pod_request for _, pod_request in members)
            needs = self._needs[request_key] = GroupRequest(request_key, gang, counts, least)
        signature, new = self._signature(job, project, needs, tuple(pod.role for pod in job.pods))
        group = PodGroup(job, project, ordered(members, size), signature, 0)
        if new:
            _judge(group, judge)
        return Batch(job, project, signature, 0, group)

    def _signature(
        self, job: WaitingJob, project: Project, needs: GroupRequest, roles: tuple[str, ...]
    ) -> tuple[Signature, bool]:
        """The signature of a job's groups, and whether it is a new one."""
        gang = job.gang
        key = (
            needs,
            project.name,
            job.priority,
            job.time_limit_seconds,
            job.doubtful,
            job.unseen,
            roles,
            None if gang is None else (gang.missing, gang.size),
        )
        signature = self._signatures.get(key)
        if signature is not None:
            return signature, False
        signature = self._signatures[key] = Signature(needs, job.priority, job.time_limit_seconds)
        return signature, True


def _alike(pod: WaitingPod, other: WaitingPod) -> bool:
    return (
        pod.pod_shape is other.pod_shape
        and pod.affinity is other.affinity
        and pod.avoid == other.avoid
        and pod.role == other.role
    )


def _judge(group: PodGroup, judge: Judge) -> None:
    """Say of a new signature whether its groups may start, and can ever."""
    signature = group.signature
    signature.never = judge.never(group)
    signature.startable = signature.never is None and group.complete and signature.needs.usable
    signature.deserving = signature.startable and not group.job.doubtful
