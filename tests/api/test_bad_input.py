"""Projects that make little sense, on a real control plane: eight GPUs, and what is said of it."""

from collections.abc import Iterator

import pytest
from tests.api.caller import Caller
from tests.api.tenant import GROUP, Json, Tenant, until


def covered(tenant: Tenant) -> Json:
    conditions = tenant.project_status().get("conditions", ())
    return next((c for c in conditions if c["type"] == "QuotaCovered"), {})


@pytest.fixture
def alone(admin: Caller) -> Iterator[Tenant]:
    """A project of eight GPUs, the whole cluster, and nobody else with a quota."""
    # Whatever tests before this one have left on the worker's cluster.
    assert admin.send("DELETE", f"{GROUP}/gpuprojects").ok
    made = Tenant(admin).create(quota=8, weight=0)
    yield made
    made.delete()


def test_a_quota_above_what_the_cluster_has_is_accepted_and_told(alone: Tenant) -> None:
    until(lambda: covered(alone).get("status") == "True", "the quota is covered")
    alone.set_project(quota=12)
    until(lambda: covered(alone).get("status") == "False", "the quota is not covered")
    assert covered(alone)["reason"] == "Overcommitted"
    assert covered(alone)["message"] == "spec.quota: 12 is promised and the cluster has 8 GPUs"
    alone.submit("job", gpu=1, parallelism=9)
    alone.wait_placed("job", 8)
    message = alone.wait_reason("job", "WaitingForGPU")
    assert "free" in message
    alone.submit("big", gpu=9)
    assert "9 is not possible on any node" in alone.wait_reason("big", "Unsatisfiable")


def test_quotas_that_are_too_much_together_name_the_share_that_is_left(alone: Tenant) -> None:
    other = Tenant(alone.admin).create(quota=4)
    try:
        until(lambda: covered(other).get("status") == "False", "the quota is not covered")
        assert covered(other)["message"] == (
            "spec.quota: 2 projects are promised 12 in all and the cluster has 8 GPUs; if all ask"
            " for theirs at once, the share of this one is 2.666 of its 4"
        )
        alone.set_project(quota=4)
        until(lambda: covered(other).get("status") == "True", "the quota is covered")
    finally:
        other.delete()


def test_without_any_weight_nobody_borrows_and_the_rest_stays_free(admin: Caller) -> None:
    teams = [Tenant(admin).create(quota=quota, weight=0) for quota in (1, 0.5, 0)]
    try:
        for team in teams:
            team.submit("job", gpu=0.5, parallelism=4)
        teams[0].wait_placed("job", 2)
        teams[1].wait_placed("job", 1)
        for team, quota in zip(teams[:2], ("1", "0.5"), strict=True):
            message = team.wait_reason("job", "WaitingForQuota")
            assert f"its quota {quota} (weight 0: it never borrows)" in message, message
        message = teams[2].wait_reason("job", "ExceedsQuota")
        assert "its quota 0 (weight 0: it never borrows)" in message, message
        assert [len(team.allocations("job")) for team in teams] == [2, 1, 0]
    finally:
        for team in teams:
            team.delete()


def all_of(tenant: Tenant, count: int) -> list[Json]:
    """The pods of a namespace once there are so many."""
    pods = tenant.pods()
    return pods if len(pods) == count else []


def test_a_project_deleted_under_its_jobs_stops_nothing_that_runs(alone: Tenant) -> None:
    alone.submit("runs", gpu=1, parallelism=2)
    alone.wait_placed("runs", 2)
    alone.wait_phase("runs", "Running")
    alone.submit("waits", gpu=2, parallelism=5)
    alone.wait_placed("waits", 3)
    alone.wait_reason("waits", "WaitingForQuota")
    before = {
        p["metadata"]["uid"] for p in until(lambda: all_of(alone, 5), "what waits has no pods")
    }

    alone.admin.send("DELETE", f"{GROUP}/gpuprojects/{alone.name}")
    for job in ("runs", "waits"):
        message = alone.wait_reason(job, "Invalid")
        assert f"namespace {alone.name} belongs to no project" in message, message
    status = alone.status("runs")
    assert (status["phase"], status["allocatedGPU"]) == ("Running", "2"), status
    assert len(alone.allocations("waits")) == 3
    assert {p["metadata"]["uid"] for p in alone.pods()} == before

    answer = alone.project(alone.name, namespaces=[alone.name], quota=12)
    assert answer.ok, answer
    until(lambda: alone.status("runs").get("reason") == "", "the job is accepted again")
    until(lambda: alone.project_status().get("allocatedGPU") == "8", "what runs is charged again")
    assert before <= {p["metadata"]["uid"] for p in alone.pods()}, "nothing was lost"
