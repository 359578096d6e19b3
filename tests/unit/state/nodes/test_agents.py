"""What agents report counts for the pods of their own node, and only while they are heard of."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.state.builders import half, make_node, make_pod
from tests.unit.state.test_cluster_state import free, make_cluster_state

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.agents import (
    SeenContainer,
    compute_percent,
    failed_isolation,
    reports_from_gpunode,
    worst,
)
from gpu_scheduler.state.nodes.devices import NodeDevice

POD, KEY = PodUID("uid-job-0"), "team-a/job"
FINE, OVER = (
    SeenContainer(0, "interposer"),
    SeenContainer(0, "interposer", "2026-01-01T00:00:00Z", "too much"),
)
SILENT = "has an agent that has not reported for 40 s (Lease gpu-node-a)"


def devices(**of_the_first: Any) -> tuple[NodeDevice, ...]:
    return (
        NodeDevice("GPU-0", 0, "A100", 40960, **of_the_first),
        NodeDevice("GPU-1", 1, "A100", 40960),
    )


def reported(*reports: SeenContainer, node: str = "a", **of_the_first: Any) -> ClusterState:
    """A job with a pod on the first device of node a, and what node ``node``'s agent says."""
    state = make_cluster_state(make_pod(node="a", devices=half("GPU-0"), phase="Running"))
    state.nodes.reported("a", devices())
    state.changes.touched.clear()
    state.nodes.reported(node, devices(**of_the_first), {POD: reports} if reports else {})
    return state


def entry(**changes: Any) -> dict[str, Any]:
    known = {"namespace": "n", "pod": "p", "uid": "u", "container": 1, "isolation": "kernel"}
    return {**known, **changes}


def test_reports_are_read_by_pod_in_the_order_of_containers() -> None:
    second = entry(container=0, overCapSince="2026-01-01T00:00:00Z", message="too much")
    status = {"containers": [entry(), second, entry(uid="v", computePercent=40)]}
    assert reports_from_gpunode(status) == {
        "u": (
            SeenContainer(0, "kernel", "2026-01-01T00:00:00Z", "too much"),
            SeenContainer(1, "kernel"),
        ),
        "v": (SeenContainer(1, "kernel", compute_percent=40),),
    }


@pytest.mark.parametrize("bad", [None, "x", {}, entry(container="first")])
def test_a_report_that_cannot_be_read_is_left_out(bad: object) -> None:
    assert list(reports_from_gpunode({"containers": [bad, entry()]})) == ["u"]
    assert reports_from_gpunode({}) == {}


@pytest.mark.parametrize(
    ("layers", "shown"),
    [
        (["kernel"], "kernel"),
        (["kernel", "interposer", "framework"], "framework"),
        (["unprotected", "kernel"], "unprotected"),
        (["of a later version"], ""),
        ([], ""),
    ],
)
def test_a_pod_is_as_well_off_as_its_worst_container(layers: list[str], shown: str) -> None:
    assert worst(SeenContainer(i, layer) for i, layer in enumerate(layers)) == shown


@pytest.mark.parametrize(
    ("shares", "of_the_pod"),
    [([], None), ([None], None), ([0], 0), ([None, 30], 30), ([40, 30], 70), ([80, 90], 100)],
)
def test_the_shares_of_time_of_a_pods_containers_add_up(
    shares: list[int | None], of_the_pod: int | None
) -> None:
    reports = [SeenContainer(i, "kernel", compute_percent=share) for i, share in enumerate(shares)]
    assert compute_percent(reports) == of_the_pod


@pytest.mark.parametrize("odd", [True, -50, 101, 10**30, "40", 40.0, None, []])
def test_a_share_of_time_that_cannot_be_is_not_known(odd: object) -> None:
    ((report,),) = reports_from_gpunode({"containers": [entry(computePercent=odd)]}).values()
    assert report == SeenContainer(1, "kernel")


def test_news_of_a_pod_touch_its_job_once() -> None:
    state = reported(FINE)
    assert state.changes.touched == {KEY}
    assert state.nodes.agents.reports(state.pods.known[POD]) == (FINE,)
    state.changes.touched.clear()
    state.nodes.reported("a", devices(), {POD: (FINE,)})
    assert state.changes.touched == set()
    state.nodes.reported("a", devices())
    assert state.changes.touched == {KEY}


def test_nothing_is_planned_anew_for_a_report() -> None:
    state = reported()
    before = state.changes.version
    state.nodes.reported("a", devices(), {POD: (OVER,)})
    assert state.changes.version == before
    state.changes.touched.clear()
    state.nodes.reported("a", devices(), {POD: (replace(OVER, compute_percent=40),)})
    assert (state.changes.version, state.changes.touched) == (before, {KEY}), (
        "its status is written, no more"
    )


def test_an_agent_has_no_say_about_pods_of_other_nodes() -> None:
    state = reported(OVER, node="b")
    assert state.nodes.agents.reports(state.pods.known[POD]) == ()


def test_reports_of_a_silent_agent_do_not_count_until_it_is_heard_again() -> None:
    state = reported(OVER)
    state.changes.touched.clear()
    state.nodes.agent_silent("a", SILENT)
    assert state.nodes.agents.reports(state.pods.known[POD]) == ()
    assert state.changes.touched == {KEY}
    state.nodes.agent_silent("a", "")
    assert state.nodes.agents.reports(state.pods.known[POD]) == (OVER,)


