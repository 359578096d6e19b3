"""How wide the Jobs of a GPUJob are to be, as the cluster and its project stand now.

Called by the reconciler.
"""

from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.core.quota import ceiling_milli
from gpu_scheduler.core.window import LEAST_SPARE, could_run, window
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.gangs import holds
from gpu_scheduler.state.jobs import GPUJobRecord


def pods_at_once(state: ClusterState, job: GPUJobRecord, project: ProjectName) -> int:
    """Pods of a GPUJob that may exist at once."""
    spec = job.spec
    if spec is None:
        return 0
    if spec.roles is not None:
        return spec.total_pods  # each role is as wide as it has replicas
    if is_gang(spec) or spec.parallelism <= LEAST_SPARE:
        return spec.parallelism
    cluster = state.ledger.cluster
    record = state.projects.records[project]
    possible = could_run(
        job.asks[""].devices,
        job.asks[""].models,
        zip(cluster.dev_model, cluster.dev_usable_mib, strict=True),
        ceiling_milli(record.project),
    )
    own = [each for each in job.own(state.jobs_of(job.key)) if not each.ended]
    now = sum(each.parallelism for each in own) if own else None
    placed = sum(1 for pod in state.records(job.key) if holds(pod) or pod.uid in state.assumed)
    return window(spec.parallelism, possible, now, placed)
