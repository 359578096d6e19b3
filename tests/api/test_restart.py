"""A leader dies while hundreds of GPUJobs wait: the next knows all before it places any of them.

What changed while nobody led counts: a device that became free goes to the first in the queue, what
was deleted is forgotten, and what comes later is heard of, although kopf has listed nothing.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.api.conftest import administrator, own_cluster
from tests.api.pod_watch import PodWatch, placed
from tests.api.replica import CALM_LEASE, Replica
from tests.api.tenant import Tenant, until

from cluster import Running
from gpu_scheduler.api.names import LABEL_JOB
from gpu_scheduler.core.model.units import DEVICE_MILLI

GPUS = 8
WAITING = 200
FIRST = WAITING // 2  # in the middle of every list
RESYNC_SECONDS = "3600"  # no help from a list that is made later


@pytest.fixture
def running() -> Iterator[Running]:
    with own_cluster("restart") as made:
        yield made


def start(running: Running, name: str) -> Replica:
    replica = Replica(running, name, {**CALM_LEASE, "resync_seconds": RESYNC_SECONDS}).start()
    replica.wait_leading()
    return replica


def submit_all(tenant: Tenant) -> None:
    def submit(number: int) -> None:
        tenant.submit(f"wait-{number:03}", gpu=1, priority=90 if number == FIRST else 10)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(submit, range(WAITING)))


def explained(tenant: Tenant) -> int:
    """How many of those that wait say why."""
    jobs = tenant.admin.get(f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{tenant.name}/gpujobs")
    waiting = [job for job in jobs.body["items"] if job["metadata"]["name"].startswith("wait-")]
    return sum(bool(job.get("status", {}).get("message")) for job in waiting)


def placed_jobs(tenant: Tenant) -> set[str]:
    """GPUJobs of which a pod has a place."""
    return {pod["metadata"]["labels"][LABEL_JOB] for pod in tenant.pods() if placed(pod)}


def test_the_first_placement_after_a_restart_is_that_of_the_first_in_the_queue(
    running: Running,
) -> None:
    tenant = Tenant(administrator(running)).create(quota=GPUS)
    first = start(running, "first")
    second: Replica | None = None
    try:
        with PodWatch(running) as watch:
            for number in range(GPUS):
                tenant.submit(f"run-{number}", gpu=1, priority=50)
                tenant.wait_placed(f"run-{number}")
            submit_all(tenant)
            until(lambda: explained(tenant) == WAITING, "all that wait say why")
            assert watch.up_to_now().peak.placements == GPUS
            first.kill()
            first.forget()
            (freed,) = tenant.allocations("run-3")
            tenant.remove("run-3")
            tenant.remove("wait-000")
            until(lambda: not tenant.pods("run-3"), "a device is free")
            second = start(running, "second")
            (given,) = tenant.wait_placed(f"wait-{FIRST:03}")
            assert given.node == freed.node
            assert [g.device for g in given.devices] == [g.device for g in freed.devices]
            still = {f"run-{number}" for number in range(GPUS)} - {"run-3"}
            assert placed_jobs(tenant) == still | {f"wait-{FIRST:03}"}
            tenant.submit("late", gpu=1, priority=100)
            tenant.wait_reason("late", "WaitingForGPU")
            tenant.remove("run-5")
            tenant.wait_placed("late")
            assert placed_jobs(tenant) == still - {"run-5"} | {f"wait-{FIRST:03}", "late"}
        assert max(watch.peak.milli.values()) <= DEVICE_MILLI
        assert f"{WAITING + GPUS - 2} GPUJobs" in second.told()
    finally:
        for replica in (first, second):
            if replica is not None and replica.alive():
                replica.stop()