# --- devices and nodes ---


def unschedulable(state: ClusterState) -> str:
    return state.snapshot().nodes[0].unschedulable


def test_a_silent_agent_closes_its_node_and_what_runs_there_stays() -> None:
    state = reported()
    before = state.changes.version
    state.nodes.agent_silent("a", SILENT)
    assert unschedulable(state) == SILENT
    assert free(state) == [500, 1000]
    assert state.changes.version > before
    again = state.changes.version
    state.nodes.agent_silent("a", SILENT)
    assert state.changes.version == again
    state.nodes.agent_silent("a", "")
    assert unschedulable(state) == ""


def test_a_lease_without_a_gpunode_closes_nothing() -> None:
    state = make_cluster_state()
    state.nodes.agent_silent("a", SILENT)
    assert unschedulable(state) == ""
    state.nodes.reported("a", devices())
    assert unschedulable(state) == SILENT
    state.nodes.report_gone("a")
    assert unschedulable(state) == ""


def test_what_kubernetes_says_of_a_node_comes_first() -> None:
    state = reported()
    state.nodes.agent_silent("a", SILENT)
    state.nodes.changed(make_node("a", cordoned=True))
    assert unschedulable(state) == "is cordoned"


@pytest.mark.parametrize(
    ("state", "trouble"),
    [
        ({}, ""),
        ({"healthy": False, "illness": "XID 79"}, "is unhealthy: XID 79"),
        ({"healthy": False}, "is unhealthy"),
        (
            {"intruders": ("python (pid 7)", "a (pid 8)", "b (pid 9)", "c (pid 10)")},
            "has foreign processes: python (pid 7), a (pid 8), b (pid 9) and 1 more",
        ),
    ],
)
def test_a_device_with_a_trouble_takes_no_new_pods(state: dict[str, Any], trouble: str) -> None:
    cluster = reported(**state).snapshot()
    assert cluster.dev_healthy == [not trouble, True]
    assert cluster.dev_trouble == ({0: trouble} if trouble else {})
    assert cluster.copy().dev_trouble == cluster.dev_trouble


def test_illness_of_a_device_concerns_the_pods_that_hold_it() -> None:
    state = reported(healthy=False, illness="XID 79")
    assert state.changes.touched == {KEY}
    state.pod_changed(make_pod("job-1", node="a", devices=half("GPU-1"), phase="Running"))
    state.pod_changed(make_pod("job-2", node="a", devices=half("0"), phase="Running"))
    sick = {
        pod.name: [d.id for d in state.nodes.sick_devices(pod)] for pod in state.pods.known.values()
    }
    assert sick == {"job-0": ["GPU-0"], "job-1": [], "job-2": ["GPU-0"]}  # by index, as well


def test_strangers_on_a_device_are_no_illness() -> None:
    state = reported(intruders=("python (pid 7)",))
    assert state.nodes.sick_devices(state.pods.known[POD]) == ()


def test_everything_is_forgotten_with_the_gpunode() -> None:
    state = reported(OVER, healthy=False)
    state.nodes.report_gone("a")
    pod = state.pods.known[POD]
    assert (state.nodes.agents.reports(pod), state.nodes.sick_devices(pod)) == ((), ())
    assert list(state.nodes.agents.over_cap()) == []


def failed(state: ClusterState) -> tuple[str, ...]:
    return state.snapshot().nodes[0].failed_isolation


@pytest.mark.parametrize(
    ("told", "read"),
    [
        (["interposer"], ("interposer",)),
        (["framework", "interposer"], ("interposer", "framework")),
        (["of a later version", 5, None, {}], ()),
        ("interposer", ()),
        (None, ()),
    ],
)
def test_levels_that_failed_are_read_off_a_report(told: object, read: tuple[str, ...]) -> None:
    assert failed_isolation({"failedIsolation": told}) == read
    assert failed_isolation({}) == ()


def test_a_node_knows_which_levels_failed_there_while_its_agent_says_so() -> None:
    state = reported()
    assert failed(state) == ()
    version = state.changes.version
    state.nodes.reported("a", devices(), {}, ("interposer",))
    assert (failed(state), unschedulable(state)) == (("interposer",), "")
    assert state.changes.version > version, "whoever waits is planned anew"
    again = state.changes.version
    state.nodes.reported("a", devices(), {}, ("interposer",))
    assert state.changes.version == again
    state.nodes.changed(make_node("a", cordoned=True))
    assert failed(state) == ("interposer",)
    state.nodes.reported("a", devices())
    assert failed(state) == ()
    state.nodes.reported("a", devices(), {}, ("interposer",))
    state.nodes.report_gone("a")
    assert failed(state) == ()


CAPPED = [{"name": "gpu-scheduler-cap"}, {"name": "mine"}]


@pytest.mark.parametrize(
    ("init_containers", "isolation"), [(CAPPED, "interposer"), (CAPPED[::-1], ""), ([], "")]
)
def test_a_pod_needs_the_level_that_it_is_made_with(
    init_containers: list[dict[str, str]], isolation: str
) -> None:
    state = make_cluster_state(make_pod(init_containers=init_containers))
    (job,) = state.waiting_jobs()
    assert {pod.pod_shape.isolation for pod in job.pods} == {isolation}
