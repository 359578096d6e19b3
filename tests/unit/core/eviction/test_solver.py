"""Pods and gangs are asked and answered alike: what was so for one of them only is so for both."""

from dataclasses import replace

from tests.unit.builders import A30, A100, ClusterBuilder, job, pod_shape, project, projects
from tests.unit.core.actions.test_preemption import evicted, started
from tests.unit.core.affinity.builders import ZONE, Standing, affinity, near
from tests.unit.core.fairness.test_budget import MixedPlay, team
from tests.unit.core.gang_builders import gang, only_wait
from tests.unit.core.properties.play import Play, Pod
from tests.unit.core.properties.test_gang_play import members

from gpu_scheduler.core.model.decision import EvictReason, Reason, ReservationReason
from gpu_scheduler.core.model.request import Topology
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

WHOLE, HALF, QUARTER = pod_shape(1000), pod_shape(500), pod_shape(250)
HALVES = pod_shape(500, count=2)
ON_A100 = pod_shape(1000, models=("a100",))


def test_a_gang_that_can_never_start_asks_for_nothing_of_a_model():
    cluster = ClusterBuilder().node("a", 2, A100).obj()
    own = team("team-a", 8000, a100=4000)
    result = plan(PlanInput(cluster, projects(own), [gang("g", (ON_A100, 3))]))
    assert only_wait(result).reason is Reason.UNSATISFIABLE
    assert result.shares_by_model_milli == {"a100": {"team-a": 0}}


def test_what_wants_to_be_near_a_pod_that_is_not_there_keeps_no_borrower_away():
    cluster = ClusterBuilder().node("n", 2, labels={ZONE: "z"}).obj()
    cluster.placed_pods = Standing()
    waiting = gang("g", (WHOLE, 2), project="a")
    who = affinity(near(ZONE, app="db"), app="web")
    pods = tuple(replace(pod, affinity=who) for pod in waiting.pods)
    jobs = [replace(waiting, pods=pods, ruled=True), job("b", WHOLE, 2, project="b")]
    result = plan(PlanInput(cluster, projects(project("a", 2000), project("b", 0)), jobs))
    assert started(result) == ["b", "b"]


def test_a_gang_whose_project_has_nothing_left_of_its_model_keeps_no_borrower_away():
    cluster = ClusterBuilder().node("a", 2, A100).node("b", 1, A30).held("a/0", 1000, "a").obj()
    own = replace(team("a", 4000, a100=1000), weight=1)
    jobs = [gang("g", (ON_A100, 2), project="a"), job("b", ON_A100, project="b")]
    result = plan(PlanInput(cluster, projects(own, project("b", 0)), jobs))
    assert started(result) == ["b"]


def test_who_may_use_room_that_is_kept_for_others_gets_the_best_of_it():
    """Two nodes are reserved for a gang; the pod that ends before goes where it leaves least."""
    play = Play((1, 1, 1), projects(project("p", 9000), project("q", 9000)))
    play.reserve_after_seconds = 0.0
    long = {"seconds": 500, "limit": True}
    play.place(Pod("r0", "q", HALF, **long), "n1/0", milli=500)
    play.place(Pod("r1", "q", WHOLE, **long), "n0/0").place(Pod("r2", "q", WHOLE, **long), "n2/0")
    play.wait(*members("big", WHOLE, WHOLE, WHOLE, project="p", created=1.0))
    play.cycle()
    assert {reservation.node for reservation in play.reservations} == {"n0", "n1", "n2"}
    play.wait(Pod("short", "p", HALF, created=2.0, seconds=100, limit=True))
    assert [(place.job, place.node) for place in play.plan().assignments] == [("ns/short", "n1")]


