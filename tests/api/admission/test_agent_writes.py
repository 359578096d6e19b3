"""An agent writes its own node's GPUNode and Lease, with the token that its pod gets."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.api.admission.objects import RELEASE, refused, wait_until
from tests.api.caller import Answer, Caller

from cluster import Running
from gpu_scheduler.agent.heartbeat import lease
from gpu_scheduler.kube.client import APPLY_PATCH

NODES = ("agent-a", "agent-b")
ACCOUNT = f"{RELEASE}-agent"
GPUNODES = "/apis/gpu-scheduler.io/v1alpha1/gpunodes"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{RELEASE}/leases"


def gpunode(name: str, status: dict[str, Any] | None = None) -> dict[str, Any]:
    body = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUNode",
        "metadata": {"name": name},
    }
    return body | ({"status": status} if status is not None else {})


def apply(caller: Caller, path: str, body: dict[str, Any]) -> Answer:
    query = "?fieldManager=gpu-scheduler-agent&force=true"
    return caller.send("PATCH", path + query, body, APPLY_PATCH)


def beat(caller: Caller, name: str) -> Answer:
    from datetime import UTC, datetime

    body = lease("x", RELEASE, 40, datetime.now(UTC), "")
    body["metadata"]["name"] = name
    return apply(caller, f"{LEASES}/{name}", body)


def token(admin: Caller, bound_to: dict[str, str] | None) -> str:
    spec = {"boundObjectRef": bound_to} if bound_to else {}
    answer = admin.create(
        f"/api/v1/namespaces/{RELEASE}/serviceaccounts/{ACCOUNT}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    assert answer.ok, answer.message
    return str(answer.body["status"]["token"])


@pytest.fixture(scope="module")
def agents(cluster: Running, admin: Caller) -> dict[str, Caller]:
    """The agent of each node, with the token of a pod that runs there."""
    found = {}
    for node in NODES:
        made = admin.create(
            "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
        )
        assert made.ok, made.message
        pod = admin.create(
            f"/api/v1/namespaces/{RELEASE}/pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"pod-{node}"},
                "spec": {
                    "nodeName": node,
                    "serviceAccountName": ACCOUNT,
                    "containers": [{"name": "agent", "image": "agent"}],
                },
            },
        )
        assert pod.ok, pod.message
        meta = pod.body["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        found[node] = Caller(cluster.server, cluster.ca_file, token(admin, bound))
    wait_until(lambda: refused(apply(found["agent-a"], f"{GPUNODES}/none", gpunode("none"))))
    return found


def test_an_agent_writes_its_own_node(agents: dict[str, Caller]) -> None:
    for node, agent in agents.items():
        for path, body in (
            (f"{GPUNODES}/{node}", gpunode(node)),
            (f"{GPUNODES}/{node}/status", gpunode(node, {"gpus": 0, "devices": []})),
        ):
            answer = apply(agent, path, body)
            assert answer.ok, answer.message
        first, again = beat(agent, f"gpu-node-{node}"), beat(agent, f"gpu-node-{node}")
        assert first.ok, first.message
        assert again.ok, again.message


Write = Callable[[Caller], Answer]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda a: apply(a, f"{GPUNODES}/agent-b", gpunode("agent-b")), id="gpunode"),
        pytest.param(
            lambda a: apply(a, f"{GPUNODES}/agent-b/status", gpunode("agent-b", {"devices": []})),
            id="status",
        ),
        pytest.param(lambda a: beat(a, "gpu-node-agent-b"), id="lease"),
        pytest.param(lambda a: beat(a, "gpu-scheduler-leader"), id="leader"),
        pytest.param(lambda a: beat(a, "agent-a"), id="lease without prefix"),
        pytest.param(lambda a: a.create(GPUNODES, gpunode("agent-c")), id="create"),
    ],
)
def test_it_writes_nothing_of_another(agents: dict[str, Caller], write: Write) -> None:
    assert apply(agents["agent-b"], f"{GPUNODES}/agent-b", gpunode("agent-b")).ok
    answer = write(agents["agent-a"])
    assert answer.status == 403, answer.message
    assert 'the agent of node "agent-a" may write' in answer.message


def test_a_token_that_names_no_node_writes_nothing(cluster: Running, admin: Caller) -> None:
    unbound = Caller(cluster.server, cluster.ca_file, token(admin, None))
    answer = apply(unbound, f"{GPUNODES}/agent-a", gpunode("agent-a"))
    assert answer.status == 403, answer.message
    assert 'the agent of node "" may write' in answer.message


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        ("delete", "gpunodes", "gpu-scheduler.io"),
        ("patch", "gpuprojects", "gpu-scheduler.io"),
        ("patch", "gpujobs/status", "gpu-scheduler.io"),
        ("create", "pods/eviction", ""),
        ("delete", "pods", ""),
        ("patch", "pods", ""),
        ("patch", "nodes", ""),
        ("get", "secrets", ""),
        ("create", "events", ""),
    ],
)
def test_it_has_no_other_right(
    agents: dict[str, Caller], verb: str, resource: str, group: str
) -> None:
    assert not agents["agent-a"].may(verb, resource, RELEASE, group=group)
