"""All that a plan depends on, whole or without some of its objects.

A node that is left out takes its running pods and holds with it, a job its own, a project those of
its jobs. What they hold stays taken: it is in the cluster's arrays and in what projects are
charged.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Reservation
from gpu_scheduler.core.model.preemption_policy import (
    NOTHING,
    STRICT,
    PlannerMemory,
    PreemptionPolicy,
)
from gpu_scheduler.core.model.request import JobKey, Project, ProjectName, WaitingJob
from gpu_scheduler.core.model.running_pods import Roll, RunningPods
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.target_workload import TargetWorkload
from gpu_scheduler.core.quarantine import ObjectRef, ObjectType, PlannedObjects

RESERVE_AFTER_SECONDS = 60.0
NOBODY = Roll()


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The argument of ``plan``.

    Attributes:
        cluster: what is free now; not changed.
        projects: quotas by name; a job of a project that is not there is ``Invalid``.
        jobs: jobs with waiting pods, in any order.
        running_pods: the pods that hold what is not free; without them nobody is evicted.
        reservations: those of the plan before, so that room once promised stays kept.
        now: epoch seconds.
        reserve_after_seconds: a pod first in order that has waited so long gets room reserved.
        consolidate: fractional pods may be moved together for who needs several GPUs.
        preemption_policy: when somebody may be evicted.
        memory: that of the plan before.
        packing: how nodes and devices are chosen.
        workload: the pods that are typical; None = those that the session has learned.
    """

    cluster: Cluster
    projects: Mapping[ProjectName, Project]
    jobs: Sequence[WaitingJob]
    running_pods: RunningPods = NOBODY
    reservations: Sequence[Reservation] = ()
    now: float = 0.0
    reserve_after_seconds: float = RESERVE_AFTER_SECONDS
    consolidate: bool = False
    preemption_policy: PreemptionPolicy = STRICT
    memory: PlannerMemory = NOTHING
    packing: Packing = Packing.FRAGMENTATION
    workload: TargetWorkload | None = None

    def frozen(self) -> "PlanInput":
        """The same, whatever happens to the cluster and its pods meanwhile.

        Rules about other pods are the exception: ``cluster.placed_pods`` stays what it is.
        """
        cluster = self.cluster.copy()
        cluster.names = dict(cluster.names)
        return replace(self, cluster=cluster, running_pods=Roll(self.running_pods.all()))

    def owners(self) -> dict[JobKey, ProjectName]:
        """Jobs that wait or hold anything, with their projects, by name."""
        found = {each.job: each.project for each in self.running_pods.all()}
        found |= {job.key: job.project for job in self.jobs}
        return dict(sorted(found.items()))

    def only(self, kept: PlannedObjects) -> "PlanInput":
        """The part with these objects."""
        gone = {
            *_left_out(ObjectType.NODE, (node.name for node in self.cluster.nodes), kept.nodes),
            *_left_out(ObjectType.JOB, self.owners(), kept.jobs),
            *_left_out(ObjectType.PROJECT, self.projects, kept.projects),
        }
        return self.without(gone, Thinner())

    def without(self, gone: Collection[ObjectRef], thinner: "Thinner") -> "PlanInput":
        """All but these objects; ``thinner`` remembers from cycle to cycle."""
        if not gone:
            return self
        nodes = frozenset(each.name for each in gone if each.type is ObjectType.NODE)
        keys = {each.name for each in gone if each.type is ObjectType.JOB}
        projects = {each.name for each in gone if each.type is ObjectType.PROJECT}
        jobs = [j for j in self.jobs if j.key not in keys and j.project not in projects]
        uids = {pod.uid for job in jobs for pod in job.pods}
        pods = (
            pod
            for pod in self.running_pods.all()
            if pod.node not in nodes and pod.job not in keys and pod.project not in projects
        )
        return replace(
            self,
            cluster=thinner.thin(self.cluster, nodes),
            projects={name: each for name, each in self.projects.items() if name not in projects},
            jobs=jobs,
            running_pods=Roll(pods),
            reservations=[h for h in self.reservations if h.node not in nodes and h.pod in uids],
        )


def _left_out(type: ObjectType, names: Iterable[str], kept: Sequence[str]) -> set[ObjectRef]:
    return {ObjectRef(type, name) for name in set(names).difference(kept)}


@dataclass(slots=True)
class Thinner:
    """Leaves nodes out of a cluster.

    The lists that say what nodes there are stay the same objects while nothing about these
    changes, as a ``PlannerCache`` asks.
    """

    _source: object = None
    _gone: frozenset[str] = frozenset()
    _nodes: list[int] = field(default_factory=list)
    _devices: list[int] = field(default_factory=list)
    _thin: Cluster = field(default_factory=Cluster)

    def thin(self, cluster: Cluster, gone: frozenset[str]) -> Cluster:
        """The cluster without these nodes."""
        if not gone:
            return cluster
        if self._source is not cluster.nodes or self._gone != gone:
            self._source = cluster.nodes
            self._gone = gone
            self._lay_out(cluster)
        thin, c = self._thin, cluster
        thin.free_milli = [c.free_milli[d] for d in self._devices]
        thin.fractions = (
            {at: c.fractions[d] for at, d in enumerate(self._devices) if d in c.fractions}
            if c.fractions
            else {}
        )
        thin.free_mib = [c.free_mib[d] for d in self._devices]
        thin.free_cpu_milli = [c.free_cpu_milli[n] for n in self._nodes]
        thin.free_memory_bytes = [c.free_memory_bytes[n] for n in self._nodes]
        thin.free_ephemeral_bytes = [c.free_ephemeral_bytes[n] for n in self._nodes]
        thin.free_pods = [c.free_pods[n] for n in self._nodes]
        thin.free_scalars = {
            name: [free[n] for n in self._nodes] for name, free in c.free_scalars.items()
        }
        thin.allocated_milli = c.allocated_milli
        thin.held_by_model = c.held_by_model
        thin.catalogue = c.catalogue
        thin.placed_pods = c.placed_pods
        return thin

    def _lay_out(self, c: Cluster) -> None:
        self._nodes = [n for n, node in enumerate(c.nodes) if node.name not in self._gone]
        self._devices = [d for n in self._nodes for d in range(c.first[n], c.first[n + 1])]
        thin = self._thin = Cluster()
        thin.nodes = [c.nodes[n] for n in self._nodes]
        for n in self._nodes:
            thin.first.append(thin.first[-1] + c.first[n + 1] - c.first[n])
        thin.dev_id = [c.dev_id[d] for d in self._devices]
        thin.dev_model = [c.dev_model[d] for d in self._devices]
        thin.dev_usable_mib = [c.dev_usable_mib[d] for d in self._devices]
        thin.dev_compute = [c.dev_compute[d] for d in self._devices]
        thin.dev_healthy = [c.dev_healthy[d] for d in self._devices]
        thin.dev_trouble = {
            at: c.dev_trouble[d] for at, d in enumerate(self._devices) if d in c.dev_trouble
        }
