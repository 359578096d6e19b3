"""What is played: a cluster, its projects, and jobs that arrive, run for a while and end.

Times are seconds since the beginning. Pods of a job run as long as ``runs`` says, one entry each,
if nobody evicts them; who is evicted begins again at its last checkpoint, or at zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.request import PodShape, Project, ProjectName


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """One job.

    Attributes:
        name: unlike that of any other.
        runs: seconds of work, of each of its pods.
        gang: its pods start, end and are evicted together.
        limited: its time limit is what it runs, and the planner knows it.
        checkpoint_seconds: it saves its state so often; None = never.
        parallelism: so many of its pods are there at a time; None = all at once.
    """

    name: str
    project: ProjectName
    pod_shape: PodShape
    runs: tuple[float, ...]
    arrives: float = 0.0
    priority: int = 50
    interactive: bool = False
    gang: bool = False
    limited: bool = False
    checkpoint_seconds: float | None = None
    parallelism: int | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything that decides a play, but the rules.

    Attributes:
        name: for tables and pictures.
        cluster: empty.
        jobs: in any order.
        seconds: how long is played.
        counted_from: figures are of what happens from then on; before, the cluster fills.
        grace_seconds: between an eviction and its end.
    """

    name: str
    cluster: Cluster
    projects: Mapping[ProjectName, Project]
    jobs: Sequence[SimulatedJob]
    seconds: float
    counted_from: float = 0.0
    grace_seconds: float = 2.0

    @property
    def capacity_milli(self) -> int:
        """Milli-GPU of the cluster."""
        return sum(self.cluster.free_milli)
