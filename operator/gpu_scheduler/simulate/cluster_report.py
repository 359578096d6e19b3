"""What a simulation on a cluster found, as values that tables and scripts are made of.

Amounts are decimal strings as in the API's status. Pure.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Assignment, Evict, Reason, Wait
from gpu_scheduler.core.model.request import JobKey, Project, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.model.units import DEVICE_MILLI, gpu_from_milli
from gpu_scheduler.simulate.cluster_cycles import SettledCluster
from gpu_scheduler.simulate.cluster_objects import Objects
from gpu_scheduler.simulate.simulated_cluster import DeviceNumbers, SimulatedCluster, device_numbers
from gpu_scheduler.state.jobs.job import job_key, namespace_of
from gpu_scheduler.state.pods.pod import PodRecord

_STOPPED = (Reason.INVALID, Reason.VOLUME_NOT_MOUNTED, Reason.SUSPENDED)  # no plan looks at them


@dataclass(frozen=True, slots=True)
class Allocated:
    """How much of a cluster is given out, and to whom."""

    nodes: int
    gpus: int
    allocated_milli: int
    by_project: Mapping[ProjectName, int]


def allocated(cluster: Cluster) -> Allocated:
    """The present state of a cluster's devices."""
    free = sum(cluster.free_milli)
    gpus = len(cluster.dev_id)
    with_gpus = sum(a < b for a, b in zip(cluster.first, cluster.first[1:], strict=False))
    return Allocated(with_gpus, gpus, gpus * DEVICE_MILLI - free, dict(cluster.allocated_milli))


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What is printed. ``asked_about``: the jobs that were added, which tables show first."""

    server: str
    changes: Sequence[str]
    asked_about: Set[str]
    before: Allocated
    after: Allocated
    starts: list[dict[str, Any]]
    gives_way: list[dict[str, Any]]
    waits: list[dict[str, Any]]
    projects: list[dict[str, Any]]
    settled: bool

    def to_json(self) -> dict[str, Any]:
        """By the names that scripts use."""
        return {
            "server": self.server,
            "changes": list(self.changes),
            "gpus": {
                "nodes": self.after.nodes,
                "total": self.after.gpus,
                "allocatedBefore": gpu_from_milli(self.before.allocated_milli),
                "allocatedAfter": gpu_from_milli(self.after.allocated_milli),
            },
            "starts": self.starts,
            "evictions": self.gives_way,
            "waits": self.waits,
            "projects": self.projects,
            "settled": self.settled,
        }


def report(
    simulated: SimulatedCluster,
    outcome: SettledCluster,
    server: str,
    objects: Objects,
    before: Allocated,
) -> ClusterReport:
    """Everything that came out, in the order of the decisions."""
    after = allocated(simulated.state.snapshot())
    return ClusterReport(
        server=server,
        changes=objects.changes,
        asked_about={job_key(r.namespace, r.name) for r in objects.added if r.kind == "GPUJob"},
        before=before,
        after=after,
        starts=_starts(simulated, outcome),
        gives_way=[
            eviction_row(simulated, decision, pod, _why(simulated, pod, decision))
            for pod, decision, _ in outcome.gives_way
        ],
        waits=[
            wait_row(simulated, wait, _project(simulated, wait.job))
            for wait in sorted(
                outcome.waits, key=lambda wait: _rank(simulated, wait.job, wait.reason)
            )
        ],
        projects=_projects(simulated, outcome, before, after),
        settled=outcome.settled,
    )


def _why(simulated: SimulatedCluster, gone: PodRecord, decision: Evict) -> str:
    if gone.uid == decision.pod:
        return decision.message
    to = simulated.name_of(decision.beneficiary)
    return f"{gone.name} goes with the other pods of its gang, for {to}"


def _starts(simulated: SimulatedCluster, outcome: SettledCluster) -> list[dict[str, Any]]:
    numbers = device_numbers(simulated.state.snapshot())
    first_eviction = min((when.cycle for *_, when in outcome.gives_way), default=outcome.cycles)
    return [
        {
            **start_row(simulated, place, pod, _project(simulated, place.job), numbers),
            "afterEvictions": when.cycle > first_eviction,
            "afterSeconds": round(when.seconds),
        }
        for pod, place, when in outcome.starts
    ]


def start_row(
    called: SimulatedCluster | Cluster,
    place: Assignment,
    pod: str,
    project: str,
    numbers: DeviceNumbers,
) -> dict[str, Any]:
    """A pod that starts, at once and for nobody's eviction."""
    return {
        "job": called.name_of(place.job),
        "project": project,
        "pod": pod,
        "node": place.node,
        "devices": [
            {
                "device": allocated.device,
                "number": numbers[place.node, allocated.device][0],
                "model": numbers[place.node, allocated.device][1],
                "container": allocated.container,
                "gpu": gpu_from_milli(allocated.milli),
                "memoryMiB": allocated.mib,
            }
            for allocated in place.devices
        ],
        "afterEvictions": False,
        "afterSeconds": 0,
    }


def eviction_row(
    called: SimulatedCluster | Cluster, decision: Evict, pod: PodRecord | RunningPod, message: str
) -> dict[str, Any]:
    """A pod that gives way."""
    return {
        "job": called.name_of(decision.job),
        "pod": pod.name,
        "node": pod.node,
        "for": called.name_of(decision.beneficiary),
        "reason": str(decision.reason),
        "message": message,
    }


def wait_row(called: SimulatedCluster | Cluster, wait: Wait, project: str) -> dict[str, Any]:
    """A job that waits."""
    return {
        "job": called.name_of(wait.job),
        "project": project,
        "reason": str(wait.reason),
        "message": wait.message,
        "queuePosition": wait.position or None,
    }


def _project(simulated: SimulatedCluster, job: JobKey) -> str:
    return str(simulated.state.projects.owner(namespace_of(job)) or "")


def _rank(simulated: SimulatedCluster, job: JobKey, reason: Reason) -> tuple[bool, str]:
    return reason in _STOPPED, _project(simulated, job)


def _projects(
    simulated: SimulatedCluster,
    outcome: SettledCluster,
    before: Allocated,
    after: Allocated,
) -> list[dict[str, Any]]:
    records = simulated.state.projects.records
    projects = {name: record.project for name, record in records.items()}
    rows = project_rows(projects, outcome.shares_milli, before, after)
    return [{**row, "problem": records[ProjectName(row["name"])].problem} for row in rows]


def project_rows(
    projects: Mapping[ProjectName, Project],
    shares_milli: Mapping[ProjectName, int],
    before: Allocated,
    after: Allocated,
) -> list[dict[str, Any]]:
    """What projects may hold, and hold."""
    return [
        {
            "name": str(name),
            "quota": gpu_from_milli(each.quota_milli),
            "limit": None if each.limit_milli is None else gpu_from_milli(each.limit_milli),
            "allocatedBefore": gpu_from_milli(before.by_project.get(name, 0)),
            "allocatedAfter": gpu_from_milli(after.by_project.get(name, 0)),
            "fairShare": gpu_from_milli(shares_milli.get(name, 0)),
            "problem": "",
        }
        for name, each in sorted(projects.items())
    ]
