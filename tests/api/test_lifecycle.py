"""A GPUJob's life: suspend, resume, scale, retry, time limit, time to live, deletion."""

from tests.api.tenant import Tenant, runs, template, until
from tests.api.trials import end, fail_when_suspended


def test_suspend_gives_the_gpus_back_and_resume_goes_on(tenant: Tenant) -> None:
    tenant.submit("pausing", gpu=1, parallelism=2, completions=2)
    tenant.wait_placed("pausing", 2)
    assert tenant.patch("pausing", suspend=True).ok
    status = tenant.wait_phase("pausing", "Suspended")
    assert status["reason"] == "Suspended"
    until(lambda: not tenant.pods("pausing"), "its pods are gone")
    until(lambda: tenant.status("pausing").get("allocatedGPU") == "0", "its GPUs are free")
    assert tenant.patch("pausing", suspend=False).ok
    tenant.wait_placed("pausing", 2)
    tenant.wait_phase("pausing", "Running")
    assert tenant.batch_job("pausing")["status"].get("failed", 0) == 0


def test_parallelism_follows_the_object(tenant: Tenant) -> None:
    tenant.submit("wide", gpu=0.5, parallelism=1, completions=4)
    tenant.wait_placed("wide", 1)
    assert tenant.patch("wide", parallelism=3).ok
    tenant.wait_placed("wide", 3)
    until(lambda: tenant.status("wide").get("podSummary") == "3/0/4", "the status follows")


def test_failures_use_up_retries_and_then_the_job_has_failed(tenant: Tenant) -> None:
    annotations = runs(0, fail_indexes="1")
    tenant.submit(
        "flaky", gpu=0.5, parallelism=2, completions=2, retries=0, template=template(annotations)
    )
    status = tenant.wait_phase("flaky", "Failed")
    assert status["pods"]["succeeded"] == 1 and status["pods"]["failed"] == 1
    assert "1" in tenant.batch_job("flaky")["status"]["failedIndexes"]
    assert any(c["type"] == "Failed" and c["status"] == "True" for c in status["conditions"])


def test_a_finished_job_is_deleted_after_its_time_to_live_and_not_run_again(
    tenant: Tenant,
) -> None:
    tenant.submit("brief", gpu=0.5, ttlSecondsAfterFinished=2, template=template(runs(0)))
    tenant.wait_event("brief", "Succeeded")
    until(lambda: tenant.job("brief").get("code") == 404, "it is deleted")
    until(lambda: tenant.batch_job("brief").get("code") == 404, "its Job too")


def test_a_finished_job_whose_job_is_deleted_stays_finished(tenant: Tenant) -> None:
    tenant.submit("done", gpu=0.5, template=template(runs(0)))
    tenant.wait_phase("done", "Succeeded")
    path = f"/apis/batch/v1/namespaces/{tenant.name}/jobs/done?propagationPolicy=Background"
    assert tenant.admin.send("DELETE", path).ok
    until(lambda: not tenant.pods("done"), "its pods are gone")
    tenant.submit("later", gpu=0.5)
    tenant.wait_placed("later")  # so the operator has heard of what was before
    assert tenant.batch_job("done")["code"] == 404
    assert tenant.status("done")["phase"] == "Succeeded"
    assert tenant.status("done")["pods"]["succeeded"] == 1


def test_a_running_job_whose_job_is_deleted_gets_a_new_one(tenant: Tenant) -> None:
    tenant.submit("stubborn", gpu=0.5)
    tenant.wait_placed("stubborn")
    before = tenant.batch_job("stubborn")["metadata"]["uid"]
    path = f"/apis/batch/v1/namespaces/{tenant.name}/jobs/stubborn?propagationPolicy=Background"
    assert tenant.admin.send("DELETE", path).ok
    until(
        lambda: tenant.batch_job("stubborn").get("metadata", {}).get("uid") not in (None, before),
        "there is a new Job",
    )
    until(
        lambda: any(not p["metadata"].get("deletionTimestamp") for p in tenant.pods("stubborn")),
        "and a new pod",
    )


def test_labels_that_somebody_takes_away_free_no_gpu_and_lose_no_job(tenant: Tenant) -> None:
    tenant.submit("bare", gpu=1, parallelism=8, completions=8, template=template())
    tenant.wait_placed("bare", 8)
    tenant.wait_phase("bare", "Running")
    no_label = {"metadata": {"labels": {"gpu-scheduler.io/job": None}}}
    path = f"/apis/batch/v1/namespaces/{tenant.name}/jobs/bare"
    assert tenant.admin.patch(path, no_label).ok
    pods = tenant.pods("bare")
    for pod in pods:
        path = f"/api/v1/namespaces/{tenant.name}/pods/{pod['metadata']['name']}"
        assert tenant.admin.patch(path, no_label).ok
    tenant.submit("next", gpu=1)
    tenant.wait_reason("next", "WaitingForGPU")
    until(
        lambda: "gpu-scheduler.io/job" in tenant.batch_job("bare")["metadata"]["labels"],
        "the Job has its label again",
    )
    for pod in pods:
        end(tenant, pod, "")
    status = tenant.wait_phase("bare", "Succeeded")
    assert status["pods"]["succeeded"] == 8
    tenant.wait_placed("next")


def test_deleting_a_job_frees_its_gpus(tenant: Tenant) -> None:
    tenant.submit("short-lived", gpu=1, parallelism=8)
    tenant.wait_placed("short-lived", 8)
    tenant.submit("next", gpu=1)
    tenant.wait_reason("next", "WaitingForGPU")
    tenant.remove("short-lived")
    tenant.wait_placed("next")


def test_a_program_that_fails_when_it_is_suspended_loses_no_retry(tenant: Tenant) -> None:
    tenant.submit("stopped", gpu=1, retries=0, template=template())
    tenant.wait_phase("stopped", "Running")
    fail_when_suspended(tenant, "stopped", tenant.pods("stopped")[0], 143)
    assert tenant.patch("stopped", suspend=False).ok
    tenant.wait_phase("stopped", "Running")
    assert not tenant.batch_job("stopped")["status"].get("failedIndexes")
