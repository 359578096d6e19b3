"""What an editor changes in the Jobs of a GPUJob is put back on a real API server."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.api.tenant import Json, Tenant, runs, template, until
from tests.api.trials import RANDOM

LONG = template(runs(3600))


def job_path(tenant: Tenant, name: str) -> str:
    return f"/apis/batch/v1/namespaces/{tenant.name}/jobs/{name}"


def edit(tenant: Tenant, name: str, patch: Json) -> None:
    answer = tenant.admin.patch(job_path(tenant, name), patch)
    assert answer.ok, answer


def wait_spec(tenant: Tenant, name: str, **wanted: Any) -> None:
    """Until the Job's spec has these values."""
    until(
        lambda: {f: tenant.batch_job(name).get("spec", {}).get(f) for f in wanted} == wanted,
        lambda: f"{name} has {wanted}; {tenant.batch_job(name)['spec']}, {tenant.status(name)}",
        10,
    )


def submit(tenant: Tenant) -> None:
    tenant.submit("drift", gpu=0.125, parallelism=2, completions=5, template=LONG)
    until(lambda: len(tenant.allocations("drift")) == 2, "two pods run")


@pytest.mark.parametrize(
    "change",
    [
        {"parallelism": 5},
        {"suspend": True},
        {"completions": 2, "parallelism": 2},
        {"completions": 9, "parallelism": 9},
        {"completions": 2, "parallelism": 2, "suspend": True},
    ],
    ids=["wider", "suspended", "fewer", "more", "fewer and suspended"],
)
def test_its_size_is_put_back(tenant: Tenant, change: Json) -> None:
    submit(tenant)
    edit(tenant, "drift", {"spec": change})
    wait_spec(tenant, "drift", parallelism=2, completions=5, suspend=False)
    until(lambda: len(tenant.allocations("drift")) == 2, "two pods run")
    until(
        lambda: (s := tenant.status("drift"))["phase"] == "Running" and not s.get("reason"),
        lambda: f"it complains of nothing; {tenant.status('drift')}",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"gpu-scheduler.io/job": None}}},
        {
            "metadata": {"labels": {"gpu-scheduler.io/job": None}},
            "spec": {"completions": 9, "parallelism": 9},
        },
    ],
    ids=["its label", "label and size"],
)
def test_its_label_comes_back(tenant: Tenant, change: Json) -> None:
    submit(tenant)
    edit(tenant, "drift", change)
    until(
        lambda: "gpu-scheduler.io/job" in tenant.batch_job("drift")["metadata"]["labels"],
        "the label is back",
        10,
    )
    wait_spec(tenant, "drift", parallelism=2, completions=5)


def test_one_that_was_deleted_by_hand_is_made_again(tenant: Tenant) -> None:
    submit(tenant)
    before = tenant.batch_job("drift")["metadata"]["uid"]
    path = f"{job_path(tenant, 'drift')}?propagationPolicy=Background"
    assert tenant.admin.send("DELETE", path).ok
    until(
        lambda: tenant.batch_job("drift").get("metadata", {}).get("uid", before) != before,
        "there is another Job",
    )


def submit_three(tenant: Tenant) -> None:
    """A job of three pods, one after the other, of which one is done."""
    tenant.submit("cut", gpu=0.125, parallelism=1, completions=3)
    until(lambda: tenant.pods("cut") and tenant.let_end("cut"), "its first is there")
    until(
        lambda: (
            (j := tenant.batch_job("cut"))["kind"] == "Job" and j["status"].get("succeeded") == 1
        ),
        "one is done",
    )


def end_of_three(tenant: Tenant) -> Json:
    """Its status once it has ended or complains; its pods end."""
    told = "completions, and 3 belong to it"
    return until(
        lambda: (
            tenant.let_end("cut")
            and (
                (s := tenant.status("cut")).get("phase") == "Succeeded"
                or told in s.get("message", "")
            )
            and s
        ),
        lambda: f"it ends or complains; {tenant.status('cut')}",
        30,
    )


def test_one_that_ended_too_small_is_no_success(tenant: Tenant) -> None:
    submit_three(tenant)
    # An editor is faster than we are, or we are away.
    edit(tenant, "cut", {"spec": {"completions": 1, "parallelism": 1}})
    status = end_of_three(tenant)
    if status["phase"] == "Succeeded":
        assert status["pods"]["succeeded"] == 3, "its size was put back in time"
    else:
        assert status["reason"] == "Invalid"


