"""What holds over whole histories: plans carried out one after the other."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import project, projects, shape
from tests.unit.core.play import Play, Pod

from gpu_scheduler.core import quota
from gpu_scheduler.core.decision import EvictReason, HoldKind, Plan
from gpu_scheduler.core.request import ProjectName

TEAMS = ("a", "b", "c")
SHAPES = (
    shape(1000),
    shape(1000),
    shape(500),
    shape(300),
    shape(1000, count=2),
    shape(250, count=2),
    shape(500, cpu_milli=70_000),
)
EXAMPLES = settings(max_examples=2000, deadline=None)


@st.composite
def pods(draw: st.DrawFn, wave: str, most: int, created: float, finite: bool) -> list[Pod]:
    return [
        Pod(
            f"{wave}{i}",
            draw(st.sampled_from(TEAMS)),
            draw(st.sampled_from(SHAPES)),
            interactive=draw(st.integers(0, 4)) == 0,
            priority=draw(st.sampled_from([50, 50, 50, 0, 90])),
            created=created + i,
            seconds=draw(st.integers(1, 30)) if finite else None,
            limit=draw(st.booleans()),
        )
        for i in range(draw(st.integers(1, most)))
    ]


@st.composite
def plays(draw: st.DrawFn, *, finite: bool = False) -> tuple[Play, list[Pod]]:
    """A cluster that some jobs fill, and the jobs that come then."""
    gpus = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))
    teams = [
        project(
            name,
            draw(st.sampled_from([0, 0, 1000, 1500, 2000, 9000])),
            draw(st.sampled_from([None, None, None, 1000, 3000])),
            draw(st.sampled_from([1, 1, 2, 0])),
        )
        for name in TEAMS
    ]
    play = Play(gpus, projects(*teams), grace=draw(st.integers(1, 3)))
    play.wait(*draw(pods("old", 8, 0.0, finite)))
    play.reserve_after_seconds = draw(st.sampled_from([0.0, 60.0]))
    return play, draw(pods("new", 6, 500.0, finite))


def taken(play: Play, result: Plan, reason: EvictReason) -> dict[str, int]:
    """What a plan takes from each project."""
    found = dict.fromkeys(TEAMS, 0)
    for evict in result.evicts:
        if evict.reason is reason:
            occupant = play.running[evict.pod][1]
            found[occupant.project] += occupant.milli
    return found


def placed(play: Play, result: Plan, name: str) -> int:
    """What a plan gives to a project."""
    mine = {pod.uid for pod in play.waiting if pod.project == name}
    return sum(g.milli for p in result.places if p.pod in mine for g in p.grants)


def promised(play: Play, result: Plan, name: str) -> int:
    """What freed room is kept for a project: it will hold that as soon as others are gone."""
    mine = {pod.uid: pod.shape.nominal_milli for pod in play.waiting if pod.project == name}
    freed = [hold.pod for hold in result.holds if hold.kind is HoldKind.FREED]
    return sum(mine.get(uid, 0) for uid in freed)


def check_limits(play: Play, before: dict[str, int]) -> None:
    """Nobody grew past its limit; ``cluster`` raises where a device is given out twice."""
    play.cluster()
    for name, team in play.projects.items():
        assert play.held(name) <= max(quota.ceiling_milli(team), before[name])


def winners_over(play: Play, result: Plan, name: str) -> set[str]:
    """Projects for which pods of this one are reclaimed."""
    owner = {pod.key: pod.project for pod in play.waiting}
    return {
        owner[evict.beneficiary]
        for evict in result.evicts
        if evict.reason is EvictReason.RECLAIM and play.running[evict.pod][0].project == name
    }


def inside_quota(play: Play, result: Plan, name: str) -> bool:
    """Whether a project ends inside its quota with all that the plan gives and promises it."""
    after = play.held(name, staying=True) + placed(play, result, name)
    after += promised(play, result, name)
    return after <= play.projects[ProjectName(name)].quota_milli


def check_losers(play: Play, result: Plan) -> None:
    """Nobody is taken below its quota, nor below its fair share but for a pod inside quota."""
    for name, milli in taken(play, result, EvictReason.RECLAIM).items():
        if milli:
            team = play.projects[ProjectName(name)]
            left = play.held(name, staying=True) + placed(play, result, name) - milli
            left += promised(play, result, name)
            assert left >= team.quota_milli
            if not any(inside_quota(play, result, who) for who in winners_over(play, result, name)):
                assert left >= result.shares_milli[team.name]
    for evict in result.evicts:
        winner = next(pod for pod in play.waiting if pod.key == evict.beneficiary)
        loser = play.running[evict.pod][0]
        if evict.reason is EvictReason.PRIORITY:
            assert winner.project == loser.project
            assert winner.priority > loser.priority
        else:
            assert winner.project != loser.project


def check_winners(play: Play, result: Plan) -> None:
    """Who gets GPUs back ends at most at its fair share."""
    owner = {pod.key: pod.project for pod in play.waiting}
    size = {pod.key: pod.shape.nominal_milli for pod in play.waiting}
    kept_before = {owner.get(hold.job) for hold in play.holds}
    preempted = taken(play, result, EvictReason.PRIORITY)
    helped = {owner[e.beneficiary] for e in result.evicts if e.reason is EvictReason.RECLAIM}
    for name in helped - kept_before:
        if preempted[name]:
            continue  # a higher priority of its own may take it up to its quota
        kept = sum(
            size[hold.job]
            for hold in result.holds
            if hold.kind is HoldKind.FREED and owner[hold.job] == name
        )
        assert taken(play, result, EvictReason.RECLAIM)[name] == 0
        after = play.held(name, staying=True) + placed(play, result, name) + kept
        assert after <= result.shares_milli[ProjectName(name)]


def check_need(play: Play, result: Plan) -> None:
    """Where one pod is helped at others' cost: all victims are on one node, and each is needed."""
    winners = {e.beneficiary for e in result.evicts}
    if len(winners) != 1 or play.going or result.places or len(result.holds) != 1:
        return
    if any(evict.reason is EvictReason.PRIORITY for evict in result.evicts):
        return  # may be needed for the project's own room
    (shape_,) = {pod.shape for pod in play.waiting if pod.key in winners}
    gone = [play.running[evict.pod][1] for evict in result.evicts]
    (name,) = {occupant.node for occupant in gone}
    c = play.cluster()
    node = [each.name for each in c.nodes].index(name)
    (request,) = shape_.devices
    for spared in (None, *gone):
        others = [occupant for occupant in gone if occupant is not spared]
        free = {c.dev_id[d]: c.free_milli[d] for d in range(c.first[node], c.first[node + 1])}
        for occupant in others:
            for grant in occupant.grants:
                free[grant.device] += grant.milli
        cpu = c.free_cpu_milli[node] + sum(occupant.cpu_milli for occupant in others)
        fits = cpu >= shape_.cpu_milli and request.count <= sum(
            milli >= request.milli for milli in free.values()
        )
        assert fits is (spared is None)


