"""Workloads that anybody can play: the seed decides everything.

``random`` is the one of the published figures: ten nodes of eight GPUs, six projects, jobs of one
to twelve pods. ``day`` has bursts of interactive jobs over training, ``sweep`` ten thousand short
trials beside long gangs, and ``trace`` pods of a trace that come and go, in projects.
"""

from collections.abc import Sequence
from random import Random

from tests.perf.replay.arrivals import cluster_of
from tests.perf.replay.trace import TraceNode
from tests.perf.sharing.workload import SimulatedJob, Workload

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.request import DeviceRequest, PodShape, Project, ProjectName

NODES, GPUS, PROJECTS = 10, 8, 6
HOUR = 3600.0
PRIORITIES = (50, 50, 50, 50, 10, 30, 70, 90)


def _kind(milli: int, count: int = 1) -> PodShape:
    return PodShape(devices=(DeviceRequest(0, count, milli),), cpu_milli=1000)


KINDS = {
    _kind(125): 4,
    _kind(250): 4,
    _kind(500): 4,
    _kind(750): 1,
    _kind(1000): 6,
    _kind(500, 2): 1,
    _kind(1000, 2): 3,
    _kind(1000, 4): 2,
    _kind(1000, 8): 1,
}
PODS = (1, 1, 2, 3, 5, 8, 12)


def nodes() -> Cluster:
    """An empty cluster of equal nodes."""
    return cluster_of([TraceNode(f"n{n:03d}", 128_000, 1 << 40, GPUS, "gpu") for n in range(NODES)])


