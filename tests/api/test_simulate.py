"""``kubectl gpu simulate`` on a real control plane: what it says is what then happens."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.conftest import administrator
from tests.api.forked import Done, command
from tests.api.replica import CALM_LEASE, operating
from tests.api.tenant import GROUP, Json, Tenant, until

from cluster import Running


@pytest.fixture(scope="module")
def scheduled(control_plane: Running) -> Iterator[Running]:
    """With an operator by strict rules: a simulation on a cluster plays what they do at once.

    It plays the jobs of all namespaces, and nobody waits for those of tests before to go.
    """
    admin = administrator(control_plane)
    until(lambda: not admin.get(f"{GROUP}/gpujobs").body["items"], "jobs of other tests are gone")
    with operating(control_plane, {**CALM_LEASE, "preemption": "strict"}):
        yield control_plane


@pytest.fixture
def simulate(scheduled: Running, tmp_path: Path) -> "Simulator":
    return Simulator(scheduled, tmp_path)


class Simulator:
    """Calls the program as a user with this cluster's kubeconfig does."""

    def __init__(self, running: Running, folder: Path) -> None:
        self._running, self._folder, self._files = running, folder, 0

    def file(self, *bodies: Json) -> str:
        self._files += 1
        path = self._folder / f"{self._files}.yaml"
        path.write_text(yaml.safe_dump_all(bodies))
        return str(path)

    def run(self, *arguments: str, kubeconfig: Path | None = None) -> Done:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig or self._running.kubeconfig)}
        return command(["simulate", *arguments], environment)

    def json(self, *arguments: str) -> dict[str, Any]:
        done = self.run("-o", "json", *arguments)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))


def gpujob(tenant: Tenant, name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": name, "namespace": tenant.name},
        "spec": {"image": "example/placeholder:1", **spec},
    }


def where(pods: list[Json]) -> set[tuple[str, ...]]:
    return {(p["node"], *sorted(d["device"] for d in p["devices"])) for p in pods}


def running(tenant: Tenant, job: str) -> set[str]:
    """Names of a job's pods that go on."""
    return {
        pod["metadata"]["name"]
        for pod in tenant.pods(job)
        if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
    }


def test_what_would_start_is_what_then_starts(tenant: Tenant, simulate: Simulator) -> None:
    tenant.submit("there", gpu=0.5)
    tenant.wait_placed("there")
    wanted = {"gpu": 0.3, "parallelism": 3}
    said = simulate.json("-f", simulate.file(gpujob(tenant, "next", **wanted)))
    assert [p["job"] for p in said["starts"]] == [f"{tenant.name}/next"] * 3
    assert (said["gpus"]["allocatedBefore"], said["gpus"]["allocatedAfter"]) == ("0.5", "1.4")
    assert said["evictions"] == [] and said["waits"] == [] and said["settled"]
    assert tenant.job("next")["kind"] == "Status", "it was not created"
    tenant.submit("next", **wanted)
    tenant.wait_placed("next", 3)
    happened = {(a.node, *sorted(g.device for g in a.devices)) for a in tenant.allocations("next")}
    assert happened == where(said["starts"])


def test_who_would_give_way_is_who_then_does(tenant: Tenant, simulate: Simulator) -> None:
    tenant.submit("low", gpu=1, parallelism=8, retries=0, priority=10)
    tenant.wait_placed("low", 8)
    until(lambda: len(running(tenant, "low")) == 8, "all run")
    urgent = {"gpu": 2, "priority": 90}
    said = simulate.json("-f", simulate.file(gpujob(tenant, "urgent", **urgent)))
    assert len(said["evictions"]) == 2
    (start,) = said["starts"]
    assert start["afterEvictions"]
    victims = {each["pod"] for each in said["evictions"]}
    assert {each["for"] for each in said["evictions"]} == {f"{tenant.name}/urgent"}
    (wait,) = said["waits"]
    assert (wait["job"], wait["reason"]) == (f"{tenant.name}/low", "WaitingForGPU")
    names = running(tenant, "low")
    assert len(names) == 8
    tenant.submit("urgent", **urgent)
    (placed,) = tenant.wait_placed("urgent")
    assert placed.node == start["node"]
    assert names - running(tenant, "low") == victims


