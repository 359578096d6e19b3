"""What waits: one pass over it, from what the last plan said and the state has ready.

What can never start as it is counts as a pending job, by its reason, and asks for no GPU; so does a
GPUJob that its owner has to mend before any plan looks at it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_scheduler.api.states import NEVER
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.quota import nominal_milli
from gpu_scheduler.core.model.request import JobKey, ProjectName, WaitingJob
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.in_pieces import in_pieces
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.state.cluster_state import ClusterState

SECONDS = 10.0  # that this may be old: 20 µs for each job that waits
_HALF_MILLI = DEVICE_MILLI // 2
_Tenant = tuple[str, str]  # namespace, project


@dataclass(slots=True)
class Pending:
    """What waits.

    Attributes:
        jobs: by reason, project and type: GPUJobs, pods that ask by themselves, gangs of such.
        milli: milli-GPU that they ask for, by project.
        least_milli: the smallest share among these; 0: none waits.
        since: epoch seconds from which the first of those waits that its quota has room for.
    """

    jobs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    milli: Counter[ProjectName] = field(default_factory=Counter)
    least_milli: int = 0
    since: dict[_Tenant, float] = field(default_factory=dict)

    @property
    def piece_milli(self) -> int:
        """A smaller free part of a GPU is a piece: nothing that waits, or half a GPU, fits in."""
        return self.least_milli or _HALF_MILLI


async def pending(state: ClusterState, plan: LastPlan) -> Pending:
    """Of this moment, in pieces."""
    found = Pending()
    records, held = state.projects.records, state.projects.holdings(state.ledger.held_milli)
    free = {n: nominal_milli(r.project) - held.get(n, 0) for n, r in records.items()}
    async for key, (reason, _) in in_pieces(plan.verdicts().items()):
        try:
            _add(found, state, key, reason, free)
        except Exception:  # it counts for nobody
            unexpected("metrics", key)
    async for job in in_pieces(state.gpujobs.values()):
        if job.unplanned and job.problem:
            project = state.projects.owner(job.namespace) or ProjectName("")
            kind = str(job.spec.type) if job.spec is not None else ""
            found.jobs[str(job.status.get("reason") or Reason.INVALID), project, kind] += 1
    return found


def _add(
    found: Pending,
    state: ClusterState,
    key: JobKey,
    reason: str,
    free: Mapping[ProjectName, int],
) -> None:
    work = state.workloads.get(key)
    if work is None:
        return
    project = state.projects.owner(work.namespace) or ProjectName("")
    kind = str(work.spec.type) if work.spec is not None else ""
    found.jobs[str(reason), project, kind] += 1
    job = state.waiting_job(key) if reason not in NEVER else None
    if job is None:
        return
    asked = [pod.pod_shape.nominal_milli for pod in job.pods]
    found.milli[project] += sum(asked)
    least = min((d.milli for d in job.pods[0].pod_shape.devices if d.milli), default=0)
    found.least_milli = min(least, found.least_milli or least) or found.least_milli
    if _starts_with(job, asked) <= free.get(project, 0):
        tenant, since = (work.namespace, project), min(pod.since for pod in job.pods)
        found.since[tenant] = min(since, found.since.get(tenant, since))


def _starts_with(job: WaitingJob, asked: list[int]) -> int:
    """Milli-GPU without which nothing of it starts; sizes in MiB count as little."""
    return max(1, sum(asked) if job.gang is not None else asked[0])
