"""Three containers on one device: what owner and tenant are shown, and what the driver says.

One is busy; a notebook is busy on its CPU alone; one used its GPU and stopped.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from tests.api.tenant import Tenant
from tests.e2e import driver_view
from tests.e2e.cuda_jobs import NOTEBOOK, USED_ONCE, WATCHER, python
from tests.e2e.gpu_jobs import FIRST, Json, let_end, wait_running
from tests.e2e.metrics import leaders_metric
from tests.e2e.waits import until

from cluster import Running

ROOT = Path(__file__).parents[2]
SAMPLE_SECONDS = 10  # of agents
BUSY = {"works": 70, "notebook": 0, "stopped": 20}


def test_who_works_who_idles_and_who_stopped_on_one_device_are_told_apart(
    operated: Running, tenant: Tenant
) -> None:
    made = python(WATCHER)
    made["spec"]["containers"][0]["env"] = [{"name": "FAKEGPU_BUSY", "value": "70"}]
    tenant.submit("works", gpu=0.3, template=made)
    tenant.submit("notebook", gpu=0.5, type="interactive", template=python(NOTEBOOK))
    tenant.submit("stopped", gpu=0.2, template=python(USED_ONCE))
    pods = {name: wait_running(tenant, name) for name in BUSY}
    for name in BUSY:
        assert tenant.allocations(name)[0].devices[0].device == FIRST

    agree(tenant, BUSY)
    as_the_driver_says(operated, pods, BUSY)
    before = moment(usage(tenant)["observedAt"])
    let_end(operated, pods["stopped"])
    after = {**BUSY, "stopped": 0}
    values = agree(tenant, after)
    assert len(values) <= 3, f"within one sample: {values}"
    seen = as_the_driver_says(operated, pods, after)
    top = json.loads(gpu(operated, tenant, "top", "jobs", "-o", "json"))
    use = {job["name"]: job["use"] for job in top["jobs"]}
    for name, process in seen.items():
        assert abs(use[name]["busyPercent"]["now"] - process["busy"]) <= 2, (name, seen, top)
        assert use[name]["memoryMiB"]["now"] == process["mib"], (name, seen, top)

    assert shown(tenant, "works")["gpus"] == 0.3
    for each in workloads(tenant):
        assert each["memoryMiB"]["now"] >= 64
        assert each["host"]["ramMiB"] > 0
    assert shown(tenant, "notebook")["type"] == "interactive"
    until(lambda: "idleSince" in shown(tenant, "notebook"), "the notebook says since when")
    until(
        lambda: shown(tenant, "notebook")["host"]["cpuMilli"] > 200,
        lambda: f"its CPU is busy: {json.dumps(workloads(tenant))}",
    )
    assert leaders_metric(operated, "gpusched_silent_agents") == 0  # by who may see no tenant's
    report = gpu(operated, tenant, "report", "notebook")
    assert "0 %" in report, report

    tenant.remove("works")
    until(lambda: shown(tenant, "works")["state"] == "Ended", "what it did stays")
    whole = shown(tenant, "works")["busy"]
    assert whole["p95"] in (70, 80)  # the steps of its histogram that 70 lies between
    assert 0 < whole["mean"] <= 70  # a slow start is in it, in which it had no kernel yet
    assert "works" in gpu(operated, tenant, "report", "works")

    found = until(
        lambda: (one := shown(tenant, "stopped")).get("idleSince") and one,
        lambda: f"who stopped says since when: {json.dumps(workloads(tenant))}",
    )
    assert found["busy"]["mean"] > 0
    assert found["busy"]["now"] == 0
    started, idle = moment(found["startedAt"]), moment(found["idleSince"])
    assert idle > started
    assert (idle - before).total_seconds() > -SAMPLE_SECONDS, found
    assert "idleSince" not in shown(tenant, "works")


def agree(tenant: Tenant, busy: Mapping[str, int]) -> list[list[int | None]]:
    """Until all are as busy as this, give or take 2 %; what was said on the way, each once."""
    values: list[list[int | None]] = []

    def now() -> bool:
        found = {each["name"]: each["busy"].get("now") for each in workloads(tenant)}
        said = [found.get(name) for name in busy]
        if said not in values:
            values.append(said)
        near = zip(said, busy.values(), strict=True)
        return all(one is not None and abs(one - other) <= 2 for one, other in near)

    until(now, lambda: f"{busy} is shown: {json.dumps(workloads(tenant))}")
    return values


def as_the_driver_says(
    cluster: Running, pods: Mapping[str, Json], busy: Mapping[str, int]
) -> dict[str, Json]:
    """The programs do so, and the driver says it; what it says of the process of each pod."""
    seen = driver_view.look(cluster)
    assert seen["busy"] == sum(busy.values()), seen
    found = {name: driver_view.of_pod(seen, pod) for name, pod in pods.items()}
    assert {name: process["busy"] for name, process in found.items()} == busy
    return found


def usage(tenant: Tenant) -> Json:
    """The status of the namespace's GPUUsage; empty: there is none."""
    path = f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{tenant.name}/gpuusages/current"
    answer = tenant.admin.get(path)
    found: Json = answer.body.get("status", {}) if answer.ok else {}
    return found


def workloads(tenant: Tenant) -> list[Json]:
    return list(usage(tenant).get("workloads", ()))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shown(tenant: Tenant, name: str) -> Json:
    return next(each for each in workloads(tenant) if each["name"] == name)


def gpu(cluster: Running, tenant: Tenant, *words: str) -> str:
    """What a command of the command line prints."""
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    command = [sys.executable, "-m", "gpu_scheduler.main", *words, "-n", tenant.name]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
