"""Two containers on one device, one busy and one idle: what owner and tenant are shown of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.api.tenant import Tenant
from tests.e2e.cuda_jobs import WATCHER, python
from tests.e2e.gpu_jobs import FIRST, Json, wait_running
from tests.e2e.metrics import leaders_metric
from tests.e2e.waits import until

from cluster import Running

ROOT = Path(__file__).parents[2]
BUSY = 70


def test_a_busy_and_an_idle_container_on_one_device_are_told_apart(
    operated: Running, tenant: Tenant
) -> None:
    for name, busy, share in (("works", str(BUSY), 0.3), ("idles", "0", 0.5)):
        made = python(WATCHER)
        made["spec"]["containers"][0]["env"] = [{"name": "FAKEGPU_BUSY", "value": busy}]
        tenant.submit(name, gpu=share, template=made)
    for name in ("works", "idles"):
        wait_running(tenant, name)
        assert tenant.allocations(name)[0].grants[0].device == FIRST

    def both() -> dict[str, Json] | None:
        found = {each["name"]: each for each in workloads(tenant)}
        seen = [found[name]["busy"].get("now") for name in ("works", "idles")]
        return found if len(seen) == 2 and None not in seen and seen[0] > 0 else None

    found = until(both, lambda: f"both are shown: {json.dumps(workloads(tenant))}")
    assert abs(found["works"]["busy"]["now"] - BUSY) <= 5
    assert found["idles"]["busy"]["now"] == 0
    assert found["works"]["gpus"] == 0.3
    for each in found.values():
        assert each["memoryMiB"]["now"] >= 64
        assert each["host"]["ramMiB"] > 0
    until(lambda: "idleSince" in shown(tenant, "idles"), "the idle one says since when")
    assert "idleSince" not in shown(tenant, "works")

    assert leaders_metric(operated, "gpusched_silent_agents") == 0  # by who may see no tenant's
    top = json.loads(gpu(operated, tenant, "top", "jobs", "-o", "json"))
    busy = {job["name"]: job["use"]["busyPercent"]["now"] for job in top["jobs"] if job["use"]}
    assert abs(busy["works"] - BUSY) <= 5, top
    report = gpu(operated, tenant, "report", "idles")
    assert "0 %" in report, report

    tenant.remove("works")
    until(lambda: shown(tenant, "works")["state"] == "Ended", "what it did stays")
    assert abs(shown(tenant, "works")["busy"]["mean"] - BUSY) <= 10
    assert "works" in gpu(operated, tenant, "report", "works")


def workloads(tenant: Tenant) -> list[Json]:
    path = f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{tenant.name}/gpuusages/current"
    answer = tenant.admin.get(path)
    return list(answer.body.get("status", {}).get("workloads", ())) if answer.ok else []


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
