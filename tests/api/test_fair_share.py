"""Fair shares on a real control plane: who gets GPUs back from whom, and what it costs them.

Under strict rules, by which everything is owed at once; ``test_promises`` has the others. Fake
nodes play the pods: what a program does on SIGTERM is not shown here.
"""

import urllib.request
from collections.abc import Iterator

import pytest
from tests.api.free_port import free_port
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team, site_on
from tests.api.tenant import STAYS, Json, Tenant, held, template, until

from cluster import Running

INDEX = "batch.kubernetes.io/job-completion-index"


@pytest.fixture(scope="module")
def site(control_plane: Running) -> Iterator[Site]:
    metrics = {"admin_port": str(free_port()), "admin_host": "127.0.0.1"}
    with site_on(control_plane, {**CALM_LEASE, **metrics, "preemption": "strict"}) as made:
        yield made


def preemptions(site: Site) -> dict[str, float]:
    """Evictions by reason, as the metrics say."""
    url = f"http://127.0.0.1:{site.replica.settings['admin_port']}/metrics"
    with urllib.request.urlopen(url, timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    found = [line.split() for line in lines if line.startswith("gpusched_preemptions_total")]
    return {name.split('"')[1]: float(value) for name, value in found}


def shares(*tenants: Tenant) -> list[str]:
    return [tenant.project_status().get("fairShareGPU", "") for tenant in tenants]


def staying(tenant: Tenant, job: str) -> list[Json]:
    """Pods of a job that run and are not about to go."""
    return [
        pod
        for pod in tenant.pods(job)
        if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
    ]


def unended(tenant: Tenant, job: str) -> list[Json]:
    """Pods of a job that run or wait."""
    return [
        pod
        for pod in tenant.pods(job)
        if pod["status"].get("phase") in ("Pending", "Running")
        and not pod["metadata"].get("deletionTimestamp")
    ]


def indexes(tenant: Tenant, job: str) -> list[int]:
    return sorted(int(pod["metadata"]["annotations"][INDEX]) for pod in staying(tenant, job))


def told(tenant: Tenant, job: str, reason: str) -> str:
    """The message of a job's Event."""
    return str(tenant.wait_event(job, reason)["message"])


def failed(tenant: Tenant, job: str) -> int:
    """Retries that were charged."""
    return int(tenant.batch_job(job)["status"].get("failed", 0))


def test_three_projects_come_to_their_shares_when_demand_changes(site: Site, team: Team) -> None:
    a, b, c = team(quota=0, weight=2), team(quota=0), team(quota=0)
    before = preemptions(site)["reclaim"]
    a.submit("work", gpu=1, parallelism=8, retries=0)
    until(lambda: held(a) == 8, "the only one that asks gets everything")
    b.submit("work", gpu=1, parallelism=8, retries=0)
    c.submit("work", gpu=1, parallelism=8, retries=0)
    until(lambda: (held(a), held(b), held(c)) == (4, 2, 2), "each holds its share")
    until(lambda: shares(a, b, c) == ["4", "2", "2"], "their shares are told")
    # The text of metrics may be a second old.
    until(lambda: preemptions(site)["reclaim"] - before == 4, "nobody had to go in vain")
    assert [failed(t, "work") for t in (a, b, c)] == [0, 0, 0]
    # A Job takes ten seconds to make a pod anew; who has no pod yet asks for nothing.
    until(lambda: len(unended(a, "work")) == 8, "those that gave way wait again")
    c.remove("work")
    until(lambda: held(a) + held(b) == 8 and held(c) == 0, "what is left over is used")
    assert (held(a), held(b)) in [(5, 3), (6, 2)]  # 5.333 and 2.667
    assert preemptions(site)["reclaim"] - before == 4
    assert [failed(t, "work") for t in (a, b)] == [0, 0]


def test_a_preempted_job_says_for_whom_and_goes_on_with_its_index(site: Site, team: Team) -> None:
    lab = team(quota=8)
    lab.submit("trial", gpu=1, parallelism=8, retries=0, priority=10)
    lab.wait_placed("trial", 8)
    lab.wait_phase("trial", "Running")
    lab.submit("urgent", gpu=2, priority=90)
    message = lab.wait_reason("trial", "Preempted")
    assert f"{lab.name}/urgent" in message
    assert lab.status("trial")["preemptedBy"] == f"{lab.name}/urgent"
    assert lab.status("trial")["phase"] == "Running"  # six pods go on
    lab.wait_placed("urgent")
    lab.finish("urgent")
    until(lambda: indexes(lab, "trial") == list(range(8)), "every index runs again")
    until(lambda: "preemptedBy" not in (s := lab.status("trial")) and not s["reason"], "it is over")
    assert failed(lab, "trial") == 0
    assert "its priority is 90" in told(lab, "trial", "Preempted")
    assert "its priority is 90" in told(lab, "urgent", "Preempting")


def test_an_interactive_job_above_its_quota_is_reclaimed_and_ends_right(
    site: Site, team: Team
) -> None:
    borrower, owner = team(quota=6), team(quota=2)
    borrower.submit("note", gpu=1, parallelism=8, type="interactive", retries=0)
    borrower.wait_placed("note", 8)
    owner.submit("own", gpu=2)
    owner.wait_placed("own")
    message = told(borrower, "note", "Preempted")
    assert "its quota is a guarantee" in message and f"{owner.name}/own" in message
    owner.finish("own")
    assert borrower.finish("note")["pods"]["succeeded"] == 8
    assert failed(borrower, "note") == 0


def test_pods_inside_their_quota_stay(site: Site, team: Team) -> None:
    first, second = team(quota=8), team(quota=8)  # more is promised than there is
    first.submit("hold", gpu=1, parallelism=8)
    first.wait_placed("hold", 8)
    second.submit("wait", gpu=1, priority=100)
    second.wait_reason("wait", "WaitingForGPU", says=f"held by {first.name}/hold")
    assert len(staying(first, "hold")) == 8


def test_an_operator_that_dies_amid_an_eviction_does_not_evict_twice(
    site: Site, team: Team
) -> None:
    a, b = team(quota=0), team(quota=0)
    a.submit("work", gpu=1, parallelism=8, retries=0, template=template(STAYS))
    a.wait_placed("work", 8)
    b.submit("work", gpu=1, parallelism=2)
    until(lambda: len(staying(a, "work")) == 6, "two pods of the one that holds all are going")
    until(lambda: a.status("work").get("preemptedBy"), "and it has said for whom")
    site.replica.kill()
    site.restart()
    a.submit("late", gpu=1)
    a.wait_reason("late", "WaitingForGPU")
    assert len(staying(a, "work")) == 6, "the next leader has planned, and nobody else has to go"
    a.let_go("work")
    assert b.wait_placed("work", 2)
    assert len(staying(a, "work")) == 6
    assert a.status("work")["preemptedBy"] == f"{b.name}/work", "it still says so"
    assert failed(a, "work") == 0
    assert set(preemptions(site).values()) == {0}  # of the new process
