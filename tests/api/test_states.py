"""Every edge between the states of a GPUJob, walked on a real control plane, with its words."""

from collections.abc import Iterator

import pytest
from tests.api.caller import Caller
from tests.api.tenant import STAYS, Tenant, runs, template, until
from tests.api.trials import end
from tests.api.walks import Walk, held, walk

from gpu_scheduler.api.states import EDGES, Group

IMAGE = 'failed to pull and unpack image "registry/x:1": not found'
WALKED: set[tuple[Group, Group]] = set()


@pytest.fixture(scope="module")
def edges() -> Iterator[set[tuple[Group, Group]]]:
    """Those that the tests of this file have walked; all of them, once all have run."""
    yield WALKED


@pytest.fixture
def team(tenant: Tenant, edges: set[tuple[Group, Group]]) -> Tenant:
    return tenant


def no_pods(tenant: Tenant, pods: int = 0) -> None:
    """A ResourceQuota that allows so many pods."""
    path = f"/api/v1/namespaces/{tenant.name}/resourcequotas"
    body = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": str(pods)}}}
    if not tenant.admin.create(path, body).ok:
        assert tenant.admin.patch(f"{path}/few", {"spec": body["spec"]}).ok
    until(
        lambda: (
            tenant.admin.get(f"{path}/few").body.get("status", {}).get("hard", {}).get("pods")
            == str(pods)
        ),
        "the quota is in force",
    )


def ask_for_all(tenant: Tenant) -> None:
    """A job that holds all GPUs of the project but one, and takes that as soon as it is free.

    Whoever has that one now and gives it up finds it taken, however long it is until its next pod.
    """
    tenant.submit("others", gpu=1, parallelism=8, type="interactive")
    tenant.wait_placed("others", 7)


def done(job: Walk) -> None:
    WALKED.update(job.edges())


def test_from_a_mistake_over_a_full_quota_to_running(admin: Caller) -> None:
    alone = Tenant(admin).create()
    try:
        no_pods(alone)
        with walk(alone, "job", gpu=0.5, template=held()) as job:
            job.to("Invalid", alone.name, "belongs to no project")
            assert alone.project(alone.name, namespaces=[alone.name], quota=8).ok
            said = job.to(
                "PodsRefused", "exceeded quota: few", "requested: pods=1", "limited: pods=0"
            )
            assert (
                "dry-run" not in said and f"kubectl describe resourcequota -n {alone.name}" in said
            )
            event = alone.wait_event("job", "PodsRefused")
            assert event["type"] == "Warning" and "exceeded quota: few" in event["message"]
            no_pods(alone, 5)
            job.to("Starting", "placed on", "containers are starting")
            job.release()
            job.to("", phase="Running")
        done(job)
    finally:
        alone.delete()


def test_a_project_that_goes_makes_what_was_accepted_a_mistake(admin: Caller) -> None:
    alone = Tenant(admin).create(quota=1)
    try:
        no_pods(alone)
        with walk(alone, "job", gpu=0.5, template=held()) as job:
            job.to("PodsRefused")
            path = f"/apis/gpu-scheduler.io/v1alpha1/gpuprojects/{alone.name}"
            assert admin.send("DELETE", path).ok
            job.to("Invalid", "belongs to no project")
        done(job)
    finally:
        alone.delete()


def test_what_has_to_wait_says_for_what_and_then_starts(team: Tenant) -> None:
    team.submit("others", gpu=1, parallelism=7, type="interactive")
    team.wait_placed("others", 7)
    no_pods(team, 7)
    with walk(team, "job", gpu=1, template=held()) as job:
        job.to("PodsRefused")
        team.set_project(quota=7, limit=7)
        no_pods(team, 20)
        job.to("WaitingForQuota", "needs 1 GPU")
        team.remove("others")
        job.to("Starting")
    done(job)


def test_an_image_that_cannot_be_had_is_told_and_may_come_after_all(team: Tenant) -> None:
    with walk(team, "job", gpu=0.5, template=held()) as job:
        job.to("Starting")
        job.waits_for("ErrImagePull", IMAGE)
        said = job.to("ImageNotPulled", "container main of pod job-0-", "registry/x:1", IMAGE)
        seen = len(job.seen)
        back_off = f'Back-off pulling image "registry/x:1": ErrImagePull: {IMAGE}'
        job.waits_for("ImagePullBackOff", back_off)
        event = team.wait_event("job", "ImageNotPulled")
        assert event["type"] == "Warning" and event["message"] == said
        assert len(job.seen) == seen, "the same is not said twice"
        job.release()
        job.to("", phase="Running")
    done(job)


def test_a_pod_that_does_not_start_in_time_gives_its_gpu_to_others(team: Tenant) -> None:
    with walk(team, "job", gpu=1, retries=0, parallelism=8, template=held()) as job:
        team.wait_placed("job", 8)
        job.to("Starting")
        job.waits_for("CreateContainerConfigError", 'secret "missing" not found')
        job.to("ContainerNotStarted", "CreateContainerConfigError", 'secret "missing" not found')
        team.submit("next", gpu=1)
        team.set_project(startTimeoutSeconds=4)
        job.to("StartTimedOut", "did not start within 4 s", "is tried again at 20")
        team.wait_phase("next", "Running")
        assert team.wait_event("job", "StartTimedOut")["type"] == "Warning"
        assert team.batch_job("job")["status"].get("failed", 0) == 0
        assert team.status("job")["pods"]["failed"] == 0
    done(job)


