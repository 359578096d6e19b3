"""Who starts in room that is kept for others can open it to those who want to be near."""

from dataclasses import replace

from tests.unit.builders import job, pod_shape
from tests.unit.core.actions.test_new_reservations import stream
from tests.unit.core.affinity.builders import Standing, affinity, near

from gpu_scheduler.core.model.affinity import AffinityInfo
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

HALF = pod_shape(500)


def short(name: str, who: AffinityInfo, created: float) -> WaitingJob:
    """Half a GPU for less time than the pair of ``stream`` has to wait for its room."""
    made = job(name, HALF, project="b", created=created)
    pods = tuple(replace(pod, affinity=who) for pod in made.pods)
    return replace(made, pods=pods, time_limit_seconds=90, ruled=who.rules is not None)


def test_one_like_another_that_found_no_place_is_tried_once_what_it_wants_to_be_near_is_there():
    play = stream()
    play.cycle()
    cluster = play.cluster()
    cluster.placed_pods = Standing()
    follower = affinity(near(app="first"))
    jobs = [
        short("before", follower, 960.0),
        short("first", affinity(app="first"), 970.0),
        short("after", follower, 980.0),
    ]
    result = plan(
        PlanInput(
            cluster,
            play.projects,
            [*play.jobs(), *jobs],
            running_pods=play.roll(),
            reservations=play.reservations,
            now=play.now,
            reserve_after_seconds=play.reserve_after_seconds,
        )
    )
    assert [place.pod for place in result.assignments] == ["first-0", "after-0"]
