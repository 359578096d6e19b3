"""``why`` and ``fit`` on a real API server: what they say is what the operator says and does."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.cli.program import gpu, gpu_here, write_kubeconfig
from tests.api.tenant import Tenant, until

from cluster import Running


def ask(running: Running, tenant: Tenant, *words: str) -> dict[str, Any]:
    done = gpu_here(running.kubeconfig, *words, "-n", tenant.name, "-o", "json")
    assert done.returncode == 0, done
    return dict(json.loads(done.stdout))


def asked_of_one_status(
    running: Running, tenant: Tenant, job: str
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """What ``why`` says of a job, and its status; None if that was written anew meanwhile."""
    before = tenant.status(job)
    found = ask(running, tenant, "why", job)
    return (found, before) if tenant.status(job) == before else None


def test_the_verdict_is_that_of_the_status(scheduled: Running, tenant: Tenant) -> None:
    tenant.submit("low", gpu=1, parallelism=8, type="interactive")
    tenant.wait_placed("low", 8)
    tenant.wait_phase("low", "Running")
    tenant.submit("first", gpu=2, priority=60)
    tenant.submit("train", gpu=0.5)
    tenant.wait_reason("first", "WaitingForGPU")
    tenant.wait_reason("train", "WaitingForGPU")
    until(lambda: tenant.status("train").get("queuePosition") == 2, "it is the second")
    found, status = until(lambda: asked_of_one_status(scheduled, tenant, "train"), "it stays so")
    said = {name: found["verdict"][name] for name in ("phase", "reason", "message")}
    assert said == {name: status[name] for name in said}
    assert found["verdict"]["queuePosition"] == found["place"]["position"] == 2
    assert [each["job"] for each in found["before"]] == [f"{tenant.name}/first"]
    assert found["project"]["allocated"] == "8"
    assert {each["missingGPU"] for each in found["candidates"]} == {"0.5"}
    assert [each["job"] for each in found["holders"]] == [f"{tenant.name}/low"]
    assert found["estimate"]["kind"] == "unknown"
    pod = tenant.pods("train")
    if pod:  # it may not be made before it has a place
        told = ask(scheduled, tenant, "why", f"pod/{pod[0]['metadata']['name']}")
        assert told["verdict"]["reason"] == "WaitingForGPU"
    runs = ask(scheduled, tenant, "why", "low")["verdict"]
    assert runs["phase"] == tenant.status("low")["phase"] and len(runs["places"]) == 8


@pytest.mark.parametrize(
    ("kind", "version", "word"),
    [
        ("Deployment", "apps/v1", "deploy"),
        ("StatefulSet", "apps/v1", "sts"),
        ("Job", "batch/v1", "job"),
    ],
)
def test_a_workload_whose_pods_are_refused_says_why(
    scheduled: Running, tenant: Tenant, kind: str, version: str, word: str
) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    path = f"/api/v1/namespaces/{tenant.name}/resourcequotas"
    assert tenant.admin.create(path, quota).ok
    until(
        lambda: tenant.admin.get(f"{path}/none").body.get("status", {}).get("hard"),
        "the quota is counted",
    )
    labels = {"app": "web", "gpu-scheduler.io/gpu": "0.5"}
    pod: dict[str, Any] = {"containers": [{"name": "main", "image": "x"}]}
    body: dict[str, Any] = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": pod}},
    }
    if kind == "Job":
        pod["restartPolicy"] = "Never"
    else:
        body["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    plural = f"{kind.lower()}s"
    assert tenant.admin.create(f"/apis/{version}/namespaces/{tenant.name}/{plural}", body).ok

    def refused() -> dict[str, Any] | None:
        found = ask(scheduled, tenant, "why", f"{word}/web")
        return found if found["verdict"]["reason"] == "PodsRefused" else None

    found = until(refused, lambda: str(ask(scheduled, tenant, "why", f"{word}/web")))
    assert "exceeded quota: none" in found["verdict"]["message"]


def test_who_may_read_the_namespace_alone_gets_the_verdict(
    scheduled: Running, tenant: Tenant, tmp_path: Path
) -> None:
    tenant.submit("big", gpu=64)
    message = tenant.wait_reason("big", "Unsatisfiable")
    rules = [
        {"apiGroups": ["gpu-scheduler.io"], "resources": ["gpujobs"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    ]
    rbac, meta = "rbac.authorization.k8s.io", {"name": "reader", "namespace": tenant.name}
    account = {"kind": "ServiceAccount", "name": "reader", "namespace": tenant.name}
    for body in (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reader"},
            "subjects": [account],
        },
    ):
        scheduled.kubectl("apply", "-f", "-", input=yaml.safe_dump(body))
    token = scheduled.kubectl("create", "token", "reader", "-n", tenant.name).stdout.strip()
    server = {"server": scheduled.server, "certificate-authority": str(scheduled.ca_file)}
    path = write_kubeconfig(tmp_path / "config", {"token": token}, **server)
    done = gpu_here(path, "why", "big", "-n", tenant.name)
    assert done.returncode == 0, done
    first, second, *_, last = done.stdout.splitlines()
    assert first == f"GPUJob {tenant.name}/big is Pending: Unsatisfiable"
    assert second.strip() == message
    assert "is forbidden" in last and "at the cluster scope" in last


def test_as_many_as_fit_said_then_start_there(scheduled: Running, tenant: Tenant) -> None:
    tenant.submit("there", gpu=0.5, parallelism=3)
    tenant.wait_placed("there", 3)
    found = ask(scheduled, tenant, "fit", "-g", "0.3")
    assert found["reason"] == "Fragmented" and found["fits"] == 19  # three halves leave 18 and one
    tenant.submit("next", gpu=0.3, parallelism=found["fits"] + 1)
    tenant.wait_placed("next", found["fits"])
    happened: dict[str, int] = {}
    for place in tenant.allocations("next"):
        happened[place.node] = happened.get(place.node, 0) + 1
    assert happened == {each["node"]: each["pods"] for each in found["nodes"]}
    assert tenant.wait_reason("next", "Fragmented")
    done = gpu(scheduled.kubeconfig, "fit", "-g", "0.3", "--count", "1", "-n", tenant.name)
    assert done.returncode == 1 and "Fragmented" in done.stdout
