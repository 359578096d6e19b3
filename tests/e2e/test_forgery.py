"""What a user with the stock `edit` role may not do to pods while the operator works."""

import json
from typing import Any

import pytest
from tests.api.caller import Answer, Caller
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import container, start, template
from tests.e2e.waits import until

from cluster import Running, images
from gpu_scheduler.api.names import ALLOCATION, GATE


@pytest.fixture
def user(operated: Running) -> Caller:
    """Holds the ClusterRole `edit`."""
    return Caller(operated.server, operated.ca_file, operated.token("edit-user"))


@pytest.fixture(scope="module")
def pod(owner: Tenant) -> Json:
    """A running pod that holds half a GPU."""
    return start(owner, "honest", gpu=0.5)


def path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def bare_pod(name: str, **spec: Any) -> Json:
    main = {"name": "main", "image": images.QUICKSTART, "command": ["quickstart", "1"]}
    return {"metadata": {"name": name}, "spec": {"containers": [main], **spec}}


def refused(answer: Answer, *words: str) -> None:
    assert answer.status == 403, answer
    for word in words:
        assert word in answer.message


@pytest.mark.parametrize(
    "forged",
    [
        '{"v":1,"n":"real-0","c":{"0":{"GPU-11111111-1111-4111-8111-111111111111":[1,1]}}}',
        None,
    ],
    ids=["changed", "removed"],
)
def test_an_allocation_is_the_operators_alone(
    owner: Tenant, user: Caller, pod: Json, forged: str | None
) -> None:
    before = owner.allocations("honest")
    answer = user.patch(path(pod), {"metadata": {"annotations": {ALLOCATION: forged}}})
    refused(answer, ALLOCATION, "GPU scheduler alone", "edit-user")
    assert owner.allocations("honest") == before


def test_a_device_annotation_cannot_be_forged(user: Caller, pod: Json) -> None:
    body = {"metadata": {"annotations": {"gpu-scheduler.io/c0-devices": "all"}}}
    refused(user.patch(path(pod), body), "gpu-scheduler.io/c0-devices")


def test_a_pod_cannot_be_created_with_an_allocation(owner: Tenant, user: Caller) -> None:
    body = bare_pod("forged")
    body["metadata"]["annotations"] = {ALLOCATION: "{}"}
    refused(user.create(f"/api/v1/namespaces/{owner.name}/pods", body), ALLOCATION)


def test_the_gate_of_a_waiting_pod_stays(owner: Tenant, user: Caller, pod: Json) -> None:
    ports = [{"containerPort": 18080, "hostPort": 18080}]  # a reason for the gate path
    held = template(container(ports=ports))
    held["spec"]["schedulingGates"] = gates = [{"name": "example.com/wait"}, {"name": GATE}]
    owner.submit("patient", gpu=0.5, template=held)
    owner.wait_reason("patient", "SchedulingGated")
    (waiting,) = owner.pods("patient")
    assert waiting["spec"]["schedulingGates"] == gates
    answer = user.patch(path(waiting), {"spec": {"schedulingGates": None}})
    refused(answer, f"spec.schedulingGates: {GATE}", "GPU scheduler alone")
    (still,) = owner.pods("patient")
    assert still["spec"]["schedulingGates"] == gates


def test_our_scheduler_does_not_go_with_a_node_of_ones_choice(owner: Tenant, user: Caller) -> None:
    body = bare_pod("chooser", schedulerName="gpu-scheduler", nodeName="real-0")
    answer = user.create(f"/api/v1/namespaces/{owner.name}/pods", body)
    refused(answer, "spec.nodeName", "nodeSelector")


def test_a_user_cannot_bind_a_pod(owner: Tenant, user: Caller) -> None:
    pods = f"/api/v1/namespaces/{owner.name}/pods"
    assert user.create(pods, bare_pod("unbound", schedulerName="gpu-scheduler")).ok
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "unbound", "annotations": {ALLOCATION: "{}"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "real-0"},
    }
    refused(user.create(f"{pods}/unbound/binding", binding), "pods/binding", "edit-user")
    found = owner.admin.get(f"{pods}/unbound").body
    assert "nodeName" not in found["spec"]
    assert user.send("DELETE", f"{pods}/unbound").ok


def test_nobody_picks_gpus_by_hand_in_a_projects_namespace(owner: Tenant, user: Caller) -> None:
    body = bare_pod("picker", runtimeClassName="nvidia")
    body["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    answer = user.create(f"/api/v1/namespaces/{owner.name}/pods", body)
    refused(answer, "NVIDIA_VISIBLE_DEVICES", owner.name, "GPUJob")


def test_a_forged_template_gives_a_pod_that_is_refused(owner: Tenant, user: Caller) -> None:
    """The Job controller makes the pod, and it is not trusted either."""
    job = {
        "metadata": {"name": "forged"},
        "spec": {
            "template": {
                "metadata": {"annotations": {ALLOCATION: "{}"}},
                "spec": {"restartPolicy": "Never", **bare_pod("x")["spec"]},
            }
        },
    }
    assert user.create(f"/apis/batch/v1/namespaces/{owner.name}/jobs", job).ok
    until(
        lambda: [e for e in owner.events("forged") if ALLOCATION in e.get("message", "")],
        lambda: f"the Job says why it has no pod: {json.dumps(owner.events('forged'))}",
    )
    assert not [p for p in owner.pods() if p["metadata"]["name"].startswith("forged")]
