"""Random work on a random cluster, played through ``plan`` as the operator plays it.

Projects with quotas, limits and weights; jobs of one to twelve pods or gangs, 0.125 to 8 GPUs
each, that come, run and end at random. Who is evicted leaves after a grace and comes again as a new
pod. One seed is one history. Called by ``test_room``.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.preemption_policy import STRICT, PreemptionPolicy
from gpu_scheduler.core.model.request import Project

POD_KINDS = (
    (pod_shape(125), 4),
    (pod_shape(250), 4),
    (pod_shape(500), 4),
    (pod_shape(750), 1),
    (pod_shape(1000), 6),
    (pod_shape(500, count=2), 1),
    (pod_shape(1000, count=2), 3),
    (pod_shape(1000, count=4), 2),
    (pod_shape(1000, count=8), 1),
    (pod_shape(250, cpu_milli=40_000), 1),
)
PRIORITIES = (50, 50, 50, 50, 10, 30, 70, 90)
NO_LIMIT = 1 << 40
LEAST_SECONDS, MOST_SECONDS = 20, 600


def most_milli(team: Project) -> int:
    """The most that a project can ever hold."""
    most = NO_LIMIT if team.limit_milli is None else team.limit_milli
    return most if team.weight else min(most, team.quota_milli)


@dataclass
class Work:
    """One history; ``plans`` yields each plan before it is carried out."""

    seed: int
    preemption_policy: PreemptionPolicy = STRICT
    play: Play = field(init=False)
    ended: int = 0
    capacity_milli: int = 0
    _jobs: int = 0

    def __post_init__(self) -> None:
        self._random = random = Random(self.seed)
        gpus = tuple(random.choice((1, 2, 4, 8, 8, 8)) for _ in range(random.randint(2, 8)))
        self.capacity_milli = total = 1000 * sum(gpus)
        teams = [
            project(
                f"p{i}",
                random.choice((0, 0, total // 8, total // 4, total // 2)) // 125 * 125,
                random.choice((None, None, None, total // 3 // 125 * 125)),
                random.choice((0, 1, 1, 1, 2, 4)),
            )
            for i in range(random.randint(2, 6))
        ]
        self._load = random.choice((0.8, 1.1, 1.5, 2.5))
        self.play = Play(gpus, projects(*teams), session=PlannerCache(), anew=True)
        self.play.preemption_policy = self.preemption_policy
        self.play.reserve_after_seconds = random.choice((10.0, 60.0))

    def plans(self, most: int) -> Iterator[Plan]:
        """So many plans, each with what has happened since the one before."""
        for _ in range(most):
            self.play.grace = self._random.randint(1, 5)
            self._arrive()
            result = self.play.plan()
            yield result
            self.play.carry_out(result)
            before = len(self.play.running) + len(self.play.waiting)
            self.play.tick(float(self._random.choice((0, 1, 1, 2, 5, 20))))
            self.ended += before - len(self.play.running) - len(self.play.waiting)

    def _arrive(self) -> None:
        """New jobs, as long as less is there than the load says; often one, now and then many."""
        asked: Counter[str] = Counter()
        for pod in [pod for pod, _ in self.play.running.values()] + self.play.waiting:
            asked[pod.project] += pod.pod_shape.nominal_milli
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 4))):
            most = {name: most_milli(team) for name, team in self.play.projects.items()}
            useful = sum(min(milli, most[name]) for name, milli in asked.items())
            name = self._random.choice(sorted(most))
            if useful >= self._load * self.capacity_milli or asked[name] > most[name]:
                continue
            pods = self._job(name)
            asked[name] += sum(pod.pod_shape.nominal_milli for pod in pods)
            self.play.wait(*pods)

    def _job(self, team: str) -> list[Pod]:
        random, self._jobs = self._random, self._jobs + 1
        most = max(self.play.gpus)
        pod_shapes = [(s, n) for s, n in POD_KINDS if s.devices[0].count <= most]
        what = random.choices([s for s, _ in pod_shapes], [n for _, n in pod_shapes])[0]
        name = f"j{self._jobs}"
        gang = random.random() < 0.15
        count = random.randint(2, 4) if gang else random.choice((1, 1, 2, 3, 5, 8, 12))
        seconds = [random.randint(LEAST_SECONDS, MOST_SECONDS) for _ in range(count)]
        about = {
            "project": team,
            "pod_shape": what,
            "interactive": random.random() < 0.15,
            "priority": random.choice(PRIORITIES),
            "created": self.play.now,
            "limit": random.random() < 0.4,
        }
        if gang:
            about |= {"gang": name, "size": count, "distinct": random.random() < 0.7}
            seconds = seconds[:1] * count
        else:
            about["job"] = name
        return [Pod(f"{name}-{i}", seconds=s, **about) for i, s in enumerate(seconds)]  # type: ignore[arg-type]
