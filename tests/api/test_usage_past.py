"""What ended is shown to its tenant when nothing of it is left, by another leader than saw it.

A job whose pods and node are gone, and a Deployment that was deleted. Yesterday is made by the
times in their objects, which a leader before wrote; the figures are as it wrote them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.api.chart_roles import with_roles
from tests.api.conftest import administrator
from tests.api.fake_nodes import node, with_nodes
from tests.api.free_port import free_port
from tests.api.logins import WAYS, Login, logins
from tests.api.site import site_on, team_on
from tests.api.tenant import GROUP, Json, Tenant, template, until
from tests.api.test_shares import SETTINGS as SHARES
from tests.api.test_shares import template as asking
from tests.api.test_usage import workloads
from tests.api.usage_agent import UsageAgent, usage_agent

from cluster import Running

NODE = "gone-soon"
ON_IT = {"nodeSelector": {"kubernetes.io/hostname": NODE}}
NOW = datetime.now(UTC).replace(microsecond=0)
YESTERDAY, AN_HOUR_AGO = NOW - timedelta(days=1), NOW - timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Past:
    """A tenant whose work is over, and its people by the way in which they come."""

    tenant: Tenant
    people: dict[str, Login]

    def report(self, way: str, name: str, *more: str) -> str:
        done = self.people[way].gpu("report", name, "-n", self.tenant.name, *more)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout


@pytest.fixture(scope="module")
def past(control_plane: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    port = free_port()
    settings = {**SHARES, "agent_port": str(port), "usage_seconds": "1"}
    with (
        with_roles(control_plane, administrator(control_plane)),
        site_on(control_plane, settings) as site,
        team_on(site) as team,
    ):
        tenant = team(quota=4)
        with with_nodes(site.admin, node(NODE, "Tesla-T4", 2)):
            train, web = begin(tenant)
            uid = tenant.job("train")["metadata"]["uid"]

            def knows(agent: UsageAgent) -> None:
                agent.runs(train, uid, busy=0.7, seconds=7200, mib=3000)
                work = f"{tenant.name}/deployment web"
                agent.runs(web, work, busy=0.2, seconds=3600, mib=2000)

            with usage_agent(site.admin, port, NODE, knows) as agent:
                end(tenant, agent, train, web)
        # The node's pods and its agent are gone with it.
        until(lambda: not tenant.pods(), "no pod is left")
        site.replica.kill()
        make_past(tenant)
        site.restart()
        tenant.submit("later", gpu=0.5)
        until(
            lambda: "later" in {work["name"] for work in workloads(tenant)},
            lambda: f"another leader writes: {workloads(tenant)}",
        )
        folder = tmp_path_factory.mktemp("people")
        with logins(control_plane, site.admin, tenant.name, folder) as three:
            yield Past(tenant, dict(zip(WAYS, three, strict=True)))


def begin(tenant: Tenant) -> tuple[Json, Json]:
    """A job and a Deployment; a pod of each, which runs."""
    labels = {"app": "web"}
    made = asking("0.25", labels=labels)
    made["spec"] |= ON_IT
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": made}
    path = f"/apis/apps/v1/namespaces/{tenant.name}/deployments"
    assert tenant.admin.create(path, {"metadata": {"name": "web"}, "spec": spec}).ok
    tenant.submit("train", gpu=0.5, template=template(**ON_IT))
    tenant.wait_phase("train", "Running")
    web = until(
        lambda: [pod for pod in tenant.pods() if runs(pod, "web")],
        lambda: f"the Deployment's pod runs: {[pod['status'] for pod in tenant.pods()]}",
    )
    return tenant.pods("train")[0], web[0]


def end(tenant: Tenant, agent: UsageAgent, train: Json, web: Json) -> None:
    """What they did with their GPUs is shown, and they are over; nothing of them is left."""
    until(lambda: peaks(tenant) == {"train": 3000, "web": 2000}, lambda: str(workloads(tenant)))
    for pod in (train, web):
        agent.ends(pod["metadata"]["uid"])
    tenant.finish("train")
    path = f"/apis/apps/v1/namespaces/{tenant.name}/deployments/web"
    assert tenant.admin.send("DELETE", path).ok
    until(
        lambda: {work["state"] for work in workloads(tenant)} == {"Ended"},
        lambda: f"both have ended: {workloads(tenant)}",
    )
    until(lambda: tenant.status("train")["usage"]["peakMiB"] == 3000, "the job's status keeps it")
    assert tenant.admin.send("DELETE", f"/api/v1/namespaces/{tenant.name}/pods").ok


def runs(pod: Json, app: str) -> bool:
    """Whether a pod of a Deployment runs."""
    labels, phase = pod["metadata"].get("labels", {}), pod["status"].get("phase")
    return (labels.get("app"), phase) == (app, "Running")


def peaks(tenant: Tenant) -> dict[str, Any]:
    return {work["name"]: work["memoryMiB"].get("peak") for work in workloads(tenant)}


def make_past(tenant: Tenant) -> None:
    """Set the times of what ended back, as they would stand there now."""
    ended = {"train": YESTERDAY, "web": AN_HOUR_AGO}
    works = workloads(tenant)
    for work in works:
        at = ended[work["name"]]
        work |= {"startedAt": stamp(at - timedelta(hours=2)), "endedAt": stamp(at)}
    path = f"{GROUP}/namespaces/{tenant.name}"
    status: Json = {"workloads": works, "observedAt": stamp(AN_HOUR_AGO)}
    assert tenant.admin.patch(f"{path}/gpuusages/current/status", {"status": status}).ok
    conditions = tenant.status("train")["conditions"]
    status = {
        "conditions": [{**each, "lastTransitionTime": stamp(YESTERDAY)} for each in conditions]
    }
    assert tenant.admin.patch(f"{path}/gpujobs/train/status", {"status": status}).ok


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("way", WAYS)
def test_a_job_of_yesterday_without_pods_and_node_is_reported(past: Past, way: str) -> None:
    assert not past.tenant.pods("train")
    assert not past.tenant.admin.get(f"/api/v1/nodes/{NODE}").ok
    found = json.loads(past.report(way, "train", "-o", "json"))
    assert found["state"].startswith("Succeeded")
    assert found["use"]["endedAt"] == stamp(YESTERDAY)
    assert (found["runSeconds"], found["gpuHoursHeld"], found["gpuHoursUsed"]) == (7200, 1.0, 1.0)
    assert (found["utilizationPercentMean"], found["peakMemoryMiB"]) == (70, 3000)
    text = past.report(way, "train")
    for figure in ("Succeeded", "GPU-hours used  1.00", "mean 70 %", "2.9 GiB"):
        assert figure in text, text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["web", "deployment/web"])
def test_a_deployment_that_was_deleted_an_hour_ago_is_reported(
    past: Past, way: str, name: str
) -> None:
    found = json.loads(past.report(way, name, "-o", "json"))
    assert found["state"] == "Ended, and deleted since"
    assert found["use"]["endedAt"] == stamp(AN_HOUR_AGO)
    assert (found["runSeconds"], found["gpuHoursHeld"]) == (7200, 0.5)
    assert (found["utilizationPercentMean"], found["peakMemoryMiB"]) == (20, 2000)
    text = past.report(way, name)
    for figure in ("Ended, and deleted since", "mean 20 %"):
        assert figure in text, text
