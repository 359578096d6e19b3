"""SIGKILL of the leader, twenty times, while 300 pods of mixed fractions come and go.

At no instant of the watch is a device above its capacity, every job finishes, and no retry is
charged: the annotations are the ledger, and whoever leads next reads them.
"""

import os
from collections.abc import Iterator

import pytest
from tests.api.conftest import CLUSTERS, administrator, install
from tests.api.pod_watch import PodWatch
from tests.api.replica import QUICK_LEASE, Replica
from tests.api.tenant import Tenant, runs, template, until

from cluster import Running, Settings, up
from gpu_scheduler.core.units import DEVICE_MILLI

KILLS = 20
USABLE_MIB = 40960
SHAPES: tuple[dict[str, object], ...] = (
    {"gpu": 0.5},
    {"gpu": 0.3},
    {"gpu": 0.125},
    {"gpu": 0.2},
    {"gpuMemory": "9Gi"},
    {"gpu": 1},
)
PODS_EACH = 50


@pytest.fixture
def running() -> Iterator[Running]:
    made = up(Settings(name=f"kills-{os.getpid()}", nodes=(CLUSTERS / "dell-saas.yaml",)))
    try:
        install(made)
        yield made
    finally:
        made.stop()


def leader(replicas: list[Replica], tenant: Tenant) -> Replica | None:
    path = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases/gpu-scheduler-leader"
    holder = tenant.admin.get(path).body.get("spec", {}).get("holderIdentity", "")
    return next((r for r in replicas if holder.startswith(f"{r.name}_")), None)


def test_twenty_kills_of_the_leader_overbook_nothing_and_charge_nobody(running: Running) -> None:
    tenant = Tenant(administrator(running)).create(quota=8)
    replicas = [Replica(running, f"replica-{i}", QUICK_LEASE).start() for i in range(2)]
    names = [f"mix-{i}" for i in range(len(SHAPES))]
    try:
        with PodWatch(running) as watch:
            for name, shape in zip(names, SHAPES, strict=True):
                tenant.submit(
                    name,
                    **shape,
                    parallelism=PODS_EACH,
                    completions=PODS_EACH,
                    retries=0,
                    template=template(runs(4)),
                )
            killed = 0
            while killed < KILLS:
                victim = until(lambda: leader(replicas, tenant), "somebody leads")
                before = watch.peak.events
                # Kill in the middle of its work: once its first placements are seen.
                until(
                    lambda at=before: watch.peak.events > at + 3 or done(tenant, names),
                    "the leader works",
                )
                assert not done(tenant, names), f"all done after {killed} kills: too little load"
                victim.kill()
                killed += 1
                index = replicas.index(victim)
                replicas[index] = Replica(running, f"replica-{index}-{killed}", QUICK_LEASE).start()
            until(lambda: done(tenant, names), "every job finishes", 300)
        assert max(watch.peak.milli.values()) <= DEVICE_MILLI
        assert max(watch.peak.mib.values()) <= USABLE_MIB
        for name in names:
            status = tenant.batch_job(name)["status"]
            assert status["succeeded"] == PODS_EACH, (name, status)
            assert status.get("failed", 0) == 0, (name, status)
    finally:
        for replica in replicas:
            if replica.process is not None:
                replica.kill()


def done(tenant: Tenant, names: list[str]) -> bool:
    return all(
        any(
            c["type"] == "Complete" and c["status"] == "True"
            for c in tenant.batch_job(n).get("status", {}).get("conditions", ())
        )
        for n in names
    )
