"""A project's quota and limit: who waits, with which words, and that it starts by itself."""

from collections.abc import Iterator

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Tenant, until


@pytest.fixture
def small(admin: Caller) -> Iterator[Tenant]:
    made = Tenant(admin).create(quota=1, limit=1.5)
    yield made
    made.delete()


def test_a_job_over_the_limit_waits_and_starts_when_room_appears(small: Tenant) -> None:
    small.submit("first", gpu=1)
    small.wait_placed("first")
    small.submit("second", gpu=0.5)
    small.wait_placed("second")
    small.submit("third", gpu=0.3)
    message = small.wait_reason("third", "WaitingForQuota")
    for number in ("0.3", "1.5", small.name):
        assert number in message, message
    assert small.status("third")["queuePosition"] == 1
    until(lambda: small.project_status().get("pendingGPU") == "0.3", "pending is reported")
    assert small.project_status()["allocatedGPU"] == "1.5"
    assert small.project_status()["borrowedGPU"] == "0.5"

    small.admin.send(
        "DELETE", f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{small.name}/gpujobs/second"
    )
    small.wait_placed("third")
    small.wait_phase("third", "Running")
    assert small.status("third")["reason"] == ""


def test_a_job_that_can_never_fit_its_project_says_so_at_once(small: Tenant) -> None:
    small.submit("big", gpu=2)
    message = small.wait_reason("big", "ExceedsQuota")
    assert "2" in message and "1.5" in message, message
    small.set_project(limit=2)
    small.wait_placed("big")


def test_jobs_inside_the_quota_go_before_borrowing_ones(admin: Caller) -> None:
    poor, rich = Tenant(admin).create(quota=1), Tenant(admin).create(quota=7)
    try:
        poor.submit("own", gpu=1)
        poor.wait_placed("own")
        rich.submit("one", gpu=1)
        rich.submit("fill", gpu=1, parallelism=6)
        rich.wait_placed("one")
        rich.wait_placed("fill", 6)
        poor.submit("borrow", gpu=1)  # above its quota, and the cluster is full
        poor.wait_reason("borrow", "WaitingForGPU")
        rich.submit("late", gpu=1)
        rich.wait_reason("late", "WaitingForGPU")  # also above its quota
        rich.set_project(quota=8)  # now inside
        rich.remove("one")
        rich.wait_placed("late")
        assert poor.allocations("borrow") == []
        rich.remove("fill")
        poor.wait_placed("borrow")
    finally:
        poor.delete()
        rich.delete()
