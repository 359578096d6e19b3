"""SIGKILL of the leader, twenty times, while 300 pods and more of mixed fractions come and go.

At no instant of the watch is a device above its capacity, every job finishes, and no retry is
charged: the annotations are the ledger, and whoever leads next reads them.
"""

from tests.api.conftest import administrator
from tests.api.pod_watch import PodWatch
from tests.api.replicas import Replicas
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
RUN_SECONDS = 2


def test_twenty_kills_of_the_leader_overbook_nothing_and_charge_nobody(
    control_plane: Running,
) -> None:
    admin = administrator(control_plane)
    tenant = Tenant(admin).create(quota=8)
    replicas = Replicas(control_plane)
    names: list[str] = []
    try:
        with PodWatch(control_plane, tenant.name) as watch:
            for _ in range(KILLS):
                # In the middle of its work: once a leader's first placements are seen.
                before = watch.peak.placements
                if before == PODS_EACH * len(names):
                    submit(tenant, names)  # at first, and whenever a slow test has had all placed
                until(lambda at=before: watch.peak.placements > at, "a leader places pods")
                replicas.kill_leader(admin)
            until(lambda: replicas.leader(admin) and done(tenant, names), "every job ends", 600)
        assert max(watch.peak.milli.values()) <= DEVICE_MILLI
        assert max(watch.peak.mib.values()) <= USABLE_MIB
        assert watch.peak.placements == PODS_EACH * len(names)
        for name in names:
            status = tenant.batch_job(name)["status"]
            assert status["succeeded"] == PODS_EACH, (name, status)
            assert status.get("failed", 0) == 0, (name, status)
        tenant.delete()
    finally:
        replicas.end()


def submit(tenant: Tenant, names: list[str]) -> None:
    """A job of each shape."""
    for shape in SHAPES:
        names.append(f"mix-{len(names)}")
        tenant.submit(
            names[-1],
            **shape,
            parallelism=PODS_EACH,
            completions=PODS_EACH,
            retries=0,
            template=template(runs(RUN_SECONDS)),
        )


def done(tenant: Tenant, names: list[str]) -> bool:
    jobs = tenant.admin.get(f"/apis/batch/v1/namespaces/{tenant.name}/jobs").body["items"]
    return {job["metadata"]["name"] for job in jobs if complete(job)} == set(names)


def complete(job: Json) -> bool:
    conditions = job["status"].get("conditions", ())
    return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)
