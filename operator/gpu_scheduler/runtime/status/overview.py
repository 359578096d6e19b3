"""What all projects hold and wait for, from one pass over the jobs.

Statuses of a thousand projects cost one look and not a thousand. Invariant: a value of the moment,
never kept across a change of the state.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.api.gpuproject import ModelHoldings
from gpu_scheduler.api.states import NEVER
from gpu_scheduler.core.fairness.flavors import by_length, flavor_of
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Wait
from gpu_scheduler.core.model.request import JobKey, Project, ProjectName, WaitingJob
from gpu_scheduler.core.model.units import DEVICE_MILLI, gpu_from_milli
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import Stage

SharesByModel = Mapping[str, Mapping[ProjectName, int]]
NO_SHARES: SharesByModel = {}
NO_WAITS: Mapping[JobKey, Wait] = {}


@dataclass(frozen=True, slots=True)
class Overview:
    """By project: milli-GPU held, jobs with pods that wait, how many run.

    A pod without a GPUJob, or a gang of such, counts as a job. ``never``: how many wait beside
    those in ``waiting``, as they cannot start as they are or are not judged yet; they ask for
    nothing.
    """

    allocated_milli: Mapping[ProjectName, int]
    waiting: Mapping[ProjectName, Sequence[WaitingJob]]
    never: Mapping[ProjectName, int]
    running: Mapping[ProjectName, int]
    promise: "Promise"
    by_model: Mapping[ProjectName, list[ModelHoldings]]


@dataclass(frozen=True, slots=True)
class Promise:
    """What quotas promise together, against what there is."""

    projects: int
    quota_milli: int
    capacity_milli: int

    def broken(self, project: Project) -> str:
        """Why a project may not get its quota although it asks; empty when it will."""
        there_are = f"the cluster has {gpu_from_milli(self.capacity_milli)} GPUs"
        quota = gpu_from_milli(project.quota_milli)
        if project.quota_milli > self.capacity_milli:
            return f"spec.quota: {quota} is promised and {there_are}"
        if project.quota_milli and self.quota_milli > self.capacity_milli:
            least = project.quota_milli * self.capacity_milli // self.quota_milli
            return (
                f"spec.quota: {self.projects} projects are promised"
                f" {gpu_from_milli(self.quota_milli)} in all and {there_are}; if all ask for theirs"
                f" at once, the share of this one is {gpu_from_milli(least)} of its {quota}"
            )
        return ""


def survey(
    state: ClusterState,
    shares_by_model: SharesByModel = NO_SHARES,
    waits: Mapping[JobKey, Wait] = NO_WAITS,
) -> Overview:
    """The overview of this moment.

    Args:
        state: What is known.
        shares_by_model: Fair shares by model, in milli-GPU.
        waits: Why jobs wait.
    """
    cluster = state.snapshot()
    waiting: defaultdict[ProjectName, list[WaitingJob]] = defaultdict(list)
    never: Counter[ProjectName] = Counter()
    planned = set[JobKey]()
    for key in state.waiting.keys():
        wait = waits.get(key)
        try:
            job = state.waiting_job(key)
        except Exception:  # it counts for nobody
            unexpected("status", key)
            continue
        if job is None:
            continue
        planned.add(key)
        if wait is not None and wait.reason in NEVER:
            never[job.project] += 1
        else:
            waiting[job.project].append(job)
    running: Counter[ProjectName] = Counter()
    for record in state.gpujobs.values():
        runs = record.status.get("phase") == Phase.RUNNING
        if runs or (record.unplanned and record.key not in planned):
            owner = state.projects.owner(record.namespace)
            if owner is not None:
                (running if runs else never)[owner] += 1
    for key, group in state.groups.records.items():
        owner = state.projects.owner(group.namespace)
        pods = state.workloads.pods(key)
        if owner is not None and any(pod.stage is Stage.RUNNING for pod in pods):
            running[owner] += 1
    return Overview(
        cluster.allocated_milli,
        waiting,
        never,
        running,
        _promise(state, cluster),
        _by_model(state, cluster, shares_by_model),
    )


def _by_model(
    state: ClusterState, cluster: Cluster, shares: SharesByModel
) -> dict[ProjectName, list[ModelHoldings]]:
    """Of each project that names models, what it is promised, holds and should hold of them."""
    naming = {n: r for n, r in state.projects.records.items() if r.project.quota_by_model}
    if not naming:
        return {}
    parts = {m: state.classes.part(m) for r in naming.values() for m in r.project.quota_by_model}
    order = by_length(parts.values())
    held: Counter[tuple[ProjectName, str]] = Counter()
    for (name, product), milli in cluster.held_by_model.items():
        held[name, flavor_of(product, order)] += milli
    return {
        name: [
            ModelHoldings(
                model=model,
                quota_gpu=gpu_from_milli(milli),
                allocated_gpu=gpu_from_milli(held[name, parts[model]]),
                fair_share_gpu=gpu_from_milli(shares.get(parts[model], {}).get(name, 0)),
            )
            for model, milli in sorted(record.project.quota_by_model.items())
        ]
        for name, record in naming.items()
    }


def _promise(state: ClusterState, cluster: Cluster) -> Promise:
    projects = state.planner_projects().values()
    quota = sum(project.quota_milli for project in projects)
    return Promise(len(projects), quota, len(cluster.dev_id) * DEVICE_MILLI)
