"""What a Deployment is promised on a real control plane: its quota, and that its budget is asked.

Its pods have a share of a GPU without a GPUJob. What it borrowed goes back through the Eviction
API; which way a pod went is told by the reason of its condition DisruptionTarget.
"""

import json
import time

from tests.api.pod_watch import Pods, PodWatch
from tests.api.site import Site, Team
from tests.api.tenant import Json, Tenant, until
from tests.api.test_shares import SETTINGS as SHARES
from tests.api.test_shares import Web, allocation, wait_running, wait_told

PATIENCE = 1
PAUSE_SECONDS, ASKED_SECONDS = 2, 13  # between two tries at most, and in all
EVICTED, OVERRULED = "EvictionByEvictionAPI", "PreemptionByScheduler"
SETTINGS = {
    **SHARES,
    "patience_seconds": str(PATIENCE),
    "eviction_pause_seconds": str(PAUSE_SECONDS),
}


class Departures:
    """Which pods of a namespace had to go, and why, at whatever instant that was seen."""

    def __init__(self) -> None:
        self.why: dict[str, str] = {}  # by uid
        self.going: dict[str, float] = {}  # since when: monotonic seconds

    def look(self, pods: Pods) -> None:
        for uid, pod in pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                self.going.setdefault(uid, time.monotonic())
            for condition in pod["status"].get("conditions", ()):
                if condition["type"] == "DisruptionTarget":
                    self.why[uid] = condition["reason"]


def budget(tenant: Tenant, web: Web, available: int, allowed: int) -> None:
    """A PodDisruptionBudget, in force: so many of its pods may go."""
    path = f"/apis/policy/v1/namespaces/{tenant.name}/poddisruptionbudgets"
    spec = {"minAvailable": available, "selector": {"matchLabels": {"app": web.name}}}
    answer = tenant.admin.create(path, {"metadata": {"name": web.name}, "spec": spec})
    assert answer.ok, answer

    def status() -> Json:
        return dict(tenant.admin.get(f"{path}/{web.name}").body.get("status", {}))

    until(
        lambda: (s := status()).get("observedGeneration") and s["disruptionsAllowed"] == allowed,
        lambda: f"{allowed} may go: {json.dumps(status())}",
    )


def uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def has_event(tenant: Tenant, pods: list[Json], reason: str) -> bool:
    return any(
        event["reason"] == reason
        for pod in pods
        for event in tenant.events(pod["metadata"]["name"])
    )


def test_a_budget_that_says_no_is_asked_until_the_deadline_and_then_overruled(
    site: Site, team: Team
) -> None:
    owner, borrower = team(quota=4), team(quota=4)
    web, seen = Web(borrower).create(8, "1"), Departures()
    before = wait_running(web, 8)
    budget(borrower, web, 8, allowed=0)
    with PodWatch(site.running, borrower.name, seen.look):
        submitted = time.monotonic()
        owner.submit("own", gpu=1, parallelism=2)
        until(lambda: has_event(borrower, before, "Preempted"), "they are asked to go")
        assert not seen.going
        owner.wait_placed("own", 2)
    assert min(seen.going.values()) - submitted >= ASKED_SECONDS
    assert list(seen.why.values()) == [OVERRULED] * 2
    assert seen.why.keys() == seen.going.keys() <= uids(before)
    gone = [pod for pod in before if pod["metadata"]["uid"] in seen.going]
    event = borrower.wait_event(gone[0]["metadata"]["name"], "BudgetOverruled")
    assert "disruption budget" in event["message"], "the Eviction API had said no"
    assert len(uids(wait_running(web, 6)) & uids(before)) == 6


def test_where_its_budget_has_room_a_borrowing_deployment_goes_by_the_eviction_api(
    site: Site, team: Team
) -> None:
    owner, borrower = team(quota=4), team(quota=4)
    web, seen = Web(borrower).create(8, "1"), Departures()
    before = wait_running(web, 8)
    budget(borrower, web, 4, allowed=4)
    with PodWatch(site.running, borrower.name, seen.look):
        owner.submit("own", gpu=1, parallelism=4)
        owner.wait_placed("own", 4)
    assert list(seen.why.values()) == [EVICTED] * 4
    assert seen.why.keys() == seen.going.keys() <= uids(before)
    assert not has_event(borrower, before, "BudgetOverruled")
    assert uids(wait_running(web, 4)) <= uids(before)


def test_what_a_deployment_holds_inside_its_quota_is_taken_for_nobody(
    site: Site, team: Team
) -> None:
    """Not for another's quota, nor for a higher priority: beside it others go for both."""
    home, borrower, owner = team(quota=4, limit=4), team(quota=0), team(quota=4)
    web, batch = Web(home).create(3, "1"), Web(home, "batch").create(1, "1", type="training")
    before = wait_running(web, 3)
    wait_running(batch, 1)
    borrowing = Web(borrower).create(4, "1")
    wait_running(borrowing, 4)
    seen, others = Departures(), Departures()
    with (
        PodWatch(site.running, home.name, seen.look),
        PodWatch(site.running, borrower.name, others.look),
    ):
        home.submit("urgent", gpu=1, parallelism=2, type="interactive", priority=90)
        owner.submit("own", gpu=1, parallelism=5, priority=100)
        owner.wait_placed("own", 4)
        home.wait_placed("urgent", 1)
        home.wait_reason("urgent", "WaitingForQuota")
        owner.wait_reason("own", "WaitingForGPU")
        (waiting,) = until(
            lambda: [pod for pod in batch.pods() if not allocation(pod)],
            "its controller made another pod",
        )
        wait_told(home, waiting["metadata"]["name"], "WaitingForQuota")
    assert list(others.why.values()) == [EVICTED] * 4, "the borrower gave way"
    assert len(seen.why) == 1 and not seen.why.keys() & uids(before)
    assert uids(wait_running(web, 3)) == uids(before)
