"""A pod bound onto CPU that somebody else has just taken, on a real kubelet.

The taker is a static pod in a namespace that does not exist: the kubelet runs it and counts its
CPU, but cannot tell the API server of it. So nobody else knows, the operator binds, and the kubelet
rejects, as often as the test likes.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.api.pod_watch import Pods, PodWatch
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import container, processes, template
from tests.e2e.metrics import leaders_metric, wait_leader
from tests.e2e.waits import until

from cluster import Running, images, real_node

HIDDEN = "987654321"  # seconds that the taker sleeps: how its process is known
JOBS = 6
CHARGED, REJECTED = "gpusched_retries_charged_by_race_total", "gpusched_rejected_pods_total"

log = logging.getLogger(__name__)


@contextmanager
def hidden_taker(cluster: Running, milli_cpu: int) -> Iterator[None]:
    """So much CPU of the real node is taken, and only its kubelet knows."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "taker", "namespace": "not-there"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": images.QUICKSTART,
                    "command": ["sleep", HIDDEN],
                    "resources": {"requests": {"cpu": f"{milli_cpu}m"}},
                }
            ],
        },
    }
    manifest = real_node.node_layout(cluster).static_pods / "taker.json"
    _write(manifest, pod)
    try:
        until(lambda: processes(HIDDEN), "the static pod runs")
        yield
    finally:
        manifest.unlink()
        until(lambda: not processes(HIDDEN), "the static pod has stopped")


def _write(path: Path, pod: Json) -> None:
    """At once: the kubelet reads whatever is there."""
    temporary = path.parent.with_suffix(".new")
    temporary.write_text(json.dumps(pod))
    temporary.replace(path)


def marked(tenant: Tenant) -> set[str]:
    """Pods whose end is to count for nothing."""
    return {
        pod["metadata"]["uid"]
        for pod in tenant.pods()
        for condition in pod["status"].get("conditions", ())
        if (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
    }


def let_go(tenant: Tenant) -> bool:
    """Take the gates off the pods that are there; True."""
    for pod in tenant.pods():
        if pod["spec"].get("schedulingGates"):
            path = f"/api/v1/namespaces/{tenant.name}/pods/{pod['metadata']['name']}"
            tenant.admin.patch(path, {"spec": {"schedulingGates": None}})
    return True


@pytest.fixture
def free_milli_cpu(tenant: Tenant) -> int:
    """CPU of the node that no pod known to the API server has requested, once none goes there."""
    node = tenant.admin.get("/api/v1/nodes/real-0").body

    def staying() -> list[Json]:
        path = "/api/v1/pods?fieldSelector=spec.nodeName%3Dreal-0"
        found: list[Json] = tenant.admin.get(path).body["items"]
        return [] if any("deletionTimestamp" in pod["metadata"] for pod in found) else found

    pods: list[Json] = until(staying, "the pods of the node stay, those of operator and agent")
    taken = sum(
        _milli(c.get("resources", {}).get("requests", {}).get("cpu", "0"))
        for pod in pods
        for c in pod["spec"]["containers"]
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
    )
    return _milli(node["status"]["allocatable"]["cpu"]) - taken


def _milli(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000


def test_a_pod_on_cpu_that_was_just_taken_is_placed_again_and_nothing_is_charged(
    operated: Running, tenant: Tenant, free_milli_cpu: int
) -> None:
    leader = wait_leader(operated)
    counts = {name: leaders_metric(operated, name) for name in (CHARGED, REJECTED)}
    each = free_milli_cpu // (2 * JOBS)
    rejected: set[str] = set()

    def note(pods: Pods) -> None:
        rejected.update(u for u, pod in pods.items() if pod["status"].get("reason") == "OutOfcpu")

    def ended(name: str) -> bool:
        return tenant.status(name).get("phase") in ("Succeeded", "Failed")

    names = [f"racer-{number}" for number in range(JOBS)]
    for name in names:
        tenant.submit(
            name,
            gpu=0.3,
            retries=0,
            template=template(
                container(
                    "QUICKSTART_SECONDS=1 exec quickstart",
                    resources={"requests": {"cpu": f"{each}m"}},
                ),
                schedulingGates=[{"name": "example.com/wait"}],
            ),
        )
    for name in names:
        tenant.wait_reason(name, "SchedulingGated")
    with PodWatch(operated, tenant.name, note) as watch:
        # Room for none of them, though the API server shows room for twice as many.
        with hidden_taker(operated, free_milli_cpu - each // 2):
            let_go(tenant)
            until(lambda: len(rejected) >= JOBS, lambda: f"rejections: {len(rejected)}")
            until(lambda: len(marked(tenant)) >= JOBS, lambda: f"marked: {marked(tenant)}")
            assert marked(tenant) == rejected
        until(lambda: let_go(tenant) and all(map(ended, names)), "all have ended")
        for name in names:
            tenant.wait_phase(name, "Succeeded")
    # A leader counts since it began, before this test perhaps; the Jobs do without it.
    if wait_leader(operated) != leader:
        counts = dict.fromkeys(counts, 0.0)
    charged, counted = (leaders_metric(operated, name) - n for name, n in counts.items())
    log.info("%d rejected by the kubelet, %g marked, %g charged", len(rejected), counted, charged)
    assert charged == 0
    for name in names:
        job = tenant.batch_job(name)
        assert job["spec"]["backoffLimitPerIndex"] == 0
        assert not job["status"].get("failed"), job["status"]
        assert not job["status"].get("failedIndexes"), job["status"]
        tenant.wait_event(name, "PodRejected")
    assert watch.peak.placements >= JOBS + len(rejected)
    assert max(watch.peak.milli.values()) <= 1000
