"""Gangs: all members in one plan, or none."""

from collections import Counter
from dataclasses import replace

from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects
from tests.unit.core.gang_builders import gang, only_wait

from gpu_scheduler.core.model.decision import Plan, Reason
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

T4 = "Tesla-T4"
FOUR_T4 = pod_shape(1000, count=4, models=("t4",), cpu_milli=16_000)
MASTER = pod_shape(1000, count=4, models=("t4",), cpu_milli=32_000)
SERVER = pod_shape(cpu_milli=8_000)


def thirteen(name: str = "train", **about: object) -> WaitingJob:
    """One master and nine workers with 4 T4 each, three parameter servers without a GPU."""
    return gang(name, (MASTER, 1), (FOUR_T4, 9), (SERVER, 3), **about)


def t4_nodes(count: int) -> ClusterBuilder:
    builder = ClusterBuilder()
    for n in range(count):
        builder.node(f"n{n}", 4, T4, cpu_milli=64_000)
    return builder


def started(result: Plan) -> Counter[str]:
    return Counter(place.job for place in result.assignments)


def test_thirteen_pods_with_40_gpus_start_together_when_40_are_free():
    result = plan(PlanInput(t4_nodes(10).obj(), projects(), [thirteen()]))
    assert result.waits == ()
    assert [place.pod for place in result.assignments] == [f"train-{i}" for i in range(13)]
    assert (
        sum(allocated.milli for place in result.assignments for allocated in place.devices)
        == 40_000
    )


def test_with_39_of_40_gpus_free_no_member_starts_and_the_numbers_say_why():
    cluster = t4_nodes(10).held("n7/2", 1000).obj()
    wait = only_wait(plan(PlanInput(cluster, projects(), [thirteen()])))
    assert wait.reason is Reason.WAITING_FOR_GANG
    assert wait.message == (
        "needs 40 GPUs in 10 pods at once, with 3 more without GPUs; 39 are free, 36 placeable"
    )


def test_a_gang_that_waits_leaves_free_gpus_to_single_pods_of_its_project():
    cluster = t4_nodes(10).held("n7/2", 1000).obj()
    result = plan(
        PlanInput(cluster, projects(), [thirteen(), job("one", pod_shape(1000), created=5.0)])
    )
    assert started(result) == {"ns/one": 1}


def test_a_gang_waits_until_all_of_its_pods_exist():
    nine = thirteen()
    nine = replace(nine, pods=nine.pods[:3])
    wait = only_wait(plan(PlanInput(t4_nodes(10).obj(), projects(), [nine])))
    assert (wait.reason, wait.message) == (
        Reason.WAITING_FOR_GANG,
        "3 of 13 pods of the gang exist",
    )


def test_members_that_run_count_as_existing():
    some = gang("g", (pod_shape(1000), 2), missing=3)
    assert some.gang is not None
    some = replace(some, gang=replace(some.gang, size=5))
    wait = only_wait(plan(PlanInput(t4_nodes(2).obj(), projects(), [some])))
    assert wait.message == "4 of 5 pods of the gang exist"


def test_of_two_gangs_of_three_on_four_gpus_one_starts_whole():
    cluster = ClusterBuilder().node("a").node("b").obj()
    three = (pod_shape(1000), 3)
    result = plan(PlanInput(cluster, projects(), [gang("x", three), gang("y", three, created=1.0)]))
    assert started(result) == {"ns/x": 3}
    (wait,) = result.waits
    assert wait.job == "ns/y"
    assert wait.reason is Reason.WAITING_FOR_GANG
    assert wait.message.startswith("needs 3 GPUs in 3 pods at once; 1 is free, 1 placeable")


def test_two_projects_do_not_start_half_of_a_gang_each():
    cluster = ClusterBuilder().node("a").node("b").obj()
    teams = projects(project("p", 4000), project("q", 4000))
    three = (pod_shape(1000), 3)
    jobs = [gang("x", three, project="p"), gang("y", three, project="q")]
    assert started(plan(PlanInput(cluster, teams, jobs))) == {"ns/x": 3}


def test_members_of_a_gang_have_gpus_of_their_own():
    cluster = ClusterBuilder().node("a", 2).node("b", 1).obj()
    result = plan(PlanInput(cluster, projects(), [gang("g", (pod_shape(300), 3))]))
    assert (
        len({allocated.device for place in result.assignments for allocated in place.devices}) == 3
    )


def test_members_share_a_gpu_when_they_may():
    cluster = ClusterBuilder().node("a", 1).obj()
    result = plan(PlanInput(cluster, projects(), [gang("g", (pod_shape(300), 3), distinct=False)]))
    assert started(result) == {"ns/g": 3}


def test_a_gang_with_more_members_than_gpus_never_starts_apart():
    wait = only_wait(
        plan(
            PlanInput(
                ClusterBuilder().node("a", 2).obj(), projects(), [gang("g", (pod_shape(300), 3))]
            )
        )
    )
    assert wait.reason is Reason.UNSATISFIABLE
    assert "holds 2 of the 3 pods that need 0.3 of a GPU" in wait.message


