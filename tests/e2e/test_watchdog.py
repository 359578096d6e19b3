"""Programs that get round the library: found, reported, and dealt with as their project wants."""

import json

import pytest
from tests.api.tenant import Json, Tenant
from tests.e2e.cuda_jobs import EVADER, STATIC_EVADER, WATCHER, command, python
from tests.e2e.gpu_jobs import wait_running
from tests.e2e.waits import until


def condition(tenant: Tenant, job: str, kind: str) -> Json:
    found = (c for c in tenant.status(job).get("conditions", ()) if c["type"] == kind)
    return next(found, {})


def until_reported(tenant: Tenant, job: str, reason: str) -> Json:
    return until(
        lambda: (c := condition(tenant, job, "Protected")).get("reason") == reason and c,
        lambda: f"{job} is reported {reason}; {json.dumps(tenant.status(job))}",
    )


@pytest.fixture
def neighbour(tenant: Tenant) -> Json:
    """A running pod on the device that the evader lands on."""
    tenant.submit("neighbour", gpu=0.3, template=python(WATCHER))
    return wait_running(tenant, "neighbour")


def submit_evader(tenant: Tenant, program: str = EVADER, mib: int = 20000) -> None:
    tenant.submit("evader", gpu=0.3, retries=0, template=command(program, str(mib)))


def evade(tenant: Tenant, program: str = EVADER, mib: int = 20000) -> Json:
    submit_evader(tenant, program, mib)
    return wait_running(tenant, "evader")


def test_an_evader_is_reported_with_numbers_and_left_alone_under_warn(
    tenant: Tenant, neighbour: Json
) -> None:
    tenant.set_project(overCapPolicy="warn")
    pod = evade(tenant)
    found = until_reported(tenant, "evader", "OverCap")
    assert found["status"] == "False"
    assert "12134" in found["message"]
    assert tenant.wait_event("evader", "OverCap")["type"] == "Warning"
    assert [e["reason"] for e in tenant.events("evader")].count("OverCap") == 1
    assert [p["metadata"]["uid"] for p in tenant.pods("evader")] == [pod["metadata"]["uid"]]
    assert condition(tenant, "neighbour", "Protected").get("status") != "False"


def test_an_evader_is_evicted_under_that_policy_and_nobody_else_is_touched(
    tenant: Tenant, neighbour: Json
) -> None:
    tenant.set_project(overCapPolicy="evict")
    first = evade(tenant)["metadata"]["uid"]
    until(
        lambda: (p := tenant.pods("evader")) and first not in [q["metadata"]["uid"] for q in p],
        lambda: f"its index is tried again; {json.dumps(tenant.status('evader'))}",
    )
    assert tenant.status("evader")["pods"]["failed"] == 0
    (same,) = tenant.pods("neighbour")
    assert same["metadata"]["uid"] == neighbour["metadata"]["uid"]
    assert same["status"]["phase"] == "Running"


def test_an_evader_loses_its_processes_under_kill(tenant: Tenant, neighbour: Json) -> None:
    tenant.set_project(overCapPolicy="kill")
    submit_evader(tenant)  # which may be killed before the kubelet says that it runs
    until(
        lambda: tenant.status("evader").get("phase") == "Failed",
        lambda: f"the evader is killed; {json.dumps(tenant.status('evader'))}",
    )
    assert tenant.pods("neighbour")[0]["status"]["phase"] == "Running"


def test_a_program_without_the_library_is_reported_within_ten_seconds(tenant: Tenant) -> None:
    evade(tenant, program=STATIC_EVADER, mib=100)  # well below its cap
    found = until_reported(tenant, "evader", "Unprotected")
    assert "evader" in found["message"]
