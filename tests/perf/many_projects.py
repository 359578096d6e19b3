"""A thousand projects: what a planning cycle and all their statuses cost.

``python -m tests.perf.many_projects [PROJECTS]`` prints milliseconds; needs no cluster.
"""

import sys
import time
from collections.abc import Callable

from tests.unit.state.builders import gpujob_body, make_job, make_node, make_pod

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.status.overview import survey
from gpu_scheduler.runtime.status.project_status import ProjectFigures, project_status
from gpu_scheduler.state.cluster_state import ClusterState

NODES, GPUS, JOBS = 100, 8, 2  # jobs per project, of one GPU each
CREATED = "2026-01-01T00:00:00Z"


def crowd(projects: int) -> ClusterState:
    """Projects with a quota of one GPU and two waiting jobs each."""
    state = ClusterState()
    custom_resources = CustomResources(state, changed=lambda key: None)
    for n in range(NODES):
        state.nodes.changed(make_node(f"n{n}", GPUS))
    for p in range(projects):
        for j in range(JOBS):
            job, uid = f"job-{j}", f"{p}-{j}"
            custom_resources.gpujob(gpujob_body(job, uid=f"g{uid}", gpu=1, namespace=f"p{p}"))
            state.job_changed(make_job(job, uid=f"j{uid}", owner_uid=f"g{uid}", namespace=f"p{p}"))
            state.pod_changed(make_pod(f"{job}-0", uid=f"p{uid}", namespace=f"p{p}", job=f"j{uid}"))
        meta = {"name": f"p{p}", "uid": f"u{p}", "creationTimestamp": CREATED}
        custom_resources.project({"metadata": meta, "spec": {"namespaces": [f"p{p}"], "quota": 1}})
    return state


def milliseconds(work: Callable[[], object]) -> float:
    """The best of three runs."""
    took = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        took.append(1000 * (time.perf_counter() - started))
    return min(took)


def main(projects: int) -> None:
    """Measure and print."""
    state, session = crowd(projects), PlannerCache()

    def cycle() -> None:
        plan(
            PlanInput(
                state.snapshot(),
                state.planner_projects(),
                state.waiting_jobs(),
                running_pods=state.running_pods,
            ),
            session,
        )

    def statuses() -> None:
        seen = survey(state)
        for name, record in state.projects.records.items():
            project_status(
                record,
                ProjectFigures(
                    allocated_milli=seen.allocated_milli.get(name, 0),
                    waiting=seen.waiting.get(name, ()),
                    running_jobs=seen.running.get(name, 0),
                    broken=seen.promise.broken(record.project),
                ),
                conflicts=state.projects.conflicts(name),
                before={},
                now=CREATED,
            )

    sys.stdout.write(f"{projects} projects, {projects * JOBS} waiting jobs, {NODES * GPUS} GPUs\n")
    sys.stdout.write(f"planning cycle {milliseconds(cycle):8.1f} ms\n")
    sys.stdout.write(f"all statuses   {milliseconds(statuses):8.1f} ms\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
