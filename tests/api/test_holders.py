"""GPUs of ours and of NVIDIA's device plugin on the same nodes: who keeps out of whose way.

Two fake nodes of two GPUs each, which the stock scheduler knows as ``nvidia.com/gpu`` too.
"""

import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api import account
from tests.api.caller import Caller
from tests.api.conftest import SERVERS, administrator
from tests.api.fake_nodes import other_nodes
from tests.api.free_port import free_port
from tests.api.replica import CALM_LEASE, LEASE_NAMESPACE, Replica, operating
from tests.api.tenant import Json, Tenant, until

from cluster import Running
from gpu_scheduler.api.names import ALLOCATION, LABEL_HOLDS
from gpu_scheduler.jobs.placeholder import PlaceholderSettings, holder

DEPLOYMENT, CLASS, IMPORTANT = "gpu-scheduler", "gpu-scheduler-holder", "important"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
HOLDERS = f"/api/v1/namespaces/{LEASE_NAMESPACE}/pods"
GPU = "nvidia.com/gpu"


def nodes_of_both(folder: Path) -> Path:
    """Two of the Dell servers, with a device plugin."""
    found = list(yaml.safe_load_all(SERVERS.read_text()))[:2]
    for node in found:
        resources = {**node["status"]["capacity"], GPU: "2"}
        node["status"] = {"capacity": resources, "allocatable": resources}
    path = folder / "nodes.yaml"
    path.write_text(yaml.safe_dump_all(found))
    return path