@EXAMPLES
@given(plays())
def test_limits_quotas_and_shares_hold_and_nobody_goes_in_vain(case: tuple[Play, list[Pod]]):
    play, later = case
    for cycle in range(5):
        before = {name: play.held(name) for name in TEAMS}
        result = play.plan()
        check_losers(play, result)
        check_winners(play, result)
        check_need(play, result)
        play.carry_out(result)
        check_limits(play, before)
        play.tick()
        if cycle == 1:
            play.wait(*later)


@EXAMPLES
@given(plays())
def test_no_plan_undoes_an_earlier_one_and_evictions_end_as_long_as_demand_stays(
    case: tuple[Play, list[Pod]],
):
    play, later = case
    play.cycle()
    play.wait(*later)
    lost_to: dict[str, set[str]] = {}  # job -> those for which it had to go
    moved: set[tuple[str, str]] = set()  # projects: from, to; of the last plan that took any
    quiet = 0
    for _ in range(60):
        result = play.plan()
        owner = {pod.key: pod.project for pod in play.waiting}
        owner |= {pod.key: pod.project for pod, _ in play.running.values()}
        now = set()
        for evict in result.evicts:
            assert evict.job not in lost_to.get(evict.beneficiary, ())
            lost_to.setdefault(evict.job, set()).add(evict.beneficiary)
            if evict.reason is EvictReason.RECLAIM:
                now.add((owner[evict.job], owner[evict.beneficiary]))
        for source, target in now:
            assert (target, source) not in moved | now
        moved = now or moved
        quiet = 0 if result.evicts else quiet + 1
        if quiet > play.grace + 1:
            break
        play.carry_out(result)
        play.tick()
    assert quiet > play.grace + 1


@EXAMPLES
@given(plays(finite=True))
def test_every_pod_of_a_finite_workload_runs_in_the_end(case: tuple[Play, list[Pod]]):
    play, later = case
    able = {
        pod.name
        for pod in (*play.waiting, *later)
        if pod.shape.nominal_milli <= quota.ceiling_milli(play.projects[ProjectName(pod.project)])
        and max(request.count for request in pod.shape.devices) <= max(play.gpus)
    }
    for cycle in range(400):
        if cycle == 3:
            play.wait(*later)
        play.cycle(seconds=5.0)
        if cycle > 3 and not able & {pod.name for pod in play.waiting}:
            break
    assert not able & {pod.name for pod in play.waiting}
