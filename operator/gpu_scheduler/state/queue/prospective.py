"""Pods that GPUJobs ask for and that do not exist: they wait in the planner's queue like others.

How many there are follows from the GPUJob, its Jobs and their pods alone. What exists, what a Job
makes without being told, what is nominated and what is prospective are together never more than may
run at once, or than are left to run. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice

from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.core.model.affinity import AffinityInfo
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.core.window import could_run
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.affinity.pod_affinity import pod_affinity_of
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.jobs.role_requests import RoleRequest
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.state.queue.nominated import NominatedPod

SPARE = 20  # pods beside those that could run


@dataclass(frozen=True, slots=True)
class ProspectivePod:
    """One of them.

    Attributes:
        uid: Under which the planner knows it; no object ever has it.
        job: Its GPUJob.
        role: Which of the GPUJob's Jobs makes it.
        index: Of a gang's member the one that it will have; others are counted.
        pod: As the Job would make it, as far as that can be known.
        affinity: Who it is to rules about other pods, and its own.
        expected_pods: Pods of its role that exist, or that Jobs make without being told.
        first: Whether its role has no Job yet.
    """

    uid: PodUID
    job: JobKey
    role: str
    index: int
    pod: Pod
    affinity: AffinityInfo
    expected_pods: int
    first: bool

    @property
    def namespace(self) -> str:
        """Where it will be."""
        return self.pod.metadata.namespace

    @property
    def name(self) -> str:
        """What it will be called but for the end, which is random."""
        return self.pod.metadata.name


def prospective_pods(
    job: GPUJobRecord,
    jobs: Iterable[JobRecord],
    pods: Iterable[PodRecord],
    nominated: Sequence[NominatedPod],
    *,
    left: int | None,
    most: Callable[[RoleRequest], int],
) -> list[ProspectivePod]:
    """The prospective pods of a GPUJob whose templates are known, role by role.

    Args:
        job: The GPUJob.
        jobs: Its Jobs, also those that are being deleted.
        pods: Its pods.
        nominated: Those that have a place already.
        left: Trials that have not ended, of a sweep; else None.
        most: How many of a role there are at most, with those that are made; not of gangs.
    """
    if job.spec is None or not job.templates:
        return []
    gang = is_gang(job.spec)
    live: dict[str, list[int]] = {}
    for pod in pods:
        if pod.stage is not Stage.ENDED:
            live.setdefault(pod.job_uid, []).append(pod.index)
            if gang and pod.stage is Stage.WAITING:
                return []  # all of its members are made, or none: a Job narrows where others lack
    by_role: dict[str, list[JobRecord]] = {}
    going: Counter[str] = Counter()  # pods of Jobs that are being deleted, by role
    for each in jobs:
        if each.deleting:
            going[each.role] += len(live.get(each.uid, ()))
        else:
            by_role.setdefault(each.role, []).append(each)
    found: list[ProspectivePod] = []
    for role, request in job.requests.items():
        own, template = by_role.get(role, []), job.templates.get(role)
        if template is None:
            continue
        mine = [each for each in nominated if each.role == role]
        coming = sum(expected_pods(each, len(live.get(each.uid, ()))) for each in own)
        # The watch may show a Job as wide as it was asked to be before the answer has come.
        parallelism = sum(each.parallelism for each in own if not (each.ended or each.suspend))
        untold = sum(1 for each in mine if not each.asked and each.parallelism > parallelism)
        there = coming + going[role] + untold
        room = min(request.at_once, _left(request, own, left)) - there
        if room <= 0:
            continue
        taken = {each.index for each in mine}
        if gang:
            indexes = islice(_missing(request, own, live, taken), room)
        else:
            room = room if room <= SPARE else min(room, max(0, most(request) - there))
            # Counted behind those that are made, so that who is planned next stays who it was.
            indexes = islice((i for i in count(there) if i not in taken), room)
        affinity = pod_affinity_of(template)
        for index in indexes:
            uid = PodUID(f"prospective/{job.uid}/{role}/{index}")
            found.append(
                ProspectivePod(uid, job.key, role, index, template, affinity, coming, not own)
            )
    return found


def most_prospective(cluster: Cluster, ceiling_milli: int, request: RoleRequest) -> int:
    """Pods that the GPUs could hold if they were empty, and ``SPARE``.

    A sweep of 100,000 trials at once does not make the planner look at as many: what waits beyond
    the next few tells it nothing.

    Args:
        cluster: its devices are looked at.
        ceiling_milli: what the project may hold.
        request: what one pod asks for.
    """
    devices = zip(cluster.dev_model, cluster.dev_usable_mib, strict=True)
    return could_run(request.devices, request.models, devices, ceiling_milli) + SPARE


def expected_pods(job: JobRecord, live: int) -> int:
    """Pods of a Job that exist (``live``), or that its controller makes without being told."""
    if job.ended or job.suspend:
        return live
    return max(live, min(job.parallelism, unfinished(job)))


def unfinished(job: JobRecord) -> int:
    """Indexes of a Job that have not ended."""
    return 0 if job.ended else job.completions - job.succeeded - job.failed_indexes


def _left(request: RoleRequest, own: Sequence[JobRecord], left: int | None) -> int:
    """Pods of a role that are still to run, or run."""
    if left is not None:
        return left
    return sum(map(unfinished, own)) if own else request.pods


def _missing(
    request: RoleRequest, own: Sequence[JobRecord], live: Mapping[str, list[int]], taken: set[int]
) -> Iterator[int]:
    """Indexes that have not ended and have no pod."""
    over = set(taken)
    for job in own:
        over.update(job.completed, job.lost, live.get(job.uid, ()))
    return (index for index in range(request.pods) if index not in over)
