"""GPUUsage on a real API server: what agents say comes to who may view the namespace."""

import base64
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.agent import NODE
from tests.api.caller import Caller
from tests.api.chart_roles import with_roles
from tests.api.conftest import administrator
from tests.api.free_port import free_port
from tests.api.replica import CALM_LEASE, LEASE_NAMESPACE
from tests.api.site import Site, Team, site_on
from tests.api.tenant import GROUP, Json, Tenant, template, until
from tests.api.usage_agent import UsageAgent, usage_agent

from cluster import Running
from gpu_scheduler.runtime.usage.charting.chart import CLUSTER, SERIES, Chart, Charts

PORT = free_port()
ON_IT = template(nodeSelector={"kubernetes.io/hostname": NODE})
SETTINGS = {**CALM_LEASE, "agent_port": str(PORT), "usage_seconds": "1"}


@pytest.fixture(scope="module")
def site(control_plane: Running) -> Iterator[Site]:
    with (
        with_roles(control_plane, administrator(control_plane)),
        site_on(control_plane, SETTINGS) as made,
    ):
        yield made


@pytest.fixture
def agent(site: Site) -> Iterator[UsageAgent]:
    with usage_agent(site.admin, PORT) as made:
        yield made


def usage(caller: Caller, namespace: str) -> Any:
    return caller.get(f"{GROUP}/namespaces/{namespace}/gpuusages/current")


def workload(tenant: Tenant) -> Json:
    found: Json = workloads(tenant)[0]
    return found


def workloads(tenant: Tenant) -> list[Json]:
    answer = usage(tenant.admin, tenant.name)
    return list(answer.body["status"]["workloads"]) if answer.ok else []


def shown(tenant: Tenant, **figures: Any) -> Json:
    """Until the only workload of a namespace has these figures."""

    def found() -> Json | None:
        work = workload(tenant)
        return work if figures.items() <= work.items() else None

    result: Json = until(found, lambda: f"{figures}: {usage(tenant.admin, tenant.name).body}")
    return result


def viewing(site: Site, tenant: Tenant) -> Caller:
    """An account that may view a tenant's namespace, and nothing else."""
    group, name = "rbac.authorization.k8s.io", "default"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": tenant.name}
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "view"}
    body = {"metadata": {"name": "view"}, "roleRef": role, "subjects": [subject]}
    path = f"/apis/{group}/v1/namespaces/{tenant.name}/rolebindings"
    assert site.admin.create(path, body).ok
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{tenant.name}/serviceaccounts/{name}/token"
    token = site.admin.create(path, asked).body["status"]["token"]
    return Caller(site.running.server, site.running.ca_file, token)


def chart(site: Site) -> Chart | None:
    """The cluster's, as the operator's own object keeps it."""
    answer = site.admin.get(f"{GROUP}/namespaces/{LEASE_NAMESPACE}/gpuusages/cluster")
    text = answer.body.get("status", {}).get("charts") if answer.ok else None
    return Charts.loads(base64.b64decode(text)).by_name.get(CLUSTER) if text else None


def held_for(site: Site, gpus: float) -> dict[int, float]:
    """Of the last hour the steps in which so many GPUs were held."""
    found = chart(site)
    if found is None:
        return {}
    start, values = found.fine.window(time.time() + 60, 360)
    held = values[SERIES.index("held")]
    steps = (int(start) + 10 * number for number in range(len(held)))
    return {step: float(each) for step, each in zip(steps, held, strict=True) if each == gpus}


def later_than(before: dict[int, float], now: dict[int, float]) -> dict[int, float]:
    """``now``, where it has a later step."""
    return now if max(now, default=0) > max(before) else {}


def test_what_agents_say_is_shown_in_the_namespace_and_outlives_pods_and_leaders(
    site: Site, agent: UsageAgent, team: Team
) -> None:
    tenant = team(quota=2)
    tenant.submit("train", gpu=0.5, template=ON_IT)
    (pod,) = until(lambda: tenant.pods("train"), "it has a pod")
    uid = tenant.job("train")["metadata"]["uid"]
    tenant.wait_phase("train", "Running")
    agent.runs(pod, uid, busy=0.7, seconds=600)
    work = shown(tenant, busy={"now": 70, "mean": 70, "p50": 80, "p95": 80})
    assert (work["kind"], work["name"], work["uid"]) == ("GPUJob", "train", uid)
    assert (work["state"], work["gpus"], work["gpuSeconds"]) == ("Running", 0.5, 300)
    assert work["memoryMiB"] == {"now": 1000, "peak": 1000, "cap": 20_000}
    before = until(lambda: held_for(site, 0.5), lambda: f"the chart shows it: {chart(site)}")

    for seconds, mib in ((700, 1500), (900, 1500), (1200, 3000)):
        site.replica.kill()
        site.restart()  # its key is another one
        agent.runs(pod, uid, busy=0.7, seconds=seconds, mib=mib)
        work = shown(tenant, gpuSeconds=seconds // 2)
    assert work["memoryMiB"]["peak"] == 3000
    after = until(lambda: later_than(before, held_for(site, 0.5)), "the chart goes on")
    assert before.items() <= after.items()  # what the leader that was killed had seen

    agent.ends(pod["metadata"]["uid"])
    tenant.finish("train")
    work = shown(tenant, state="Ended")
    assert (work["gpuSeconds"], work["busy"]["mean"]) == (600, 70)
    kept = until(lambda: tenant.status("train")["usage"], "the job's status keeps it")
    assert (kept["gpuSeconds"], kept["meanPercent"], kept["peakMiB"]) == (600, 70, 3000)
    tenant.remove("train")
    site.replica.kill()
    site.restart()
    tenant.submit("train", gpu=0.5, template=ON_IT)  # another one of this name
    (second,) = until(lambda: tenant.pods("train"), "it has a pod")
    tenant.wait_phase("train", "Running")
    other = tenant.job("train")["metadata"]["uid"]
    agent.runs(second, other, busy=0.0, seconds=60)
    both = until(
        lambda: (
            {each["uid"]: each["state"] for each in workloads(tenant)}
            == {uid: "Ended", other: "Running"}
        ),
        "both are shown",
    )
    assert both


def test_who_may_view_a_namespace_sees_its_own_and_nothing_else(
    site: Site, agent: UsageAgent, team: Team
) -> None:
    mine, other = team(quota=1), team(quota=1)
    viewer = viewing(site, mine)
    for tenant in (mine, other):
        tenant.submit("train", gpu=0.5, template=ON_IT)
    for tenant in (mine, other):
        until(lambda t=tenant: workload(t)["name"] == "train", "it is shown")
    assert usage(viewer, mine.name).ok
    assert usage(viewer, other.name).status == 403
    assert viewer.get(f"{GROUP}/gpuusages").status == 403
    path = f"{GROUP}/namespaces/{mine.name}/gpuusages"
    for method, where, body in (
        ("PATCH", f"{path}/current", {"metadata": {"labels": {"a": "b"}}}),
        ("PATCH", f"{path}/current/status", {"status": {"gpus": 9}}),
        ("DELETE", f"{path}/current", None),
        ("POST", path, {"metadata": {"name": "mine"}}),
    ):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        assert viewer.send(method, where, body, kind).status == 403, (method, where)
