"""Who gets what, and in which order: quota, limit, borrowing, order of jobs."""

import pytest
from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects

from gpu_scheduler.core.model.decision import Plan, Reason
from gpu_scheduler.core.model.request import (
    DeviceRequest,
    PodShape,
    Project,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

HALF, WHOLE = pod_shape(500), pod_shape(1000)


def run(gpus: int, jobs: list[WaitingJob], *those: Project) -> Plan:
    return plan(PlanInput(ClusterBuilder().node("a", gpus).obj(), projects(*those), jobs))


def started(result: Plan) -> list[str]:
    return [place.pod for place in result.assignments]


def waiting(result: Plan) -> dict[str, Reason]:
    return {wait.job: wait.reason for wait in result.waits}


def test_a_pod_inside_quota_starts_before_an_earlier_one_that_would_borrow():
    jobs = [
        job("rich", WHOLE, project="a", priority=100, interactive=True),
        job("poor", WHOLE, project="b", created=99),
    ]
    result = run(1, jobs, project("a", 0), project("b", 1000))
    assert started(result) == ["poor-0"]


def test_what_is_left_is_lent_up_to_the_limit():
    result = run(8, [job("j", WHOLE, 8)], project(quota_milli=2000, limit_milli=5000))
    assert len(result.assignments) == 5
    assert waiting(result) == {"ns/j": Reason.WAITING_FOR_QUOTA}


def test_a_project_without_weight_never_borrows():
    result = run(8, [job("j", WHOLE, 8)], project(quota_milli=2000, weight=0))
    assert len(result.assignments) == 2
    assert waiting(result) == {"ns/j": Reason.WAITING_FOR_QUOTA}


def test_a_limit_below_the_quota_holds():
    result = run(8, [job("j", WHOLE, 8)], project(quota_milli=4000, limit_milli=3000))
    assert len(result.assignments) == 3


def test_what_pods_hold_already_is_charged():
    cluster = ClusterBuilder().node("a", 8).allocated("team-a", 1500).obj()
    result = plan(
        PlanInput(cluster, projects(project(quota_milli=2000, weight=0)), [job("j", HALF, 4)])
    )
    assert len(result.assignments) == 1


@pytest.mark.parametrize(("milli", "starts"), [(200, True), (201, False)])
def test_a_quota_is_exact_to_the_milli(milli: int, starts: bool):
    cluster = ClusterBuilder().node("a", 8).allocated("team-a", 800).obj()
    for team in (project(quota_milli=1000, weight=0), project(quota_milli=0, limit_milli=1000)):
        result = plan(PlanInput(cluster, projects(team), [job("j", pod_shape(milli))]))
        assert bool(result.assignments) is starts


def test_borrowers_leave_nodes_alone_for_which_pods_inside_quota_wait():
    builder = ClusterBuilder().node("a", 2).held("a/0", 100).node("t4", 1, "Tesla-T4")
    jobs = [
        job("pair", pod_shape(1000, count=2), project="owner"),
        job("borrow", HALF, 3, project="guest"),
    ]
    result = plan(
        PlanInput(builder.obj(), projects(project("owner", 2000), project("guest", 0)), jobs)
    )
    assert [(p.pod, p.node) for p in result.assignments] == [("borrow-0", "t4"), ("borrow-1", "t4")]
    assert waiting(result) == {
        "ns/pair": Reason.WAITING_FOR_GPU,
        "ns/borrow": Reason.WAITING_FOR_QUOTA,
    }


def test_a_pod_whose_quota_others_have_used_up_meanwhile_keeps_nobody_away():
    # `pair` comes first and finds no two free devices; `half` then takes of the quota, so that
    # `pair` would have to borrow as well.
    cluster = ClusterBuilder().node("a", 2).held("a/0", 400).obj()
    result = plan(
        PlanInput(
            cluster,
            projects(project("owner", 2000), project("borrower", 0)),
            [
                job("pair", pod_shape(1000, count=2), project="owner", created=0),
                job("half", pod_shape(500), project="owner", created=1),
                job("last", pod_shape(400), project="borrower", created=2),
            ],
        )
    )
    assert {place.job for place in result.assignments} == {"ns/half", "ns/last"}


def test_a_pod_that_can_never_run_keeps_nobody_away():
    jobs = [
        job("five", pod_shape(1000, count=5), project="owner"),
        job("borrow", HALF, project="guest"),
    ]
    result = run(2, jobs, project("owner", 9000), project("guest", 0))
    assert started(result) == ["borrow-0"]


def test_pods_without_a_gpu_keep_nobody_away_and_need_no_quota():
    cpu = pod_shape(cpu_milli=100_000)
    jobs = [job("cpu", cpu, 2, project="owner"), job("borrow", HALF, project="guest")]
    result = run(2, jobs, project("owner", 0, weight=0), project("guest", 0))
    assert started(result) == ["cpu-0", "borrow-0"]
    assert waiting(result) == {"ns/cpu": Reason.WAITING_FOR_RESOURCES}


def test_projects_take_turns_by_their_share_of_the_quota():
    jobs = [job("a", WHOLE, 9, project="a"), job("b", WHOLE, 9, project="b")]
    result = run(6, jobs, project("a", 4000), project("b", 2000))
    assert started(result) == ["a-0", "b-0", "a-1", "b-1", "a-2", "a-3"]


def test_a_project_that_holds_much_waits_its_turn():
    cluster = ClusterBuilder().node("a", 1).allocated("a", 1000).obj()
    jobs = [job("a", WHOLE, project="a"), job("b", WHOLE, project="b", created=9)]
    result = plan(PlanInput(cluster, projects(project("a", 2000), project("b", 2000)), jobs))
    assert started(result) == ["b-0"]


def test_an_equal_younger_job_does_not_overtake():
    jobs = [job("young", WHOLE, created=2), job("old", WHOLE, created=1)]
    assert started(run(1, jobs)) == ["old-0"]


def test_a_blocked_head_does_not_block_what_fits():
    jobs = [job("pair", pod_shape(1000, count=2)), job("half", HALF, created=1)]
    builder = ClusterBuilder().node("a", 2).held("a/0", 100)
    result = plan(PlanInput(builder.obj(), projects(), jobs))
    assert started(result) == ["half-0"]
    assert [(w.job, w.position) for w in result.waits] == [("ns/pair", 1)]


def test_a_smaller_job_inside_quota_starts_while_a_larger_one_would_borrow():
    jobs = [job("large", WHOLE), job("small", HALF, created=1)]
    result = run(1, jobs, project(quota_milli=500))
    assert started(result) == ["small-0"]


def test_pods_of_another_pod_kind_in_the_same_job_still_start():
    pods = job("mixed", pod_shape(1000, count=2), 2).pods + job("rest", HALF).pods
    mixed = WaitingJob(job("mixed", HALF).key, project().name, pods)
    result = run(1, [mixed])
    assert started(result) == ["rest-0"]
    assert waiting(result) == {"ns/mixed": Reason.UNSATISFIABLE}


def test_a_pod_that_avoids_a_node_does_not_hold_back_its_siblings():
    pods = (
        WaitingPod(job("x", HALF).pods[0].uid, "x-0", HALF, frozenset({"a"})),
        job("y", HALF).pods[0],
    )
    result = run(1, [WaitingJob(job("x", HALF).key, project().name, pods)])
    assert started(result) == ["y-0"]


def test_avoided_and_closed_nodes_take_nothing():
    builder = ClusterBuilder().node("a").node("b", unschedulable="is cordoned").node("c")
    result = plan(PlanInput(builder.obj(), projects(), [job("j", HALF, avoid=["a"])]))
    assert [place.node for place in result.assignments] == ["c"]


def test_memory_is_charged_with_the_milli_of_the_device_it_lands_on():
    # 20,224 MiB are 500 milli of an A100-40 and 841 of an A30-24, which is smaller and so preferred
    builder = ClusterBuilder().node("a30", 1, "NVIDIA-A30").node("a100", 1)
    what = pod_shape(mib=20_224)
    result = plan(
        PlanInput(builder.obj(), projects(project(quota_milli=841, weight=0)), [job("j", what)])
    )
    assert [(p.node, p.devices[0].milli) for p in result.assignments] == [("a30", 841)]
    result = plan(
        PlanInput(builder.obj(), projects(project(quota_milli=840, weight=0)), [job("j", what)])
    )
    assert [(p.node, p.devices[0].milli) for p in result.assignments] == [("a100", 500)]
    result = plan(
        PlanInput(builder.obj(), projects(project(quota_milli=499, weight=0)), [job("j", what)])
    )
    assert waiting(result) == {"ns/j": Reason.EXCEEDS_QUOTA}


def test_memory_that_would_cost_more_than_the_quota_on_what_is_free_waits_for_quota():
    builder = ClusterBuilder().node("a30", 1, "NVIDIA-A30").node("a100", 1).held("a100/0", 900)
    team = project(quota_milli=840, weight=0)
    result = plan(PlanInput(builder.obj(), projects(team), [job("j", pod_shape(mib=20_224))]))
    assert waiting(result) == {"ns/j": Reason.WAITING_FOR_QUOTA}
    assert result.waits[0].message == (
        "needs 20224 MiB of a GPU, 0.841 on a30; project team-a holds 0 of its quota 0.84"
        " (weight 0: it never borrows)"
    )


def test_a_job_of_an_unknown_project_is_invalid():
    result = run(1, [job("j", HALF, project="gone"), job("k", HALF)])
    assert started(result) == ["k-0"]
    assert [(w.job, w.reason, w.message) for w in result.waits] == [
        ("ns/j", Reason.INVALID, "project gone does not exist")
    ]


def test_each_container_gets_its_own_share():
    both = pod_shape(containers=[DeviceRequest(0, 1, 500), DeviceRequest(2, 2, 250)])
    result = run(2, [job("j", both)])
    assert [(g.container, g.device, g.milli, g.mib) for g in result.assignments[0].devices] == [
        (0, "a/0", 500, 20224),
        (2, "a/0", 250, 10112),
        (2, "a/1", 250, 10112),
    ]


def test_equal_pod_kinds_that_are_different_objects_are_one_demand():
    def fresh() -> PodShape:
        return pod_shape(1000, models=("a100",))

    assert fresh() is not fresh()
    jobs = [job("a", fresh()), job("b", fresh(), created=1), job("c", fresh(), created=2)]
    assert started(run(2, jobs)) == ["a-0", "b-0"]
