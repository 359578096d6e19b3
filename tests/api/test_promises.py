"""Promises on a real control plane, with few seconds each: when others are evicted, and for whom.

Fake nodes play the pods: what a program saves on SIGTERM is shown on a real one.
"""

import re
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team
from tests.api.tenant import Json, Tenant, held, until
from tests.api.walks import walk

from gpu_scheduler.core.eviction.deadlines import NEGLIGIBLE_SECONDS
from gpu_scheduler.kube.times import timestamp

GUARANTEE, PATIENCE, RUNTIME, WINDOW = 6, 2, 4, 20
LONG = 2 * NEGLIGIBLE_SECONDS
PROMISES = {
    "guarantee_seconds": str(GUARANTEE),
    "patience_seconds": str(PATIENCE),
    "min_runtime_seconds": str(RUNTIME),
    "share_window_seconds": str(WINDOW),
}
SETTINGS = {**CALM_LEASE, **PROMISES}


def test_projects_come_to_two_one_and_one_within_the_window(team: Team) -> None:
    """Pods that never end: what is not theirs is theirs no longer than a window."""
    a, b, c = team(quota=0, weight=2), team(quota=0), team(quota=0)
    a.submit("work", gpu=1, parallelism=8, retries=0)
    until(lambda: held(a) == 8, "the only one that asks gets everything")
    for tenant in (b, c):
        tenant.submit("work", gpu=1, parallelism=8, retries=0)
    b.wait_reason("work", "WaitingForGPU", says="held by")  # once its pods are seen in their places
    until(lambda: (held(a), held(b), held(c)) == (4, 2, 2), "each holds its share")


@pytest.fixture
def wrong_clock(site: Site) -> Iterator[None]:
    """Who leads next has a machine whose wall clock is wrong."""
    site.replica.program = Path(__file__).with_name("wrong_clock_operator.py")
    yield
    site.replica.stop()
    site.replica.program = False
    site.restart()


def test_a_guarantee_is_met_in_its_seconds_and_costs_who_borrows(
    wrong_clock: None, site: Site, team: Team
) -> None:
    borrower, owner = team(quota=0), team(quota=8)
    borrower.submit("work", gpu=1, parallelism=8, retries=0)
    borrower.wait_placed("work", 8)
    ran_long(site, borrower, "work")
    asked = time.monotonic()
    with walk(owner, "own", gpu=1, parallelism=2) as own:
        own.to("WaitingForGPU", "who borrows gives way from 2")
        assert site.replica.process is not None
        site.replica.process.send_signal(signal.SIGUSR1)  # its clock is set back by two days
        owner.wait_placed("own", 2)
    assert GUARANTEE - 1 <= time.monotonic() - asked < 3600
    assert re.search(r"is \+86(399|400|401) s from the API server's", site.replica.told())
    until(lambda: "set back by 172800 s" in site.replica.told(), "the step is told")
    message = str(borrower.wait_event("work", "Preempted")["message"])
    assert "GPU-seconds of its work are lost" in message


@pytest.fixture
def never(site: Site) -> Iterator[None]:
    """Nobody gives way because others have waited for long, whatever it costs."""
    before = dict(site.replica.settings)
    site.replica.stop()
    day = str(24 * 3600)
    site.replica.settings |= dict.fromkeys(PROMISES, day)
    site.restart()
    yield
    site.replica.stop()
    site.replica.settings = before
    site.restart()


def test_a_guarantee_is_met_at_once_where_hardly_anything_is_lost(never: None, team: Team) -> None:
    borrower, owner = team(quota=0), team(quota=8)
    borrower.submit("work", gpu=1, parallelism=8, retries=0)
    borrower.wait_placed("work", 8)
    owner.submit("own", gpu=1)
    owner.wait_placed("own")


def test_who_has_saved_its_work_gives_way_first(never: None, site: Site, team: Team) -> None:
    """The pod that is evicted is the one that would lose least by what it says."""
    borrower, owner = team(quota=0), team(quota=8)
    borrower.submit("work", gpu=1, parallelism=8, retries=0)
    borrower.wait_placed("work", 8)
    ran_long(site, borrower, "work")
    chosen = borrower.pods("work")[5]["metadata"]
    now = datetime.now(UTC).isoformat()
    said = {"metadata": {"annotations": {"gpu-scheduler.io/checkpointed-at": now}}}
    path = f"/api/v1/namespaces/{borrower.name}/pods/{chosen['name']}"
    assert borrower.admin.patch(path, said).ok
    owner.submit("own", gpu=1)
    owner.wait_placed("own")  # it loses hardly anything, so at once
    assert chosen["uid"] not in {
        pod["metadata"]["uid"]
        for pod in borrower.pods("work")
        if "deletionTimestamp" not in pod["metadata"]
    }
    message = str(borrower.wait_event("work", "Preempted")["message"])
    lost = int(message.rpartition("; ")[2].split()[0])
    assert chosen["name"] in message
    assert lost <= (datetime.now(UTC) - datetime.fromisoformat(now)).total_seconds() + 1
    # An eviction counts when it is decided, what it cost once the pod has gone.
    status = until(
        lambda: (
            (s := borrower.status("work"))["evictions"] and s["lostGPUSeconds"] >= lost - 1 and s
        ),
        lambda: f"its status says so: {borrower.status('work')}",
    )
    most = (datetime.now(UTC) - datetime.fromisoformat(now)).total_seconds() + 1
    assert status["evictions"] == 1 and status["lostGPUSeconds"] <= most, status


def test_a_project_says_how_long_its_pods_run_undisturbed(team: Team) -> None:
    """For another's share; its neighbours' pods go instead."""
    calm, other, third = team(quota=0, minRuntimeSeconds=3600), team(quota=0), team(quota=0)
    for tenant in (calm, other):
        tenant.submit("work", gpu=1, parallelism=4, retries=0)
        tenant.wait_placed("work", 4)
    third.submit("work", gpu=1, parallelism=4)
    until(lambda: held(other) == 3 and held(third) == 1, "one gives back")
    assert held(calm) == 4


def test_a_higher_priority_waits_for_a_while_and_then_no_longer(team: Team) -> None:
    lab = team(quota=8)
    lab.submit("trial", gpu=1, parallelism=8, retries=0, priority=10)
    lab.wait_placed("trial", 8)
    lab.submit("urgent", gpu=2, priority=90)
    lab.wait_placed("urgent")
    since = datetime.fromisoformat(lab.job("urgent")["metadata"]["creationTimestamp"])
    assert (datetime.now(UTC) - since).total_seconds() >= PATIENCE
    assert f"{lab.name}/urgent" in lab.wait_reason("trial", "Preempted")


def ran_long(site: Site, tenant: Tenant, job: str) -> None:
    """Its pods were bound so long ago that what they did would be a loss, as a new leader reads."""
    since = timestamp(datetime.now(UTC) - timedelta(seconds=LONG))
    for pod in until(lambda: running(tenant, job), f"all pods of {job} run"):
        path = f"/api/v1/namespaces/{tenant.name}/pods/{pod['metadata']['name']}/status"
        conditions = [
            {**each, "lastTransitionTime": since} if each["type"] == "PodScheduled" else each
            for each in pod["status"]["conditions"]
        ]
        assert tenant.admin.patch(path, {"status": {"conditions": conditions}}).ok
    site.replica.stop()
    site.restart()


def running(tenant: Tenant, job: str) -> list[Json]:
    """All pods of a job, once they run."""
    pods = tenant.pods(job)
    return pods if all(pod["status"]["phase"] == "Running" for pod in pods) else []
