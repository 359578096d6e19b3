"""Extended resources that a DRA driver serves are none of a node's, and none of the plugin's."""

from typing import Any

import pytest
from tests.unit.state.builders import half, make_node, make_pod
from tests.unit.state.cluster_states import make_cluster_state
from tests.unit.state.pods.test_plugin import unschedulable
from tests.unit.state.pods.test_shares import WEB, asking, state, waiting

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.kube.objects import DeviceClass, DeviceClassSpec, Meta
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.device_classes import IMPLICIT, DeviceClassStore

NIC, CLASS, JOB = "example.com/nic", "nic.example.com", JobKey("team-a/job")
ASKING: list[dict[str, Any]] = [{"name": "main", "resources": {"requests": {NIC: "1"}}}]
GATED: dict[str, Any] = {"path": "gate", "controller": "", "containers": ASKING}


def device_class(resource: str = NIC, name: str = CLASS) -> DeviceClass:
    return DeviceClass(Meta(name=name), DeviceClassSpec(resource))


def told(known: ClusterState) -> str:
    """Why nothing of what waits starts; empty where it starts."""
    jobs = known.waiting_jobs()
    result = plan(PlanInput(known.snapshot(), known.planner_projects(), jobs))
    return next((wait.message for wait in result.waits), "")


def test_what_no_node_has_and_no_class_serves_is_said() -> None:
    known = state()
    known.pod_changed(asking(**GATED))
    assert f"needs 1 {NIC}" in told(known)


@pytest.mark.parametrize("resource", [NIC, f"{IMPLICIT}{CLASS}"])
@pytest.mark.parametrize("first", [True, False])
def test_what_a_class_serves_keeps_no_pod_waiting_that_kube_scheduler_binds(
    resource: str, first: bool
) -> None:
    known, name = state(), device_class("" if resource.startswith(IMPLICIT) else resource)
    containers = [{"name": "main", "resources": {"requests": {resource: "1", "cpu": "1"}}}]
    if first:
        known.device_class_changed(name)
    known.pod_changed(asking(**{**GATED, "containers": containers}))
    known.device_class_changed(name)
    assert told(known) == ""
    (pod,) = waiting(known)[WEB].pods
    assert (pod.pod_shape.scalars, pod.pod_shape.cpu_milli) == ((), 1000)
    known.device_class_gone(CLASS)
    assert f"needs 1 {resource}" in told(known)


def test_a_pod_that_we_bind_goes_where_a_plugin_has_it_and_is_else_told_the_way_out() -> None:
    known = state()
    known.pod_changed(asking(containers=ASKING))
    known.device_class_changed(device_class())
    (record,) = known.groups.records.values()
    assert record.problem == (
        "resources of containers: no node has example.com/nic, whose devices are those of "
        "DeviceClass nic.example.com: kube-scheduler alone gives them, and a pod of a controller "
        "does not pass through it; ask for them in spec.resourceClaims"
    )
    known.device_class_gone(CLASS)
    assert record.problem == "" and "needs 1" in told(known)
    known.nodes.changed(make_node("nic", allocatable={NIC: "1"}))
    known.device_class_changed(device_class())
    assert record.problem == "" and told(known) == ""
    (pod,) = waiting(known)[WEB].pods
    assert pod.pod_shape.scalars == ((NIC, 1),)


def test_what_a_pod_lacks_besides_is_still_said_when_classes_change() -> None:
    known = state()
    known.lacks = lambda pod, asked: "spec: is not ours"
    known.pod_changed(asking(containers=ASKING))
    known.device_class_changed(device_class())
    known.device_class_gone(CLASS)
    (record,) = known.groups.records.values()
    assert record.problem == "spec: is not ours"


def test_jobs_whose_templates_ask_for_it_are_accepted_anew_and_no_others() -> None:
    known = make_cluster_state()
    pod = make_pod(containers=ASKING)
    known.accept(known.gpujobs[JOB], {"": pod})
    assert known.device_class_changed(device_class("example.com/other", "other")) == ()
    assert known.device_class_changed(device_class()) == (JOB,)
    assert known.gpujobs[JOB].templates is None
    known.accept(known.gpujobs[JOB], {"": pod})
    assert known.device_class_changed(device_class()) == (), "nothing new"
    assert known.device_class_gone(CLASS) == (JOB,)


def test_a_placed_pod_holds_what_a_plugin_gave_it_whatever_classes_serve() -> None:
    known = make_cluster_state()
    known.device_class_changed(device_class())
    known.nodes.changed(make_node("a", allocatable={NIC: "2"}))
    known.pod_changed(make_pod(path="gate", node="a", devices=half(), containers=ASKING))
    assert known.snapshot().free_scalars[NIC] == [1]


def test_of_two_classes_for_one_resource_either_names_it_until_both_are_gone() -> None:
    store = DeviceClassStore()
    store.put(device_class(name="b"))
    assert NIC not in store.put(device_class(name="a"))
    assert store.class_of(NIC) == "a"
    assert store.drop("a") == {f"{IMPLICIT}a"} and store.class_of(NIC) == "b"
    assert store.drop("b") == {NIC, f"{IMPLICIT}b"} and not store.class_of(NIC)


WHOLE = "nvidia.com/gpu"
CLAIM = {
    "resourceClaimName": "pause-extended-resources-x",
    "requestMappings": [
        {"containerName": "c", "resourceName": WHOLE, "requestName": "container-0-request-0"}
    ],
}


@pytest.mark.parametrize("allocatable", [{}, {WHOLE: "0"}, {WHOLE: "2"}])
def test_gpus_that_a_driver_gave_for_the_plugins_resource_close_the_node(
    allocatable: dict[str, str],
) -> None:
    asked = [{"resources": {"requests": {WHOLE: "1"}}}]
    pod = make_pod("pause", path="other", job=None, node="a", containers=asked)
    known = make_cluster_state(pod)
    known.nodes.changed(make_node("a", allocatable=allocatable))
    assert bool(unschedulable(known)) == (WHOLE in allocatable)
    known.pod_changed(
        make_pod(
            "pause",
            path="other",
            job=None,
            node="a",
            containers=asked,
            version=2,
            extendedResourceClaimStatus=CLAIM,
        )
    )
    assert "has GPUs in use by team-a/pause" in unschedulable(known)


def test_a_claim_of_something_else_closes_nothing() -> None:
    mapping = {"containerName": "c", "resourceName": NIC, "requestName": "container-0-request-0"}
    status = {"resourceClaimName": "x", "requestMappings": [mapping]}
    pod = make_pod(
        "pause",
        path="other",
        job=None,
        node="a",
        containers=[{"resources": {"requests": {WHOLE: "1", NIC: "1"}}}],
        extendedResourceClaimStatus=status,
    )
    assert unschedulable(make_cluster_state(pod)) == ""
