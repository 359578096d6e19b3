"""The API server is killed and stays away, in the middle of sixty pods' work.

What a stand-by does in a minute it does in seconds here: it tries for the Lease, and fails.
"""

from collections.abc import Iterator

import pytest
from tests.api.conftest import administrator, own_cluster
from tests.api.pod_watch import PodWatch
from tests.api.replica import Replica
from tests.api.tenant import Tenant, runs, template, until

from cluster import Running

LEASE = {"lease_seconds": "9.0", "renew_deadline_seconds": "8.0", "retry_seconds": "0.2"}
LONGER_LEASE = {"lease_seconds": "30.0", "renew_deadline_seconds": "28.0", "retry_seconds": "0.2"}


@pytest.fixture
def running() -> Iterator[Running]:
    with own_cluster("away") as made:
        yield made


@pytest.fixture
def replica(running: Running) -> Iterator[Replica]:
    made = Replica(running, settings=LEASE).start()
    made.wait_leading()
    yield made
    if made.alive():
        made.stop()


def test_an_api_server_that_is_away_for_a_minute_costs_a_minute_and_nothing_else(
    running: Running, replica: Replica
) -> None:
    tenant = Tenant(administrator(running)).create(quota=8)
    job = template(runs(2))
    tenant.submit("before", gpu=0.3, parallelism=20, completions=60, retries=0, template=job)
    until(lambda: len(tenant.allocations("before")) >= 3, "pods are at work")
    running.stop_process("kube-apiserver", kill=True)
    code = until(lambda: not replica.alive() and replica.code(), "it gives up the lead")
    assert code == 1  # the kubelet would start it again, and so does this test
    # Who follows need not end soon: what a machine that is busy for some seconds would do to it.
    replica.settings = LONGER_LEASE
    replica.start()
    # It says so once, however often it tries (tests/unit/kube/test_lease.py has it try for long).
    until(lambda: " lease: " in replica.told(), replica.told)
    assert replica.alive(), replica.told()
    running.start_process("kube-apiserver")
    running.wait_ready()
    with PodWatch(running, tenant.name) as watch:
        tenant.submit("after", gpu=0.5, template=template(runs(1)))
        for name, count in (("before", 60), ("after", 1)):
            tenant.wait_phase(name, "Succeeded")
            status = tenant.batch_job(name)["status"]
            assert status["succeeded"] == count
            assert status.get("failed", 0) == 0
    assert max(watch.peak.milli.values()) <= 1000