def test_one_whose_end_was_decided_while_it_was_too_small_is_no_success(tenant: Tenant) -> None:
    """Its size comes back between the Job controller's verdict and the end that follows it."""
    submit_three(tenant)
    verdict = {
        "type": "SuccessCriteriaMet",
        "status": "True",
        "reason": "CompletionsReached",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastProbeTime": "2026-01-01T00:00:00Z",
    }
    path = f"{job_path(tenant, 'cut')}/status"
    answer = tenant.admin.patch(path, {"status": {"conditions": [verdict]}})
    assert answer.ok, answer
    status = end_of_three(tenant)
    assert (status["phase"], status["reason"]) == ("Pending", "Invalid"), status
    ended = tenant.batch_job("cut")
    assert ended["spec"]["completions"] == 3 and ended["status"]["succeeded"] < 3


def kept(tenant: Tenant) -> Callable[[], None]:
    """A Job that is deleted and stays, until the answer is called."""
    edit(tenant, "drift", {"metadata": {"finalizers": ["example.com/keep"]}})
    path = f"{job_path(tenant, 'drift')}?propagationPolicy=Background"
    assert tenant.admin.send("DELETE", path).ok
    return lambda: edit(tenant, "drift", {"metadata": {"finalizers": None}})


def test_one_that_somebodys_finalizer_keeps_is_told_of(tenant: Tenant) -> None:
    submit(tenant)
    before, let_go = tenant.batch_job("drift")["metadata"]["uid"], kept(tenant)
    try:
        message = tenant.wait_reason("drift", "Invalid")
        assert (
            "Job drift is being deleted, and is kept by the finalizer example.com/keep" in message
        )
    finally:
        let_go()
    until(
        lambda: tenant.batch_job("drift").get("metadata", {}).get("uid", before) != before,
        "there is another Job",
        60,
    )


def test_a_segment_of_a_sweep_is_put_back_when_another_follows_it(tenant: Tenant) -> None:
    tenant.submit("sweep", gpu=0.125, parallelism=4, completions=3, template=LONG, sweep=RANDOM)
    tenant.wait_placed("sweep", 3)
    assert tenant.patch("sweep", completions=6).ok
    tenant.wait_placed("sweep", 4)
    first = next(
        job["metadata"]["name"]
        for job in tenant.admin.get(job_path(tenant, "").rstrip("/")).body["items"]
        if job["metadata"]["annotations"].get("gpu-scheduler.io/first-trial") == "0"
    )
    edit(tenant, first, {"spec": {"completions": 1, "parallelism": 1}})
    wait_spec(tenant, first, completions=3, parallelism=3)


def suspended(tenant: Tenant) -> None:
    """A job that ran, and has no pods."""
    tenant.submit("drift", gpu=0.125, template=LONG)
    tenant.wait_placed("drift")
    assert tenant.patch("drift", suspend=True).ok
    tenant.wait_reason("drift", "Suspended")
    until(lambda: tenant.batch_job("drift")["spec"]["suspend"], "so is its Job")
    until(lambda: not tenant.pods("drift"), "its pods are gone")


def test_a_suspended_job_that_never_ran_has_no_job(tenant: Tenant) -> None:
    tenant.submit("drift", gpu=0.125, suspend=True, template=LONG)
    tenant.wait_reason("drift", "Suspended")
    assert tenant.admin.get(job_path(tenant, "drift")).status == 404
    assert tenant.patch("drift", suspend=False).ok
    tenant.wait_placed("drift")


def test_a_job_that_was_edited_while_it_was_suspended_stays_so_and_says_so(tenant: Tenant) -> None:
    suspended(tenant)
    change = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "slow"}}}}}
    edit(tenant, "drift", change)
    assert tenant.patch("drift", suspend=False).ok
    message = tenant.wait_reason("drift", "Invalid")
    assert message.startswith("spec.template.spec.nodeSelector: somebody else changed it in Job")
    path = f"{job_path(tenant, 'drift')}?propagationPolicy=Background"
    assert tenant.admin.send("DELETE", path).ok
    tenant.wait_placed("drift")
    until(lambda: not tenant.status("drift").get("reason"), "all is well again")


def test_a_job_that_was_suspended_and_not_edited_goes_on(tenant: Tenant) -> None:
    suspended(tenant)
    assert tenant.patch("drift", suspend=False).ok
    tenant.wait_placed("drift")


def test_the_service_of_a_gang_is_made_again(tenant: Tenant) -> None:
    tenant.submit("gang", gpu=0.125, gang=True, parallelism=2, template=LONG)
    tenant.wait_placed("gang", 2)
    path = f"/api/v1/namespaces/{tenant.name}/services/gang"
    before = tenant.admin.get(path).body["metadata"]["uid"]
    assert tenant.admin.send("DELETE", path).ok
    until(
        lambda: tenant.admin.get(path).body.get("metadata", {}).get("uid", before) != before,
        "there is another one",
    )
