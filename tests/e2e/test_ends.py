"""How jobs end on a real kubelet: at their time limit, by deletion, by suspension."""

import uuid

from tests.api.tenant import Tenant
from tests.e2e.gpu_jobs import container, processes, start, template, wait_running
from tests.e2e.waits import until


def unique_seconds() -> str:
    """A number of seconds by which a process can be found on the machine."""
    return str(10**9 + uuid.uuid4().int % 10**9)


def test_past_its_time_limit_an_index_fails_without_a_retry(tenant: Tenant) -> None:
    tenant.submit("endless", gpu=0.5, retries=3, timeLimitSeconds=5, template=template(container()))
    status = tenant.wait_phase("endless", "Failed")
    assert status["pods"]["failed"] == 1
    job = tenant.batch_job("endless")["status"]
    assert job["failed"] == 1 and job["failedIndexes"] == "0"
    (pod,) = tenant.pods("endless")
    assert pod["status"]["reason"] == "DeadlineExceeded"
    until(lambda: tenant.status("endless")["allocatedGPU"] == "0", "its share is free")


def test_a_pod_that_is_killed_at_its_time_limit_reads_so_until_it_has_ended(
    tenant: Tenant,
) -> None:
    stays = template(container("trap '' TERM; while :; do sleep 1; done"))
    stays["spec"]["terminationGracePeriodSeconds"] = 15
    tenant.submit("stubborn", gpu=0.5, retries=0, timeLimitSeconds=4, template=stays)
    says = "has reached spec.timeLimitSeconds (4 s) and is ending"
    until(lambda: says in tenant.wait_reason("stubborn", "EndingPods"), "it says so")
    assert tenant.status("stubborn")["phase"] == "Running"
    tenant.wait_phase("stubborn", "Failed")
    assert tenant.status("stubborn")["reason"] == "TimeLimitExceeded"


def test_deleting_a_job_stops_its_containers(tenant: Tenant) -> None:
    marker = unique_seconds()
    start(tenant, "doomed", gpu=0.5, template=template(container(f"exec quickstart {marker}")))
    until(lambda: processes(marker), "its program runs")
    tenant.remove("doomed")
    until(lambda: not tenant.pods("doomed"), "its pods are gone")
    until(lambda: not processes(marker), "its processes are gone")
    until(lambda: tenant.project_status().get("allocatedGPU") == "0", "the project holds nothing")
    start(tenant, "next", gpu=1, template=template(container()))


def test_suspending_a_job_stops_its_containers_and_resuming_runs_them_again(
    tenant: Tenant,
) -> None:
    marker = unique_seconds()
    job = template(container(f"exec quickstart {marker}"))
    before = start(tenant, "pausing", gpu=0.5, retries=0, template=job)
    until(lambda: processes(marker), "its program runs")
    assert tenant.patch("pausing", suspend=True).ok
    tenant.wait_phase("pausing", "Suspended")
    until(lambda: not processes(marker), "its processes are gone")
    assert tenant.patch("pausing", suspend=False).ok
    until(lambda: processes(marker), "it runs again")
    after = wait_running(tenant, "pausing")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert not tenant.batch_job("pausing")["status"].get("failed")
