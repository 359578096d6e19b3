"""One object of a tenant costs no more than its size: Jobs that are not ours, windows, refusals."""

import json
from typing import Any

import pytest
from tests.api.caller import Caller
from tests.api.tenant import GROUP, Tenant, until

from cluster import Running

MANY = 5_000_000


def forged(tenant: Tenant, owner: str, name: str, size: int, **annotations: str) -> dict[str, Any]:
    """A Job as an editor of the namespace can write it: everything but its name is like ours."""
    meta = tenant.job(owner)["metadata"]
    reference = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "name": owner,
        "uid": meta["uid"],
        "controller": True,
    }
    pod = {
        "restartPolicy": "Never",
        "schedulerName": "gpu-scheduler",
        "containers": [{"name": "main", "image": "example/placeholder:1"}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": tenant.name,
            "labels": {"gpu-scheduler.io/job": owner},
            "annotations": {f"gpu-scheduler.io/{k}": v for k, v in annotations.items()},
            "ownerReferences": [reference],
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": size,
            "parallelism": 2,
            "activeDeadlineSeconds": 5,
            "template": {"spec": pod},
        },
    }


def test_a_job_of_millions_that_says_it_is_ours_gets_nothing_and_costs_nobody_anything(
    tenant: Tenant,
) -> None:
    sweep = {"algorithm": "random", "parameters": {"lr": {"uniform": [0, 1]}}}
    tenant.submit("mine", gpu=0.5, completions=2000, sweep=sweep)
    tenant.wait_phase("mine", "Running")
    jobs = f"/apis/batch/v1/namespaces/{tenant.name}/jobs"
    for name, notes in (
        ("mine-s1", {"segment": "1", "first-trial": "1000"}),
        ("mine-s999999999", {"segment": "999999999", "first-trial": "0"}),
        ("strange", {}),
    ):
        answer = tenant.admin.create(jobs, forged(tenant, "mine", name, MANY, **notes))
        assert answer.ok, answer
    message = tenant.wait_event("mine", "StrangeJob")["message"]
    assert "does not" in message, message
    until(
        lambda: any(
            c["type"] == "Failed"
            for c in tenant.batch_job("mine-s1")["status"].get("conditions", [])
        ),
        "the strange Job has ended, with millions of indexes",
        60,
    )
    tenant.submit("beside", gpu=0.5)
    tenant.wait_placed("beside")
    assert len(tenant.allocations("mine")) == 1
    assert tenant.status("mine")["phase"] == "Running"
    assert tenant.status("mine")["sweep"]["trials"] == 2000


def test_a_parallelism_of_a_hundred_thousand_under_a_limit_of_four_makes_four_pods(
    tenant: Tenant,
) -> None:
    tenant.set_project(quota=4, limit=4)
    tenant.submit("wide", gpu=1, parallelism=100_000)
    tenant.wait_placed("wide", 4)
    assert tenant.batch_job("wide")["spec"]["parallelism"] == 4, "what waits has no pods"
    assert len(tenant.pods("wide")) == 4
    counts = {"pending": 100_000 - 4, "running": 4, "succeeded": 0, "failed": 0}
    until(
        lambda: tenant.status("wide")["pods"] == counts,
        lambda: f"four run, all others wait; status {json.dumps(tenant.status('wide'))}",
    )
    tenant.set_project(quota=8, limit=8)
    tenant.wait_placed("wide", 8)
    wide = {"spec": {"parallelism": 90_000}}
    path = f"/apis/batch/v1/namespaces/{tenant.name}/jobs/wide"
    assert tenant.admin.patch(path, wide).ok
    until(
        lambda: tenant.batch_job("wide")["spec"]["parallelism"] < 100,
        "what an editor made wider is made narrow again",
    )


def refusals(running: Running) -> float:
    """How often the API server has refused to make a pod as a dry run."""
    about = ('resource="pods"', 'verb="POST"', 'dry_run="All"', 'code="403"')
    with running.client() as client:
        lines = client.request("GET", "/metrics")[1].decode().splitlines()
    counts = [line for line in lines if line.startswith("apiserver_request_total{")]
    return sum(float(c.split()[-1]) for c in counts if all(each in c for each in about))


def test_what_a_limit_range_refuses_is_told_once_and_starts_when_that_is_gone(
    tenant: Tenant, scheduled: Running
) -> None:
    limit = {
        "metadata": {"name": "small"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "100m"}}]},
    }
    ranges = f"/api/v1/namespaces/{tenant.name}/limitranges"
    assert tenant.admin.create(ranges, limit).ok
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    for name in ("first", "second"):
        tenant.submit(name, gpu=0.5, resources=resources)
    for name in ("first", "second"):
        message = tenant.wait_reason(name, "Invalid")
        assert "maximum cpu usage" in message, message
    versions = {n: tenant.job(n)["metadata"]["resourceVersion"] for n in ("first", "second")}
    until(lambda: len(tenant.events("second")) > 0, "an Event says so")
    before = refusals(scheduled)
    until(lambda: refusals(scheduled) >= before + 2, "the operator has tried again")
    assert versions == {n: tenant.job(n)["metadata"]["resourceVersion"] for n in versions}
    assert tenant.admin.send("DELETE", f"{ranges}/small").ok
    for name in ("first", "second"):
        tenant.wait_placed(name)


def test_numbers_that_the_api_server_cannot_hold_are_refused_by_it(tenant: Tenant) -> None:
    spec = {
        "image": "x",
        "gpu": 0.5,
        "completions": 1,
        "sweep": {"algorithm": "random", "parameters": {"lr": {"constant": 10**400}}},
    }
    body = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": "huge", "namespace": tenant.name},
        "spec": spec,
    }
    answer = tenant.admin.create(f"{GROUP}/namespaces/{tenant.name}/gpujobs", body)
    assert answer.status == 400, answer


def budget(tenant: Tenant, name: str) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1_000_000, "selector": {}},
    }
    answer = tenant.admin.create(
        f"/apis/policy/v1/namespaces/{tenant.name}/poddisruptionbudgets", body
    )
    assert answer.ok, answer


@pytest.mark.parametrize("budgets", [1, 2])
def test_a_budget_does_not_keep_what_is_owed_to_a_guarantee_and_nothing_is_charged(
    admin: Caller, budgets: int
) -> None:
    borrower, owner = Tenant(admin).create(quota=0), Tenant(admin).create(quota=8)
    try:
        borrower.submit("borrows", gpu=2, parallelism=4, retries=0)
        borrower.wait_placed("borrows", 4)
        for number in range(budgets):
            budget(borrower, f"never-{number}")
        until(
            lambda: all(
                b.get("status", {}).get("observedGeneration")
                for b in admin.get(
                    f"/apis/policy/v1/namespaces/{borrower.name}/poddisruptionbudgets"
                ).body["items"]
            ),
            "the budgets are known",
        )
        owner.submit("owed", gpu=2)
        owner.wait_placed("owed")
        borrower.wait_event("borrows", "BudgetOverruled")
        until(lambda: len(borrower.pods("borrows")) == 4, "its Job made another pod")
        status = borrower.batch_job("borrows")["status"]
        assert not status.get("failedIndexes") and not status.get("failed"), status
        assert borrower.status("borrows")["phase"] == "Running"
    finally:
        borrower.delete()
        owner.delete()
