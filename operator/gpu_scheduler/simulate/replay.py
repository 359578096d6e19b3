"""The plan of a dump, as ``simulate`` shows what would happen on a cluster."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from gpu_scheduler.core.model.decision import Plan, Reason
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.dump import canonical, read
from gpu_scheduler.simulate.cluster_report import ClusterReport, picture, project_rows
from gpu_scheduler.simulate.cluster_table import table
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
    return table(_report(str(file), given, result))


def _report(file: str, given: PlanInput, result: Plan) -> ClusterReport:
    cluster, called = given.cluster, given.cluster.name_of
    numbers = device_numbers(cluster)
    pods = {pod.uid: pod.name for job in given.jobs for pod in job.pods}
    projects = {job.key: job.project for job in given.jobs}
    before, held = picture(cluster), Counter(cluster.allocated_milli)
    for place in result.assignments:
        held[projects[place.job]] += sum(grant.milli for grant in place.grants)
    taken = sum(held.values()) - sum(cluster.allocated_milli.values())
    after = replace(before, allocated_milli=before.allocated_milli + taken, by_project=held)
    return ClusterReport(
        server=file,
        changes=(),
        asked_about=frozenset(),
        before=before,
        after=after,
        starts=[
            {
                "job": called(place.job),
                "pod": pods[place.pod],
                "node": place.node,
                "devices": [
                    {
                        "number": numbers[place.node, grant.device][0],
                        "gpu": gpu_from_milli(grant.milli),
                        "memoryMiB": grant.mib,
                    }
                    for grant in place.grants
                ],
                "afterEvictions": False,
                "afterSeconds": 0,
            }
            for place in result.assignments
        ],
        gives_way=[{"reason": str(each.reason), "message": each.message} for each in result.evicts],
        waits=[
            {
                "job": called(wait.job),
                "project": projects[wait.job],
                "reason": str(wait.reason),
                "message": wait.message,
                "queuePosition": None if wait.reason is Reason.INVALID else wait.position,
            }
            for wait in result.waits
        ],
        projects=project_rows(given.projects, result.shares_milli, before, after),
        settled=True,
    )
