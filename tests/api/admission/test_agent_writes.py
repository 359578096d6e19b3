"""An agent's token, as its pod gets it: it writes what is its own node's, and reads nothing."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.api.admission.objects import RELEASE, refused, wait_until
from tests.api.caller import Answer, Caller

from cluster import Running
from gpu_scheduler.agent.heartbeat import lease
from gpu_scheduler.api.names import COMPONENT_AGENT, LABEL_COMPONENT, ORDERS
from gpu_scheduler.kube.media_types import MERGE_PATCH

JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

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


def version(admin: Caller, path: str) -> str:
    found = admin.get(path)
    return str(found.body["metadata"]["resourceVersion"]) if found.ok else "1"


def put(caller: Caller, path: str, body: dict[str, Any], version: str) -> Answer:
    meta = {**body["metadata"], "resourceVersion": version}
    return caller.send("PUT", path, {**body, "metadata": meta})


def beat(node: str) -> dict[str, Any]:
    return lease(node, RELEASE, 40, datetime.now(UTC), "")


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
                "metadata": {"name": f"pod-{node}", "labels": {LABEL_COMPONENT: COMPONENT_AGENT}},
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
    none = gpunode("none")
    wait_until(lambda: refused(found["agent-a"].create(GPUNODES, none)))
    return found


@pytest.fixture(scope="module")
def secrets(agents: dict[str, Caller], admin: Caller) -> dict[str, Any]:
    """What the agent of the other node has reported; agent-a knows its names and its versions."""
    agent = agents["agent-b"]
    made = agent.create(GPUNODES, gpunode("agent-b"))
    assert made.ok, made.message
    container = {"namespace": "secret-ns", "pod": "secret-pod", "uid": "secret-uid"}
    status = {"devices": [], "containers": [{**container, "container": 0, "isolation": "kernel"}]}
    path = f"{GPUNODES}/agent-b"
    done = put(agent, f"{path}/status", gpunode("agent-b", status), version(admin, path))
    assert done.ok, done.message
    made = agent.create(LEASES, beat("agent-b"))
    assert made.ok, made.message
    return status


def test_an_agent_writes_its_own_node(agents: dict[str, Caller], admin: Caller) -> None:
    agent, path = agents["agent-a"], f"{GPUNODES}/agent-a"
    made = agent.create(GPUNODES, gpunode("agent-a"))
    assert made.ok, made.message
    now = made.body["metadata"]["resourceVersion"]
    status = {"gpus": 0, "devices": []}
    written = put(agent, f"{path}/status", gpunode("agent-a", status), now)
    assert written.ok, written.message
    now = written.body["metadata"]["resourceVersion"]
    tried = put(agent, f"{path}?dryRun=All", gpunode("agent-a"), now)
    assert tried.ok, tried.message
    assert tried.body["status"] == status, "so it reads back what it wrote"
    made = agent.create(LEASES, beat("agent-a"))
    assert made.ok, made.message
    again = put(
        agent,
        f"{LEASES}/gpu-node-agent-a",
        beat("agent-a"),
        made.body["metadata"]["resourceVersion"],
    )
    assert again.ok, again.message


GPUNODE, LEASE = f"{GPUNODES}/agent-b", f"{LEASES}/gpu-node-agent-b"
ODD = {"devices": [{"uuid": 7}]}
WRITES = {
    "gpunode": (GPUNODE, lambda: gpunode("agent-b")),
    "status": (f"{GPUNODE}/status", lambda: gpunode("agent-b", {"devices": []})),
    "lease": (LEASE, lambda: beat("agent-b")),
}


@pytest.mark.parametrize("what", WRITES)
@pytest.mark.parametrize("query", ["", "?dryRun=All"])
def test_it_writes_nothing_of_another(
    agents: dict[str, Caller], admin: Caller, secrets: dict[str, Any], what: str, query: str
) -> None:
    path, body = WRITES[what]
    seen = admin.get(path.removesuffix("/status")).body
    answer = put(agents["agent-a"], path + query, body(), seen["metadata"]["resourceVersion"])
    assert answer.status == 403, answer.message
    assert 'the agent of node "agent-a" may write' in answer.message
    assert "secret" not in str(answer.body)
    assert admin.get(path.removesuffix("/status")).body == seen


@pytest.mark.parametrize(
    ("collection", "body"),
    [
        pytest.param(GPUNODES, lambda: gpunode("agent-c"), id="gpunode"),
        pytest.param(GPUNODES, lambda: gpunode("agent-b"), id="one that is there"),
        pytest.param(LEASES, lambda: beat("agent-c"), id="lease"),
        pytest.param(LEASES, lambda: named(beat("x"), "gpu-scheduler-leader"), id="leader"),
        pytest.param(LEASES, lambda: named(beat("x"), "agent-a"), id="lease without prefix"),
    ],
)
def test_it_makes_nothing_of_another(
    agents: dict[str, Caller],
    secrets: dict[str, Any],
    collection: str,
    body: Callable[[], dict[str, Any]],
) -> None:
    answer = agents["agent-a"].create(collection, body())
    assert answer.status == 403, answer.message
    assert 'the agent of node "agent-a" may write' in answer.message


def named(body: dict[str, Any], name: str) -> dict[str, Any]:
    body["metadata"]["name"] = name
    return body


def copies(source: str, target: str) -> list[dict[str, str]]:
    return [{"op": "copy", "from": source, "path": target}]


PATCHES: dict[str, tuple[str, Any]] = {
    # Before any policy is asked, the error of the first shows the whole object, those of the next
    # two a field each, and the fourth tells whether a guess is right.
    "unreadable": (JSON_PATCH, copies("/status/containers/0/pod", "/metadata/finalizers")),
    "copied to a name": (JSON_PATCH, copies("/status/containers/0/pod", "/metadata/name")),
    "copied to an enum": (JSON_PATCH, copies("/status/containers/0/pod", "/status/isolation")),
    "tested": (JSON_PATCH, [{"op": "test", "path": "/metadata/name", "value": "agent-b"}]),
    "unreadable merge": (MERGE_PATCH, {"metadata": {"finalizers": "x"}}),
    "nothing": (MERGE_PATCH, {}),
    "applied": (APPLY_PATCH, gpunode("agent-b")),
}


@pytest.mark.parametrize("patch", PATCHES)
@pytest.mark.parametrize("path", [GPUNODE, f"{GPUNODE}/status", LEASE], ids=lambda p: p[-12:])
def test_no_error_of_a_patch_shows_what_is_anothers(
    agents: dict[str, Caller], secrets: dict[str, Any], patch: str, path: str
) -> None:
    content_type, body = PATCHES[patch]
    query = "?fieldManager=x&force=true" if patch == "applied" else ""
    for more in (query, f"{query}{'&' if query else '?'}dryRun=All"):
        answer = agents["agent-a"].send("PATCH", path + more, body, content_type)
        assert answer.status == 403, answer.message
        assert "secret" not in str(answer.body)
        assert "cannot patch resource" in answer.message, "refused before the object is read"


@pytest.mark.parametrize("stale", ["", "0", "1", "99999999"])
@pytest.mark.parametrize("status", [{"devices": []}, ODD, None], ids=["plain", "odd", "none"])
def test_no_error_of_a_replacement_shows_what_is_anothers(
    agents: dict[str, Caller],
    admin: Caller,
    secrets: dict[str, Any],
    stale: str,
    status: dict[str, Any] | None,
) -> None:
    for path in (GPUNODE, f"{GPUNODE}/status"):
        for at in (stale, version(admin, GPUNODE)):
            answer = put(agents["agent-a"], path, gpunode("agent-b", status), at)
            assert not answer.ok
            assert "secret" not in str(answer.body)


@pytest.mark.parametrize(
    "path",
    [
        *(GPUNODE, GPUNODES, f"{GPUNODES}/agent-a", LEASE, LEASES, "/api/v1/pods", "/api/v1/nodes"),
        *("/apis/gpu-scheduler.io/v1alpha1/gpuprojects", f"{GPUNODES}?watch=true"),
        *("/apis/gpu-scheduler.io/v1alpha1/gpujobs", f"/api/v1/namespaces/{RELEASE}/pods"),
        f"/api/v1/namespaces/{RELEASE}/pods/pod-agent-a",
    ],
)
def test_it_reads_nothing_at_all(
    agents: dict[str, Caller], secrets: dict[str, Any], path: str
) -> None:
    assert agents["agent-a"].get(path).status == 403


def test_a_token_that_names_no_node_writes_nothing(cluster: Running, admin: Caller) -> None:
    unbound = Caller(cluster.server, cluster.ca_file, token(admin, None))
    answer = unbound.create(GPUNODES, gpunode("agent-a"))
    assert answer.status == 403, answer.message
    assert 'the agent of node "" may write' in answer.message


def test_nobody_but_the_operator_tells_an_agent_what_to_do(
    agents: dict[str, Caller], editor: Caller, admin: Caller, operator: Caller
) -> None:
    body: dict[str, Any] = {"metadata": {"annotations": {ORDERS: "{}"}}}
    path = f"/api/v1/namespaces/{RELEASE}/pods/pod-agent-a"
    for caller in (agents["agent-a"], admin):
        assert caller.patch(path, body).status == 403
    told = operator.patch(path, body)
    assert told.ok, told.message
    body["metadata"]["annotations"]["more"] = "x"
    assert operator.patch(path, body).status == 403, "nothing else of such a pod"


@pytest.mark.parametrize(
    ("verb", "resource", "group"),
    [
        *((verb, "gpunodes", "gpu-scheduler.io") for verb in ("get", "list", "watch", "patch")),
        *((verb, "gpunodes/status", "gpu-scheduler.io") for verb in ("get", "patch")),
        *((verb, "leases", "coordination.k8s.io") for verb in ("get", "list", "watch", "patch")),
        *((verb, "pods", "") for verb in ("get", "list", "watch")),
        *((verb, "gpuprojects", "gpu-scheduler.io") for verb in ("get", "list", "watch")),
        ("get", "nodes", ""),
        ("deletecollection", "gpunodes", "gpu-scheduler.io"),
        ("delete", "leases", "coordination.k8s.io"),
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