def test_members_stay_off_the_gpus_of_members_that_run():
    cluster = ClusterBuilder().node("a", 2).held("a/0", 300).obj()
    late = gang("g", (pod_shape(300), 1), nodes=["a"], devices=["a/0"])
    (place,) = plan(PlanInput(cluster, projects(), [late])).assignments
    assert [allocated.device for allocated in place.devices] == ["a/1"]


def test_a_gang_starts_inside_quota_as_a_whole_or_borrows_as_a_whole():
    cluster = ClusterBuilder().node("a", 4).obj()
    pair = [gang("g", (pod_shape(1000), 3))]
    (wait,) = plan(PlanInput(cluster, projects(project("team-a", 2000, 2500)), pair)).waits
    assert (wait.reason, wait.message) == (
        Reason.EXCEEDS_QUOTA,
        "needs 3 GPUs; project team-a can never hold more than its limit 2.5",
    )
    assert started(plan(PlanInput(cluster, projects(project("team-a", 2000)), pair))) == {"ns/g": 3}


def test_a_gang_does_not_borrow_nodes_for_which_a_pod_inside_its_quota_waits():
    cluster = ClusterBuilder().node("a", 4).held("a/0", 1000).obj()
    teams = projects(project("p", 0), project("q", 4000))
    jobs = [
        gang("g", (pod_shape(1000), 3), project="p"),
        job("big", pod_shape(1000, count=4), project="q"),
    ]
    assert plan(PlanInput(cluster, teams, jobs)).assignments == ()


def test_a_gang_inside_its_quota_keeps_borrowers_off_its_nodes():
    cluster = ClusterBuilder().node("a", 4).held("a/0", 1000).obj()
    teams = projects(project("p", 0), project("q", 4000))
    jobs = [gang("g", (pod_shape(1000), 4), project="q"), job("one", pod_shape(1000), project="p")]
    assert plan(PlanInput(cluster, teams, jobs)).assignments == ()


def test_a_gang_waits_for_quota_with_the_sum():
    cluster = ClusterBuilder().node("a", 8).allocated("team-a", 2000).obj()
    (wait,) = plan(
        PlanInput(
            cluster, projects(project("team-a", 4000, 4000)), [gang("g", (pod_shape(1000), 3))]
        )
    ).waits
    assert wait.reason is Reason.WAITING_FOR_QUOTA
    assert wait.message == "needs 3 GPUs; project team-a holds 2 of its limit 4"


def test_a_member_that_would_not_even_start_alone_names_what_it_lacks():
    cluster = t4_nodes(10)
    for n in range(10):
        cluster.held(f"n{n}/0", 1000)
    wait = only_wait(plan(PlanInput(cluster.obj(), projects(), [thirteen()])))
    assert wait.reason is Reason.FRAGMENTED
    assert wait.message.startswith("needs 40 GPUs in 10 pods at once, with 3 more without GPUs: ")
    assert "best node n0 has 3 GPUs fully free" in wait.message


def test_large_members_take_the_large_nodes_first():
    cluster = ClusterBuilder().node("a", 4).node("b", 1).node("c", 1).obj()
    result = plan(
        PlanInput(
            cluster, projects(), [gang("g", (pod_shape(1000), 2), (pod_shape(1000, count=4), 1))]
        )
    )
    assert started(result) == {"ns/g": 3}


def test_members_with_few_nodes_choose_before_those_of_the_same_size_with_many():
    cluster = ClusterBuilder().node("a", 1, T4).node("b", 1).obj()
    roles = (pod_shape(1000), 1), (pod_shape(1000, models=("t4",)), 1)
    assert started(plan(PlanInput(cluster, projects(), [gang("g", *roles)]))) == {"ns/g": 2}


def test_members_that_need_much_cpu_are_placed_when_gpus_alone_would_send_others_there():
    cluster = (
        ClusterBuilder()
        .node("a", 1, cpu_milli=20_000)
        .node("b", 1, cpu_milli=64_000)
        .node("c", 0, cpu_milli=4_000)
        .obj()
    )
    roles = (pod_shape(1000, cpu_milli=20_000), 2), (pod_shape(cpu_milli=44_000), 1)
    assert started(plan(PlanInput(cluster, projects(), [gang("g", *roles)]))) == {"ns/g": 3}


def test_a_gang_whose_members_want_no_gpu_starts_whole_too():
    cluster = ClusterBuilder().node("a", 1, cpu_milli=8_000).node("b", 1, cpu_milli=8_000).obj()
    two = [gang("x", (pod_shape(cpu_milli=6_000), 2)), gang("y", (pod_shape(cpu_milli=6_000), 2))]
    result = plan(PlanInput(cluster, projects(), two))
    assert started(result) == {"ns/x": 2}


def test_a_gang_without_gpus_is_told_how_many_of_its_pods_fit():
    cluster = ClusterBuilder().node("a", 1, pods=5, cpu_milli=4000).obj()
    cluster.free_cpu_milli[0] = 3000
    wait = only_wait(
        plan(PlanInput(cluster, projects(), [gang("g", (pod_shape(cpu_milli=2000), 2))]))
    )
    assert (wait.reason, wait.message) == (
        Reason.WAITING_FOR_GANG,
        "needs room for 2 pods at once; 1 pod placeable",
    )
