"""A planner that remembers where room is found decides what one decides that remembers nothing.

Full clusters on which many wait with reserved room, pods end at times that are known or not, and a
stranger takes GPUs that have been given out, and gives them back.
"""

from dataclasses import dataclass, replace
from random import Random

import pytest
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import ReservationReason

GPUS = (4, 2, 2, 1)
POD_SHAPES = (pod_shape(1000), pod_shape(500), pod_shape(300), pod_shape(1000, count=2))
CYCLES, SEEDS, CHUNK = 20, 16, 4


@dataclass
class Strange(Play):
    """A stranger holds a whole device, whether it was free or not."""

    strangers: frozenset[int] = frozenset()

    def cluster(self) -> Cluster:
        found = super().cluster()
        for device in self.strangers:
            found.free_milli[device] -= 1000
            found.free_mib[device] -= 40448
        return found


def cycles(seed: int) -> int:
    """Makes each plan twice; how many had room reserved."""
    random = Random(seed)
    play = Strange(GPUS, projects(*(project(name, 9000) for name in "abc")))
    play.session, play.reserve_after_seconds = PlannerCache(), 5.0
    devices, reserved = sum(GPUS), 0
    for number in range(CYCLES):
        for n in range(random.choice((1, 2, 3))):
            limit = random.random() < 0.5
            play.wait(
                Pod(
                    f"p{number}-{n}",
                    random.choice("abc"),
                    random.choice(POD_SHAPES),
                    interactive=random.random() < 0.2,
                    created=play.now,
                    seconds=random.choice((30, 100, 300)),
                    limit=limit,
                )
            )
        if random.random() < 0.3:
            play.strangers = frozenset(random.sample(range(devices), random.choice((0, 0, 1, 2))))
        anew = replace(play, session=PlannerCache()).plan()
        kept = play.cycle()
        assert kept == anew, (seed, number)
        reserved += any(r.reason is ReservationReason.RESERVED for r in kept.reservations)
        play.now += random.choice((0.0, 1.0, 10.0))
    return reserved


@pytest.mark.long
@pytest.mark.parametrize("number", range(SEEDS // CHUNK))
def test_what_was_found_before_changes_no_plan(number: int) -> None:
    found = [cycles(seed) for seed in range(number * CHUNK, (number + 1) * CHUNK)]
    assert sum(found) > CYCLES // 2
