"""How much is measured: the full benchmark, and a quick one to try the harness.

Sizes are those of the target: 800 pods on 100 nodes of 8 GPUs, 10,000 pods on 1,000 nodes. The
quick one takes two minutes and its figures mean nothing. Read by every part of the benchmark.
"""

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RAISED_QPS = 2000
GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is run, and how often.

    Attributes:
        nodes: fake nodes for throughput and latency.
        pods: pods of the one Job, or Deployment, of a throughput run.
        warm_up_pods: pods of the one that goes before each measured one.
        rounds_raised: paired runs of all variants with raised client limits.
        rounds_default: the same with the client limits as they come.
        latency_jobs: single-pod jobs, one after the other.
        latency_gap_seconds: pause between two of them, so that client limits do not queue them.
        scale_nodes: fake nodes for the large state.
        scale_jobs: GPUJobs of the large state.
        scale_pods_per_job: pods of each of them.
        idle_seconds: how long the idle operator is watched.
        admission_pods: dry runs of a batch.
        admission_rounds: batches of each sort of pod.
        queue_nodes: fake nodes for jobs that wait.
        queue_jobs: jobs of one pod that wait, and that run shortly one after the other.
        queue_many_jobs: the same in the large setting.
        queue_fitting_jobs: jobs of one pod that all fit.
        queue_rounds: runs of each scene.
        queue_wait_seconds: the longest wait for a verdict or a place.
        queue_idle_seconds: how long the operator is watched while jobs wait.
        queue_churn_seconds: how long the GPUs are watched while short jobs come and go.
    """

    nodes: int = 100
    pods: int = 800
    warm_up_pods: int = 64
    rounds_raised: int = 5
    rounds_default: int = 2
    latency_jobs: int = 60
    latency_gap_seconds: float = 0.5
    scale_nodes: int = 1000
    scale_jobs: int = 25
    scale_pods_per_job: int = 400
    idle_seconds: float = 20.0
    admission_pods: int = 600
    admission_rounds: int = 3
    queue_nodes: int = 20
    queue_jobs: int = 5_000
    queue_many_jobs: int = 50_000
    queue_fitting_jobs: int = 400
    queue_rounds: int = 5
    queue_wait_seconds: float = 400.0
    queue_idle_seconds: float = 60.0
    queue_churn_seconds: float = 60.0


FULL = Sizes()
QUICK = Sizes(
    nodes=25,
    pods=200,
    warm_up_pods=16,
    rounds_raised=1,
    rounds_default=1,
    latency_jobs=8,
    scale_nodes=50,
    scale_jobs=5,
    scale_pods_per_job=100,
    idle_seconds=5.0,
    admission_pods=60,
    admission_rounds=1,
    queue_nodes=4,
    queue_jobs=300,
    queue_many_jobs=1_000,
    queue_fitting_jobs=60,
    queue_rounds=1,
    queue_wait_seconds=60.0,
    queue_idle_seconds=10.0,
    queue_churn_seconds=10.0,
)

PARTS = (
    "raised",
    "default",
    "latency",
    "scale",
    "audit",
    "admission",
    "caps",
    "planner",
    "queues",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """One call of the benchmark."""

    name: str = "bench"
    sizes: Sizes = field(default_factory=Sizes)
    parts: tuple[str, ...] = PARTS
    variants: tuple[str, ...] = ()
    scenes: tuple[str, ...] = ()
