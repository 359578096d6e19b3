"""``kubectl delete namespace`` ends, with GPUJobs in it that run, and without much ado."""

import json

from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team
from tests.api.tenant import Tenant, runs, template, until
from tests.api.trials import RANDOM

GRACE_SECONDS = 6
SETTINGS = CALM_LEASE


def slow() -> dict[str, object]:
    """A template whose pods run for an hour and use all of their grace period."""
    told = runs(3600, termination_seconds=str(GRACE_SECONDS))
    return template(told, terminationGracePeriodSeconds=GRACE_SECONDS)


def fill(tenant: Tenant) -> None:
    """Jobs, gangs and a sweep that run, and some that wait or are suspended."""
    for number in range(46):
        tenant.submit(f"job-{number}", gpu=0.125, template=slow(), retries=number % 3)
    for number in range(3):
        tenant.submit(
            f"gang-{number}",
            roles=[
                {"name": "head", "replicas": 1, "gpu": 0.125},
                {"name": "worker", "replicas": 2},
            ],
            template=slow(),
        )
    tenant.submit(
        "sweep",
        gpu=0.125,
        template=slow(),
        parallelism=4,
        completions=20,
        sweep=RANDOM,
    )
    tenant.submit("waits", gpu=8, template=slow())
    tenant.submit("suspended", gpu=1, template=slow(), suspend=True)
    until(
        lambda: running(tenant) == 46 + 9 + 4,
        lambda: f"all run that may; {running(tenant)} do",
    )


def running(tenant: Tenant) -> int:
    return sum(pod["status"].get("phase") == "Running" for pod in tenant.pods())


def wait_gone(tenant: Tenant) -> None:
    """Until the namespace is gone."""
    path = f"/api/v1/namespaces/{tenant.name}"

    def state() -> str:
        namespace = tenant.admin.get(path).body
        left = {p["metadata"]["name"]: p["metadata"].get("finalizers") for p in tenant.pods()}
        return json.dumps({"conditions": namespace["status"].get("conditions"), "pods": left})

    until(lambda: tenant.admin.get(path).status == 404, lambda: f"it is gone; {state()}")


def test_a_namespace_with_fifty_jobs_gangs_and_a_sweep_goes_within_their_grace_period(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    fill(tenant)
    before = len(site.replica.told())
    assert site.admin.send("DELETE", f"/api/v1/namespaces/{tenant.name}").ok
    message = tenant.wait_reason("waits", "Invalid")
    assert f"namespace {tenant.name} is being deleted" in message
    wait_gone(tenant)
    told = site.replica.told()[before:]
    loud = [line for line in told.splitlines() if "being terminated" in line]
    assert len(loud) < 10, "what the API server refuses there is not tried again and again"


def test_one_that_was_deleted_while_no_operator_ran_goes_when_one_does(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    for number in range(5):
        tenant.submit(f"job-{number}", gpu=0.5, template=slow())
    until(lambda: running(tenant) == 5, "they run")
    site.replica.kill()
    try:
        assert site.admin.send("DELETE", f"/api/v1/namespaces/{tenant.name}").ok
        until(
            lambda: all(p["status"]["phase"] == "Failed" for p in tenant.pods()),
            "their grace period is over",
        )
        assert tenant.pods(), "the Job controller keeps what it may not replace"
    finally:
        site.restart()
    wait_gone(tenant)
