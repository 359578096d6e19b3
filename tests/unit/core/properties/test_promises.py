"""What is promised holds over whole histories: quotas, limits, an end for everybody, no repeats."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.properties.judge import rank
from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.properties.play_checks import TEAMS, able, check_limits
from tests.unit.parts import in_parts

from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.preemption_policy import PreemptionPolicy
from gpu_scheduler.core.model.request import PodShape, ProjectName

WHOLE = pod_shape(1000)
POD_KINDS = (WHOLE, WHOLE, pod_shape(500), pod_shape(300), pod_shape(1000, count=2))
KINDS = {kinds: st.sampled_from(kinds) for kinds in ((WHOLE,), POD_KINDS)}
TEAM, WEIGHT = st.sampled_from(TEAMS), st.sampled_from([1, 1, 2, 4])
PRIORITY = st.sampled_from([50, 50, 50, 10, 90])
LIMITS = {  # by the GPUs of the quota
    n: st.sampled_from([None, None, 1000 * max(1, n)]) for n in range(7)
}
GPUS = st.lists(st.integers(1, 3), min_size=1, max_size=2)
PROMISES = PreemptionPolicy(10.0, 5.0, 20.0, 60.0)


@st.composite
def work(draw: st.DrawFn, kinds: tuple[PodShape, ...], *, most: int = 10) -> tuple[Play, list[Pod]]:
    """A cluster whose quotas are no more than it has, jobs that fill it, and those that come."""
    gpus = tuple(draw(GPUS))
    left, teams = sum(gpus), []
    for name in TEAMS:
        mine = draw(st.integers(0, left))
        left -= mine
        limit = draw(LIMITS[mine])
        teams.append(project(name, 1000 * mine, limit, draw(WEIGHT)))
    play = Play(gpus, projects(*teams), grace=draw(st.integers(1, 3)), anew=True)
    play.preemption_policy = PROMISES
    pods = [
        Pod(
            f"j{i}",
            draw(TEAM),
            draw(KINDS[kinds]),
            interactive=draw(st.integers(0, 5)) == 0,
            priority=draw(PRIORITY),
            created=1000.0 + draw(st.integers(0, 40)),
            seconds=draw(st.integers(1, 60)),
            limit=draw(st.booleans()),
        )
        for i in range(draw(st.integers(1, most)))
    ]
    return play, sorted(pods, key=lambda pod: pod.created)


def nominal_since(play: Play) -> set[str]:
    """Who waits inside its project's quota with those before it in the queue, by name."""
    room = {
        name: quota.nominal_milli(team) - play.held(name, staying=True)
        for name, team in play.projects.items()
    }
    found = set()
    for pod in sorted(play.waiting, key=rank):
        name, milli = ProjectName(pod.project), pod.pod_shape.nominal_milli
        if milli <= room[name]:
            room[name] -= milli
            found.add(pod.name)
    return found


def history(play: Play, coming: list[Pod], most: int) -> Iterator[Plan]:
    """Each plan, once it is carried out; ends when nobody waits or comes who can ever run."""
    wanted, coming = able(play, coming), list(coming)
    for _ in range(most):
        while coming and coming[0].created <= play.now:
            play.wait(coming.pop(0))
        result = play.plan()
        play.carry_out(result)
        yield result
        play.tick()
        left = {pod.name for pod in (*coming, *play.waiting)}
        if not left & wanted and not play.going:
            return


@pytest.mark.long
@in_parts(8, examples=2000)
@given(work((WHOLE,)))
def test_a_pod_inside_quota_starts_within_the_promise(case: tuple[Play, list[Pod]]) -> None:
    """Whole GPUs: quotas are no more than there is, so who borrows always holds enough."""
    check_the_guarantee(*case)


def check_the_guarantee(play: Play, coming: list[Pod]) -> None:
    since: dict[str, float] = {}
    for _ in history(play, coming, 300):
        now = nominal_since(play)
        since = {name: since.get(name, play.now) for name in now}
        late = [name for name, at in since.items() if play.now - at > 10.0 + play.grace]
        assert not late


@pytest.mark.long
@in_parts(8, examples=2000)
@given(work(POD_KINDS))
def test_limits_hold_nobody_loses_twice_to_one_job_and_everybody_runs_in_the_end(
    case: tuple[Play, list[Pod]],
) -> None:
    play, coming = case
    before = {name: play.held(name) for name in TEAMS}
    lost_to: dict[str, str] = {}
    wanted = able(play, coming)
    for result in history(play, coming, 2000):
        check_limits(play, before)
        check_protection(play, result)
        for evict in result.evicts:
            name = play.running[evict.pod][0].name
            assert lost_to.get(name) != evict.beneficiary
            lost_to[name] = evict.beneficiary
    assert not wanted & {pod.name for pod in play.waiting}


def check_protection(play: Play, result: Plan) -> None:
    """What ran for less than promised goes to another project only for what is inside its quota."""
    waiting = {pod.key: pod for pod in play.waiting}
    for evict in result.evicts:
        victim, winner = play.running[evict.pod][1], waiting.get(evict.beneficiary)
        if winner is None or victim.project == winner.project or play.now - victim.since >= 20.0:
            continue
        team = play.projects[ProjectName(winner.project)]
        held = play.held(winner.project, staying=True)
        assert held + winner.pod_shape.nominal_milli <= team.quota_milli
