"""SIGKILL of the leader, twenty times, while 300 pods of mixed fractions come and go.

At no instant of the watch is a device above its capacity, every job finishes, and no retry is
charged: the annotations are the ledger, and whoever leads next reads them.
"""

from collections.abc import Iterator

import pytest
from tests.api.conftest import administrator, own_cluster
from tests.api.pod_watch import PodWatch
from tests.api.replica import QUICK_LEASE, Replica
from tests.api.tenant import Json, Tenant, runs, template, until

from cluster import Running
from gpu_scheduler.core.model.units import DEVICE_MILLI

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
RUN_SECONDS = 6


@pytest.fixture
def running() -> Iterator[Running]:
    with own_cluster("kills") as made:
        yield made


class Replicas:
    """Two replicas; one that has ended is started again, as the kubelet does."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._count = 0
        self._all = [self._start(), self._start()]

    def _start(self) -> Replica:
        self._count += 1
        return Replica(self._running, f"replica-{self._count}", QUICK_LEASE).start()

    def leader(self, tenant: Tenant) -> Replica | None:
        self._all = [r if r.alive() else self._start() for r in self._all]
        path = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases/gpu-scheduler-leader"
        holder = tenant.admin.get(path).body.get("spec", {}).get("holderIdentity", "")
        return next((r for r in self._all if holder.startswith(f"{r.name}_")), None)

    def kill_all(self) -> None:
        for replica in self._all:
            if replica.alive():
                replica.kill()


def test_twenty_kills_of_the_leader_overbook_nothing_and_charge_nobody(running: Running) -> None:
    tenant = Tenant(administrator(running)).create(quota=8)
    replicas = Replicas(running)
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
                    template=template(runs(RUN_SECONDS)),
                )
            for kills in range(KILLS):
                # In the middle of its work: once a leader's first placements are seen.
                before = watch.peak.placements
                until(
                    lambda at=before: (
                        replicas.leader(tenant)
                        and (watch.peak.placements > at or done(tenant, names))
                    ),
                    "a leader places pods",
                    60,
                )
                assert not done(tenant, names), f"all done after {kills} kills: too little load"
                victim = until(lambda: replicas.leader(tenant), "somebody leads")
                victim.kill()
            until(lambda: replicas.leader(tenant) and done(tenant, names), "every job ends", 300)
        assert max(watch.peak.milli.values()) <= DEVICE_MILLI
        assert max(watch.peak.mib.values()) <= USABLE_MIB
        assert watch.peak.placements == PODS_EACH * len(SHAPES)
        for name in names:
            status = tenant.batch_job(name)["status"]
            assert status["succeeded"] == PODS_EACH, (name, status)
            assert status.get("failed", 0) == 0, (name, status)
    finally:
        replicas.kill_all()


def done(tenant: Tenant, names: list[str]) -> bool:
    return all(complete(tenant.batch_job(name)) for name in names)


def complete(job: Json) -> bool:
    if job["kind"] != "Job":
        return False  # not created yet
    conditions = job["status"].get("conditions", ())
    return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)