@pytest.fixture(scope="module")
def site(control_plane: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    nodes = nodes_of_both(tmp_path_factory.mktemp("nodes"))
    admin = administrator(control_plane)
    until(
        lambda: admin.get(f"/api/v1/namespaces/{LEASE_NAMESPACE}/serviceaccounts/default").ok,
        "the namespace has a service account",
    )
    important = {"metadata": {"name": IMPORTANT}, "value": 1000}
    with other_nodes(control_plane, nodes):
        assert admin.create(CLASSES, important).ok
        yield control_plane
        assert admin.send("DELETE", f"{CLASSES}/{IMPORTANT}").ok


@pytest.fixture
def admin(site: Running) -> Caller:
    return administrator(site)


@pytest.fixture
def tenant(admin: Caller) -> Iterator[Tenant]:
    made = Tenant(admin).create(quota=4)
    yield made
    admin.send("DELETE", f"/api/v1/namespaces/{made.name}/pods")
    made.delete()
    admin.send("DELETE", HOLDERS)
    until(lambda: not holders(admin), "all holders are gone")


@pytest.fixture
def deployment(admin: Caller) -> Iterator[None]:
    """What owns the holders; the replicas of these tests are processes."""
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "x", "image": "example/placeholder:1"}]},
    }
    body = {
        "metadata": {"name": DEPLOYMENT},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{LEASE_NAMESPACE}/deployments"
    assert admin.create(path, body).ok
    yield
    admin.send("DELETE", f"{path}/{DEPLOYMENT}")


@contextmanager
def operator(site: Running, holders: str = "devices", **more: str) -> Iterator[Replica]:
    settings = {
        **CALM_LEASE,
        "holders": holders,
        "holders_image": ":".join(account.IMAGE),
        "holders_keep_seconds": "2",
        "holders_priority_class": CLASS,
        "avoid_seconds": "1",
        **more,
    }
    with operating(site, settings, f"operator-{uuid.uuid4().hex[:6]}") as replica:
        yield replica


def holders(admin: Caller, *, on: str = "") -> list[Json]:
    """Pods that hold a device, those on a node if one is named."""
    found = admin.get(f"{HOLDERS}?labelSelector={LABEL_HOLDS.replace('/', '%2F')}").body["items"]
    return [pod for pod in found if not on or pod["spec"].get("nodeName") == on]


def stock_pod(tenant: Tenant, name: str, **spec: Any) -> str:
    """A pod of somebody else: a whole GPU from the device plugin, by the stock scheduler."""
    container = {"name": "x", "image": "example/placeholder:1"}
    limits = {"resources": {"limits": {GPU: "1"}}}
    body = {"metadata": {"name": name}, "spec": {"containers": [{**container, **limits}], **spec}}
    assert tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/pods", body).ok
    return f"/api/v1/namespaces/{tenant.name}/pods/{name}"


def node_of(admin: Caller, pod: str) -> str:
    return str(admin.get(pod).body["spec"].get("nodeName", ""))


def wait_refused(admin: Caller, pod: str) -> str:
    """Until the stock scheduler has said that a pod fits nowhere; its words."""

    def verdict() -> str:
        conditions = admin.get(pod).body["status"].get("conditions", [])
        return next((c["message"] for c in conditions if c.get("reason") == "Unschedulable"), "")

    return str(until(verdict, "the stock scheduler refuses the pod"))


def fill(tenant: Tenant, node: str, **spec: Any) -> str:
    """A GPUJob that holds both GPUs of a node."""
    there = {"kubernetes.io/hostname": node}
    pod = {
        "containers": [{"name": "main", "image": "example/placeholder:1"}],
        "nodeSelector": there,
    }
    tenant.submit("fill", gpu=2, template={"spec": pod}, **spec)
    tenant.wait_placed("fill")
    tenant.wait_phase("fill", "Running")
    return node


def test_the_stock_scheduler_keeps_off_gpus_that_gpujobs_use(
    site: Running, admin: Caller, tenant: Tenant
) -> None:
    with operator(site):
        ours = fill(tenant, "r7525-0")
        until(lambda: len(holders(admin, on=ours)) == 2, "both GPUs are held")
        theirs = [stock_pod(tenant, f"stock-{i}") for i in range(3)]
        until(lambda: sum(node_of(admin, p) == "r7525-1" for p in theirs) == 2, "two fit elsewhere")
        (third,) = [pod for pod in theirs if not node_of(admin, pod)]
        assert f"Insufficient {GPU}" in wait_refused(admin, third)
        tenant.remove("fill")
        until(lambda: node_of(admin, third) == ours, "the third starts once ours are free")
        until(lambda: len(holders(admin)) == 0, "nothing is held any more")


def test_without_holders_it_would_not(site: Running, admin: Caller, tenant: Tenant) -> None:
    with operator(site, "off"):
        ours = fill(tenant, "r7525-0")
        pod = stock_pod(tenant, "stock", nodeSelector={"kubernetes.io/hostname": ours})
        until(lambda: node_of(admin, pod) == ours, "it takes a GPU that is in use")


def test_a_holder_that_does_not_fit_waits_and_harms_nobody(
    site: Running, admin: Caller, tenant: Tenant
) -> None:
    with operator(site, "off"):
        ours = fill(tenant, "r7525-0")
        there = {"kubernetes.io/hostname": ours}
        theirs = [stock_pod(tenant, f"stock-{i}", nodeSelector=there) for i in range(2)]
        until(lambda: all(node_of(admin, pod) == ours for pod in theirs), "both took ours")
        before = [admin.get(pod).body["metadata"]["uid"] for pod in theirs]
    port = free_port()
    with operator(site, admin_port=str(port), admin_host="127.0.0.1"):
        waiting = until(lambda: holders(admin), "there are holders")
        for pod in waiting:
            wait_refused(admin, f"{HOLDERS}/{pod['metadata']['name']}")
        until(lambda: metric(port, 'gpusched_holders{state="waiting"}') == 2, "both are counted")
        assert [admin.get(pod).body["metadata"]["uid"] for pod in theirs] == before
        assert tenant.status("fill")["phase"] == "Running"
        admin.send("DELETE", theirs[0])
        until(lambda: len(holders(admin, on=ours)) == 1, "what is free again is held")


def metric(port: int, name: str) -> float:
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    (value,) = [line.split()[-1] for line in lines if line.startswith(name)]
    return float(value)


def test_important_pods_of_others_do_not_take_a_holders_place(
    site: Running, admin: Caller, tenant: Tenant
) -> None:
    with operator(site):
        ours = fill(tenant, "r7525-0")
        until(lambda: len(holders(admin, on=ours)) == 2, "both GPUs are held")
        there = {"kubernetes.io/hostname": ours}
        pod = stock_pod(tenant, "vip", priorityClassName=IMPORTANT, nodeSelector=there)
        assert "preemption" in wait_refused(admin, pod)
        assert len(holders(admin, on=ours)) == 2


def test_holders_survive_the_operator_and_go_with_the_release(
    site: Running, admin: Caller, tenant: Tenant, deployment: None
) -> None:
    with operator(site, "nodes", holders_owner=DEPLOYMENT) as replica:
        tenant.submit("half", gpu=0.5)
        (placed,) = tenant.wait_placed("half")
        until(lambda: len(holders(admin, on=placed.node)) == 2, "the whole node is held")
        replica.kill()
        replica.forget()
    before = {pod["metadata"]["uid"] for pod in holders(admin)}
    with operator(site, "nodes", holders_owner=DEPLOYMENT) as replica:
        tenant.submit("more", gpu=0.5)  # beside the first, where two are held already
        assert tenant.wait_placed("more")[0].node == placed.node
        tenant.submit("another", gpu=1)
        used = {placed.node, tenant.wait_placed("another")[0].node}
        until(lambda: len(holders(admin)) == 2 * len(used), "one per GPU of the nodes in use")
        assert before <= {pod["metadata"]["uid"] for pod in holders(admin)}
        replica.kill()
        replica.forget()
    path = f"/apis/apps/v1/namespaces/{LEASE_NAMESPACE}/deployments/{DEPLOYMENT}"
    assert admin.send("DELETE", f"{path}?propagationPolicy=Background").ok
    until(lambda: not holders(admin), "they went with their Deployment")


def test_switching_them_off_removes_them(site: Running, admin: Caller, tenant: Tenant) -> None:
    with operator(site):
        ours = fill(tenant, "r7525-0")
        until(lambda: len(holders(admin, on=ours)) == 2, "both GPUs are held")
    with operator(site, "off"):
        until(lambda: not holders(admin), "nothing is held any more")
        assert tenant.status("fill")["phase"] == "Running"


def test_a_node_with_pods_of_others_takes_none_of_ours(
    site: Running, admin: Caller, tenant: Tenant
) -> None:
    with operator(site):
        first = stock_pod(tenant, "a", nodeSelector={"kubernetes.io/hostname": "r7525-0"})
        second = stock_pod(tenant, "b", nodeSelector={"kubernetes.io/hostname": "r7525-1"})
        until(lambda: node_of(admin, first) and node_of(admin, second), "both nodes are in use")
        tenant.submit("small", gpu=0.1)
        message = tenant.wait_reason("small", "WaitingForGPU")
        assert "which this scheduler did not place" in message, message
        admin.send("DELETE", second)
        assert tenant.wait_placed("small")[0].node == "r7525-1"


def in_spec(**fields: Any) -> Json:
    return {"spec": fields}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="none"),
        pytest.param({"metadata": {"namespace": "default"}}, id="elsewhere"),
        pytest.param({"metadata": {"name": "any"}}, id="name"),
        pytest.param({"metadata": {"labels": {"app.kubernetes.io/name": "x"}}}, id="label"),
        pytest.param({"metadata": {"annotations": {ALLOCATION: "{}"}}}, id="allocation"),
        pytest.param(in_spec(nodeName="r7525-0"), id="node"),
        pytest.param(in_spec(hostNetwork=True), id="host network"),
        pytest.param(in_spec(automountServiceAccountToken=True), id="token"),
        pytest.param(in_spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), id="volume"),
        pytest.param(in_spec(initContainers=[{"name": "i", "image": "evil"}]), id="init"),
        pytest.param({"image": "evil"}, id="image"),
        pytest.param({"command": ["sh"]}, id="command"),
        pytest.param({"args": ["-c"]}, id="args"),
        pytest.param({"env": [{"name": "A", "value": "b"}]}, id="env"),
        pytest.param({"lifecycle": {"postStart": {"exec": {"command": ["sh"]}}}}, id="hook"),
        pytest.param({"securityContext": {"privileged": True}}, id="privileged"),
    ],
)
def test_with_the_operators_token_nothing_but_a_holder_is_created(
    site: Running, change: Json
) -> None:
    """A change of neither metadata nor spec is one of its container."""
    settings = PlaceholderSettings(LEASE_NAMESPACE, ":".join(account.IMAGE), priority_class=CLASS)
    pod = holder("r7525-0", "GPU-of-nobody", settings, None)
    for part in ("metadata", "spec"):
        for key, value in change.get(part, {}).items():
            both = isinstance(value, dict) and isinstance(pod[part].get(key), dict)
            pod[part][key] = {**pod[part][key], **value} if both else value
    pod["spec"]["containers"][0] |= {k: v for k, v in change.items() if k not in pod}
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
    answer = account.operator(site).create(path, pod)
    if not change:
        assert answer.ok, answer.message
        assert account.operator(site).send("DELETE", f"{path}/{pod['metadata']['name']}").ok
    else:
        assert answer.status == 403, answer.message
        assert "creates pods as a dry run and its holders" in answer.message
