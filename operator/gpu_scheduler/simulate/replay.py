"""The plan of a dump, as ``simulate`` shows what would happen on a cluster."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.dump import canonical, read
from gpu_scheduler.simulate.cluster_report import (
    ClusterReport,
    allocated,
    eviction_row,
    project_rows,
    start_row,
    wait_row,
)
from gpu_scheduler.simulate.cluster_table import table
from gpu_scheduler.simulate.dumped_tables import tables
from gpu_scheduler.simulate.simulated_cluster import device_numbers


def replay(file: Path, *, as_json: bool) -> str:
    """What the plan of a dump says: in words, or all of it in its canonical form.

    Raises:
        DumpError: the file is no dump of this version.
        ValueError: it cannot be read.
    """
    try:
        given = read(file.read_bytes()).to_input()
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}") from None
    result = plan(given)
    if as_json:
        return canonical(result).decode().rstrip()
    return f"{table(_report(str(file), given, result))}\n\n{tables(given)}"


def _report(file: str, given: PlanInput, result: Plan) -> ClusterReport:
    cluster, numbers = given.cluster, device_numbers(given.cluster)
    waiting = {pod.uid: pod.name for job in given.jobs for pod in job.pods}
    running = {pod.uid: pod for pod in given.running_pods.all()}
    projects = {job.key: job.project for job in given.jobs}
    before, held = allocated(cluster), Counter(cluster.allocated_milli)
    for place in result.assignments:
        held[projects[place.job]] += sum(allocated.milli for allocated in place.devices)
    taken = sum(held.values()) - sum(cluster.allocated_milli.values())
    after = replace(before, allocated_milli=before.allocated_milli + taken, by_project=held)
    return ClusterReport(
        server=file,
        changes=(),
        asked_about=frozenset(),
        before=before,
        after=after,
        starts=[
            start_row(cluster, place, waiting[place.pod], projects[place.job], numbers)
            for place in result.assignments
        ],
        gives_way=[
            eviction_row(cluster, each, running[each.pod], each.message) for each in result.evicts
        ],
        waits=[wait_row(cluster, wait, projects[wait.job]) for wait in result.waits],
        projects=project_rows(given.projects, result.shares_milli, before, after),
        settled=True,
    )