def test_what_if_a_node_or_a_quota_were_other(tenant: Tenant, simulate: Simulator) -> None:
    tenant.set_project(quota=6, limit=6)
    tenant.submit("whole", gpu=2, parallelism=5)
    tenant.wait_placed("whole", 3)
    said = tenant.wait_reason("whole", "WaitingForQuota")
    (wait,) = simulate.json()["waits"]
    assert wait["reason"] == "WaitingForQuota"
    # Not who holds it: the operator's words may be those of a moment ago.
    assert wait["message"].split("; ")[:2] == said.split("; ")[:2]

    node = tenant.admin.get("/api/v1/nodes/r7525-0").body
    node["metadata"] = {"name": "r7525-9", "labels": node["metadata"]["labels"]}
    node["metadata"]["labels"]["kubernetes.io/hostname"] = "r7525-9"
    node = {"apiVersion": "v1", **{k: node[k] for k in ("metadata", "status")}, "kind": "Node"}
    project = tenant.admin.get(f"/apis/gpu-scheduler.io/v1alpha1/gpuprojects/{tenant.name}").body
    more = {**project, "spec": {**project["spec"], "quota": 10, "limit": 10}}
    then = simulate.json("-f", simulate.file(more))
    assert [w["reason"] for w in then["waits"]] == ["WaitingForGPU"]
    assert len(then["starts"]) == 1
    then = simulate.json("-f", simulate.file(more, node))
    assert len(then["starts"]) == 2 and then["waits"] == []
    assert "r7525-9" in {p["node"] for p in then["starts"]}
    (lost,) = {a.node for a in tenant.allocations("whole")[:1]}
    then = simulate.json("--remove", f"node/{lost}")
    assert [p["pod"].endswith("-again") for p in then["starts"]] == [True]
    assert lost not in {p["node"] for p in then["starts"]}
    assert then["gpus"]["total"] == 6


def test_a_user_without_rights_is_told_what_is_missing(
    tenant: Tenant, simulate: Simulator, scheduled: Running, tmp_path: Path
) -> None:
    config = yaml.safe_load(scheduled.kubeconfig.read_text())
    name = f"/api/v1/namespaces/{tenant.name}/serviceaccounts/default/token"
    answer = tenant.admin.create(name, {"spec": {}})
    assert answer.ok, answer
    for user in config["users"]:
        user["user"] = {"token": answer.body["status"]["token"]}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    done = simulate.run(kubeconfig=path)
    assert done.returncode == 1 and done.stdout == ""
    assert 'cannot list resource "gpuprojects"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_table_says_it_in_a_hundred_columns(tenant: Tenant, simulate: Simulator) -> None:
    tenant.submit("low", gpu=1, parallelism=8, retries=0, priority=10)
    tenant.wait_placed("low", 8)
    tenant.submit("wide", gpu=16)
    tenant.wait_reason("wide", "Unsatisfiable")
    done = simulate.run("-f", simulate.file(gpujob(tenant, "urgent", gpu=2, priority=90)))
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    for words in ("Would start: 1 pod", "Would give way: 2 pods", "Would wait: 2 jobs"):
        assert words in done.stdout


def test_without_a_cluster_there_is_one_line(simulate: Simulator, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: x, users: [],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}],"
        " contexts: [{name: x, context: {cluster: c}}]}"
    )
    done = simulate.run(kubeconfig=path)
    assert done.returncode == 1
    assert "http://127.0.0.1:9 does not answer" in done.stderr, done.stderr
    done = simulate.run(kubeconfig=tmp_path / "nothing")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no such file" in done.stderr