def test_an_evicted_pod_says_why_until_the_next_one_has_a_place(team: Tenant) -> None:
    with walk(team, "job", gpu=1, retries=0, template=held()) as job:
        job.to("Starting")
        job.evict()
        job.to("Evicted", "had to leave", "EvictionByEvictionAPI")
        job.to("Starting")
        job.release()
        job.to("", phase="Running")
        ask_for_all(team)
        job.evict()
        job.to("Evicted")
        job.to("WaitingForGPU")
    done(job)


def test_a_job_that_has_begun_reads_running_between_two_pods(team: Tenant) -> None:
    with walk(team, "job", gpu=1, completions=2, retries=3, template=held()) as job:
        job.to("Starting")
        job.release()
        job.to("", phase="Running")
        end(team, job.pod(), "Traceback:\n  x\nValueError: no data\n", 3)
        said = job.to(
            "Retrying", "index 0 failed", "exit code 3: ValueError: no data", phase="Running"
        )
        assert "retry 1 of 3" in said
        job.to("Starting", phase="Running")
        assert [s["phase"] for s in job.seen].count("Pending") <= 3, job.seen
        job.release()
        job.to("", phase="Running")
        ask_for_all(team)
        end(team, job.pod(), "no", 3)
        job.to("Retrying", phase="Running")
        job.to("WaitingForGPU")
        told = team.status("job")["firstFailure"]
        assert "index 0" in told and "ValueError: no data" in told
    done(job)
    assert team.wait_event("job", "PodFailed")["type"] == "Warning"


def test_a_job_ends_well_after_a_failure(team: Tenant) -> None:
    with walk(team, "job", gpu=1, retries=3, template=template()) as job:
        job.to("", phase="Running")
        end(team, job.pod(), "once", 1)
        job.to("Retrying", phase="Running")
        job.to("", phase="Running")
        end(team, job.pod(), "again", 1)
        job.to("Retrying", "retry 2 of 3", phase="Running")
        until(lambda: job.pod()["status"]["phase"] == "Running", "it runs again")
        end(team, job.pod(), "")
        job.to("", phase="Succeeded")
    done(job)


def test_a_job_that_fails_says_which_index_and_how(team: Tenant) -> None:
    with walk(team, "job", gpu=0.5, retries=0, template=template()) as job:
        job.to("", phase="Running")
        end(team, job.pod(), "", 137, "OOMKilled")
        job.to("OOMKilled", "index 0 failed: container main ended with", phase="Failed")
    done(job)
    event = team.wait_event("job", "Failed")
    assert event["type"] == "Warning" and "exit code 137 (OOMKilled, SIGKILL)" in event["message"]
    with walk(
        team, "other", gpu=0.5, retries=1, template=template(runs(0, exit_code="2"))
    ) as other:
        other.to("Retrying", phase="Running")
        other.to("ProgramFailed", "it was tried 2 times", phase="Failed")
    done(other)


def test_a_job_that_runs_ends_well(team: Tenant) -> None:
    with walk(team, "job", gpu=0.5, template=template()) as job:
        job.to("", phase="Running")
        team.let_end("job")
        job.to("", phase="Succeeded")
    done(job)


def test_a_suspended_job_goes_on_where_it_was(team: Tenant) -> None:
    with walk(team, "job", gpu=0.5, template=template()) as job:
        job.to("", phase="Running")
        assert team.patch("job", suspend=True).ok
        job.to("Suspended", "set it to false", phase="Suspended")
        no_pods(team)
        until(lambda: not team.pods("job"), "its pods are gone")
        assert team.patch("job", suspend=False).ok
        job.to("PodsRefused")
    done(job)


def test_a_pod_that_takes_its_time_to_go_is_told_of(team: Tenant) -> None:
    with walk(team, "job", gpu=0.5, template=template(STAYS)) as job:
        job.to("", phase="Running")
        name = job.pod()["metadata"]["name"]
        assert team.admin.send("DELETE", f"/api/v1/namespaces/{team.name}/pods/{name}").ok
        job.to("EndingPods", f"{name} is ending", phase="Running")
        team.let_go("job")
        job.to("", phase="Running")
    done(job)


def test_a_gate_of_somebody_else_is_named(team: Tenant) -> None:
    gated = template(schedulingGates=[{"name": "example.com/hold"}])
    with walk(team, "job", gpu=0.5, template=gated) as job:
        job.to("SchedulingGated", "example.com/hold")


def test_every_edge_of_the_picture_was_walked(
    edges: set[tuple[Group, Group]], request: pytest.FixtureRequest
) -> None:
    """The last test of the file: what those before it have walked."""
    asked = {each.name for each in request.session.items if each.path == request.path}
    if not {name for name in globals() if name.startswith("test_")} <= asked:
        pytest.skip("only some tests of the file were asked for")
    assert set(EDGES) - edges == set()
