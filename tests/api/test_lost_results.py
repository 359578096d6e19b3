"""Results ConfigMaps that somebody deletes or changes, on a real API server."""

from tests.api.site import Site, Team
from tests.api.tenant import Tenant, until
from tests.api.trials import RANDOM, rows, says
from tests.api.trials import SETTINGS as SETTINGS

from gpu_scheduler.api.names import results_name

TRIALS = 14
EMPTY = '{"v":1,"segment":0,"metrics":["loss"]}\n'


def search(tenant: Tenant, name: str) -> None:
    """A search of fourteen trials, more than the status shows, that has ended and is stored."""
    tenant.submit(
        name,
        gpu=0.5,
        parallelism=TRIALS,
        completions=TRIALS,
        sweep=RANDOM,
        template=says({"loss": 0.5}),
    )
    tenant.wait_phase(name, "Succeeded")
    until(lambda: len(rows(tenant, name)) == TRIALS, "all of it is stored")


def path(tenant: Tenant, name: str) -> str:
    return f"/api/v1/namespaces/{tenant.name}/configmaps/{results_name(name, 0)}"


def test_while_it_runs_the_operator_writes_them_again(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    search(tenant, "kept")
    stored = rows(tenant, "kept")
    assert site.admin.send("DELETE", path(tenant, "kept")).ok
    until(lambda: rows(tenant, "kept") == stored, "they are there again")
    assert site.admin.patch(path(tenant, "kept"), {"data": {"trials": EMPTY}}).ok
    until(lambda: rows(tenant, "kept") == stored, "they are as they were")


def test_what_was_lost_while_no_operator_ran_is_told_of(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    search(tenant, "gone")
    best = tenant.status("gone")["sweep"]["best"]
    site.replica.kill()
    jobs = f"/apis/batch/v1/namespaces/{tenant.name}/jobs"
    assert site.admin.send("DELETE", f"{jobs}/gone-s0?propagationPolicy=Background").ok
    assert site.admin.send("DELETE", path(tenant, "gone")).ok
    until(lambda: not tenant.pods(), "its pods are gone")
    site.restart()
    status = until(
        lambda: (s := tenant.status("gone"))["sweep"].get("lostResults") and s,
        lambda: f"what is lost is told; {tenant.status('gone')}",
    )
    assert status["phase"] == "Succeeded" and status["sweep"]["best"] == best
    assert status["sweep"]["counts"]["succeeded"] == TRIALS
    assert status["sweep"]["lostResults"].startswith("4 of 14 results are lost")
    until(lambda: len(rows(tenant, "gone")) == 10, "what the status told is stored again")