def projects(random: Random, capacity_milli: int) -> dict[ProjectName, Project]:
    """Projects with random quotas, which are no more than there is, limits and weights."""
    found: dict[ProjectName, Project] = {}
    left = capacity_milli
    for i in range(PROJECTS):
        parts = [0, 0, *(part for part in (8, 4, 2) if capacity_milli // part <= left)]
        part = random.choice(parts)
        quota = capacity_milli // part // 125 * 125 if part else 0
        left -= quota
        name = ProjectName(f"p{i}")
        limit = random.choice((None, None, None, max(quota, capacity_milli // 3 // 125 * 125)))
        found[name] = Project(name, quota, limit, random.choice((1, 1, 1, 2, 4)))
    return found


def random_work(
    seed: int,
    load: float,
    *,
    hours: float = 1.0,
    checkpoint_seconds: float | None = None,
) -> Workload:
    """Jobs of random projects that arrive at random.

    Args:
        seed: decides everything.
        load: work that arrives, over what the cluster can do in that time.
        hours: how long is played, beside a quarter of an hour in which the cluster fills.
        checkpoint_seconds: every other job saves its state so often.
    """
    random = Random(seed)
    cluster = nodes()
    capacity = sum(cluster.free_milli)
    teams = projects(random, capacity)
    kinds, weights = list(KINDS), list(KINDS.values())
    work = sum(kind.nominal_milli * weight for kind, weight in KINDS.items()) / sum(weights)
    work *= sum(PODS) / len(PODS) * (20 + 900) / 2
    rate = load * capacity / work
    jobs: list[SimulatedJob] = []
    time, end = 0.0, (hours + 0.25) * HOUR
    while (time := time + random.expovariate(rate)) < end:
        kind = random.choices(kinds, weights)[0]
        gang = random.random() < 0.15
        count = random.choice(PODS)
        runs = [float(random.randint(20, 900)) for _ in range(count)]
        saves = random.random() < 0.5
        priority = random.choice(PRIORITIES)
        jobs.append(
            SimulatedJob(
                f"j{len(jobs)}",
                random.choice(list(teams)),
                kind,
                tuple(runs[:1] * count if gang else runs),
                float(round(time)),
                priority,
                interactive=random.random() < 0.15,
                gang=gang and count > 1,
                limited=random.random() < 0.4,
                checkpoint_seconds=checkpoint_seconds if saves else None,
            )
        )
    return Workload(f"random {load:g}", cluster, teams, jobs, end, HOUR / 4)


def day_work(seed: int, load: float, *, hours: float = 24.0) -> Workload:
    """Interactive jobs come in bursts by day, training that runs for hours fills the nights.

    Args:
        seed: decides everything.
        load: training that arrives, over what the cluster can do in that time.
        hours: how long is played, from midnight on.
    """
    random = Random(seed)
    cluster = nodes()
    capacity = sum(cluster.free_milli)
    desk, train, lab = (ProjectName(name) for name in ("desk", "train", "lab"))
    teams = {
        desk: Project(desk, capacity * 3 // 8, capacity // 2),
        train: Project(train, capacity // 4, None, 2),
        lab: Project(lab, capacity // 8),
    }
    jobs: list[SimulatedJob] = []
    end = hours * HOUR
    kinds = (_kind(1000), _kind(1000, 2), _kind(1000, 4), _kind(1000, 8))
    time, mean = 0.0, 2.5 * HOUR * 2 * sum(kind.nominal_milli for kind in kinds) / len(kinds)
    while (time := time + random.expovariate(load * capacity / mean)) < end:
        runs = tuple(random.uniform(0.5, 4.5) * HOUR for _ in range(random.choice((1, 1, 4))))
        jobs.append(
            SimulatedJob(
                f"train{len(jobs)}",
                random.choice((train, train, lab)),
                random.choice(kinds),
                runs,
                float(round(time)),
                random.choice((30, 50, 50, 70)),
            )
        )
    time = 0.0
    while (time := time + random.expovariate(4 / HOUR)) < end:
        if not 8 <= time / HOUR % 24 < 19:
            continue
        for _ in range(random.randint(3, 15)):  # a class, a team after its meeting
            kind = random.choice((_kind(125), _kind(250), _kind(500), _kind(1000)))
            runs = (random.uniform(300, 5400),)
            jobs.append(
                SimulatedJob(
                    f"note{len(jobs)}", desk, kind, runs, float(round(time)), 50, interactive=True
                )
            )
    return Workload("day", cluster, teams, jobs, end, 0.0, 10.0)


def sweep_work(seed: int, load: float, *, hours: float = 2.0) -> Workload:
    """Ten thousand short trials that borrow all there is, beside long gangs inside their quota.

    Args:
        seed: decides everything.
        load: gangs that arrive, over what their quota can do in that time.
        hours: how long is played.
    """
    random = Random(seed)
    cluster = nodes()
    capacity = sum(cluster.free_milli)
    trials, models = ProjectName("trials"), ProjectName("models")
    quota = capacity * 6 // 10
    teams = {trials: Project(trials, 0), models: Project(models, quota)}
    runs = tuple(float(random.randint(30, 240)) for _ in range(10_000))
    jobs = [SimulatedJob("sweep", trials, _kind(250), runs, parallelism=capacity // 250)]
    end = hours * HOUR
    time, mean = 0.0, 4 * 3000 * 0.75 * HOUR
    while (time := time + random.expovariate(load * quota / mean)) < end:
        size = random.choice((2, 4, 4, 6))
        kind = random.choice((_kind(1000, 2), _kind(1000, 4)))
        run = random.uniform(0.25, 1.25) * HOUR
        arrives = float(round(time))
        jobs.append(
            SimulatedJob(f"gang{len(jobs)}", models, kind, (run,) * size, arrives, gang=True)
        )
    return Workload("sweep", cluster, teams, jobs, end, HOUR / 4, 5.0)


def trace_work(
    seed: int,
    load: float,
    machines: Sequence[TraceNode],
    pods: Sequence[PodShape],
    *,
    hours: float = 1.0,
) -> Workload:
    """Pods of a trace that come at random, run for a quarter of an hour in the mean, and end.

    Args:
        seed: decides everything.
        load: work that arrives, over what the nodes can do in that time.
        machines: those of the trace; forty of those with GPUs are drawn.
        pods: those of the trace; each is drawn with replacement, if it wants GPUs.
        hours: how long is played, beside a quarter of an hour in which the cluster fills.
    """
    random = Random(seed)
    with_gpus = [node for node in machines if node.gpus]
    cluster = cluster_of(random.sample(with_gpus, min(40, len(with_gpus))))
    capacity = sum(cluster.free_milli)
    teams = projects(random, capacity)
    kinds = [pod for pod in pods if pod.devices]
    work = sum(kind.nominal_milli for kind in kinds) / len(kinds) * HOUR / 4
    jobs: list[SimulatedJob] = []
    time, end = 0.0, (hours + 0.25) * HOUR
    while (time := time + random.expovariate(load * capacity / work)) < end:
        run = min(4 * HOUR, max(10.0, random.expovariate(4 / HOUR)))
        jobs.append(
            SimulatedJob(
                f"j{len(jobs)}",
                random.choice(list(teams)),
                random.choice(kinds),
                (run,),
                float(round(time)),
                random.choice(PRIORITIES),
                limited=random.random() < 0.4,
            )
        )
    return Workload("trace", cluster, teams, jobs, end, HOUR / 4)