def test_a_gang_passes_over_victims_whose_project_cannot_give_all():
    play = Play((1, 1), projects(project("a", 1000), project("b", 0), project("c", 500)))
    play.place(Pod("old", "b", WHOLE), "n1/0")
    play.now += 10
    play.place(Pod("young", "b", HALF), "n0/0", milli=500)
    play.place(Pod("own", "c", HALF), "n0/0", milli=500)
    play.wait(*members("gang", HALF, HALF, project="a", distinct=False))
    assert evicted(play.plan()) == ["old"]


def test_of_victims_of_the_same_rank_a_gang_takes_the_fewest():
    play = Play((2, 2), projects(project("p", 4000)))
    for n, milli in ((0, 500), (1, 1000)):
        for i in range(2):
            for half in range(1000 // milli):
                play.now += 1
                pod = Pod(f"v{n}{i}{half}", "p", pod_shape(milli), priority=10)
                play.place(pod, f"n{n}/{i}", milli=milli)
    zone = Topology("zone")
    play.wait(*members("gang", WHOLE, WHOLE, project="p", priority=90, topology=zone))
    assert sorted(evicted(play.plan())) == ["v100", "v110"]


def test_a_gang_that_can_run_on_one_model_only_is_judged_by_that_models_shares():
    """Team b holds both A100s and no more GPUs than are fairly its own; one is guaranteed to a."""
    teams = team("a", 9000, a100=1000), project("b", 0)
    play = MixedPlay((), projects(*teams))
    play.place(Pod("b0", "b", WHOLE), "a0/0").place(Pod("b1", "b", WHOLE), "a1/0")
    half = pod_shape(500, models=("a100",))
    play.wait(*members("gang", half, half, project="a", distinct=False))
    result = play.plan()
    assert [evict.reason for evict in result.evicts] == [EvictReason.RECLAIM]


def test_nobody_starts_before_its_turn_into_room_that_an_earlier_one_gets_by_an_eviction():
    """The pair needs both GPUs; the late half would start where the pair goes."""
    play = Play((2,), projects(project("p", 9000)))
    play.place(Pod("low", "p", HALF, priority=10), "n0/0", milli=500)
    play.place(Pod("x", "p", HALF), "n0/0", milli=500)
    play.place(Pod("y", "p", HALF), "n0/1", milli=500)
    play.wait(Pod("pair", "p", HALVES, created=1.0), Pod("late", "p", HALF, created=2.0))
    result = play.plan()
    assert (evicted(result), started(result)) == (["low"], [])
    assert {
        reservation.pod
        for reservation in result.reservations
        if reservation.reason is ReservationReason.FREED
    } == {"pair-0"}


def test_room_is_reserved_only_where_the_quota_of_the_model_covers_it():
    """Those on A100s end first, those on A30s never; of A100s nothing is left to the project."""
    teams = team("a", 9000, a100=0), project("b", 9000)
    for waiting in ([Pod("pod", "a", WHOLE)], members("gang", WHOLE, WHOLE, project="a")):
        play = MixedPlay((), projects(*teams), reserve_after_seconds=0.0)
        for device in ("a0/0", "a1/0", "b0/0", "b1/0"):
            ends = {"seconds": 100, "limit": True} if device[0] == "a" else {}
            pod = Pod(f"r{device[:2]}", "b", WHOLE, interactive=True, **ends)  # type: ignore[arg-type]
            play.fill(pod, device)
        play.wait(*waiting)
        assert {reservation.node[0] for reservation in play.plan().reservations} == {"b"}


def test_a_gang_is_told_that_its_models_are_used_up_also_where_no_gpu_is_free():
    builder = ClusterBuilder().node("a", 2, A100).held("a/0", 1000, "team-a").held("a/1", 1000, "x")
    own = team("team-a", 4000, weight=0, a100=2000)
    wait = only_wait(plan(PlanInput(builder.obj(), projects(own), [gang("g", (ON_A100, 2))])))
    assert wait.reason is Reason.WAITING_FOR_QUOTA
    assert wait.message == (
        "needs 2 GPUs; project team-a holds 1 of its quota 2 of a100 (weight 0: it never borrows)"
    )
