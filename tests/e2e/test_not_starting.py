"""Pods that a real kubelet cannot start, or that fail: what the GPUJob says of them."""

import pytest
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import container, template, wait_running
from tests.e2e.waits import until


def of_image(image: str, **more: object) -> Json:
    return template({"name": "main", "image": image, "command": ["true"], **more})


LOUD = "{ echo first; echo 'no such column: x'; } >&2; exit 3"
SECRET = {"secretKeyRef": {"name": "missing", "key": "token"}}
ABSENT = [{"name": "data", "configMap": {"name": "absent"}}]
JOBS: dict[str, Json] = {
    "no-image": {"template": of_image("registry.invalid/nothing:1")},
    "never": {"template": of_image("registry.invalid/nothing:1", imagePullPolicy="Never")},
    "no-name": {"template": of_image("UPPER/case:1")},
    "no-secret": {"template": template(container(env=[{"name": "TOKEN", "valueFrom": SECRET}]))},
    "no-volume": {  # one that nobody mounts is not waited for
        "template": template(
            container(volumeMounts=[{"name": "data", "mountPath": "/data"}]), volumes=ABSENT
        )
    },
    "loud": {"template": template(container(LOUD))},
    "absent": {"template": template({**container(), "command": ["/no/such/program"]})},
    "shell": {"template": template(container("no-such-command"))},
    # Process 1 would not hear it; and of $$$$ the API leaves $$.
    "killed": {"template": template(container("sh -c 'kill -KILL $$$$'; exit $?"))},
    "late": {"template": template(container()), "timeLimitSeconds": 5},
}


@pytest.fixture(scope="module")
def unlucky(owner: Tenant) -> Tenant:
    """Their owner; all of them at once, for most of it is waiting for the kubelet."""
    for name, spec in JOBS.items():
        owner.submit(name, gpu=0.05, retries=0, **spec)
    return owner


def not_protected(tenant: Tenant, job: str) -> bool:
    conditions = tenant.status(job).get("conditions", [])
    return not any(c["type"] == "Protected" and c["status"] == "True" for c in conditions)


def failed(tenant: Tenant, job: str, reason: str) -> str:
    """Until a job has failed for this reason; its message.

    That its Job has failed may be heard before its pod says why.
    """

    def found() -> Json | None:
        status = tenant.status(job)
        told = (status.get("phase"), status.get("reason"))
        return status if told == ("Failed", reason) else None

    status: Json = until(found, lambda: f"{job} failed, {reason}; {tenant.status(job)}")
    return str(status["message"])


def test_an_image_that_cannot_be_had_names_it_and_the_kubelets_words(unlucky: Tenant) -> None:
    message = unlucky.wait_reason("no-image", "ImageNotPulled")
    assert "container main of pod no-image-0-" in message
    assert "registry.invalid/nothing:1" in message and "ErrImagePull" in message
    assert unlucky.wait_event("no-image", "ImageNotPulled")["type"] == "Warning"
    assert not_protected(unlucky, "no-image")
    conditions = {c["type"]: c for c in unlucky.status("no-image")["conditions"]}
    assert conditions["CannotStart"]["reason"] == "ImageNotPulled"
    assert "registry.invalid/nothing:1" in conditions["CannotStart"]["message"]


def test_an_image_that_may_not_be_pulled_and_a_name_that_is_none(unlucky: Tenant) -> None:
    assert "ErrImageNeverPull" in unlucky.wait_reason("never", "ImageNotPulled")
    message = unlucky.wait_reason("no-name", "ImageNotPulled")
    assert "UPPER/case:1" in message and "repository name must be lowercase" in message


def test_a_secret_that_is_missing_is_named_and_once_there_the_job_runs(unlucky: Tenant) -> None:
    message = unlucky.wait_reason("no-secret", "ContainerNotStarted")
    assert 'CreateContainerConfigError: secret "missing" not found' in message
    body = {"metadata": {"name": "missing"}, "stringData": {"token": "x"}}
    assert unlucky.admin.create(f"/api/v1/namespaces/{unlucky.name}/secrets", body).ok
    wait_running(unlucky, "no-secret")
    until(lambda: unlucky.status("no-secret")["reason"] == "", "it says so no more")


def test_a_volume_that_does_not_mount_is_told_from_the_pods_events(unlucky: Tenant) -> None:
    words = "FailedMount", 'volume "data"', '"absent"'

    def told() -> bool:  # the kubelet's last word; at times that is how long it has waited
        message = unlucky.wait_reason("no-volume", "VolumeNotMounted")
        return all(word in message for word in words)

    until(told, lambda: f"{words} are said; {unlucky.status('no-volume')}")


def test_failures_say_container_exit_code_and_the_last_line_of_the_log(unlucky: Tenant) -> None:
    said = "index 0 failed: container main ended with exit code 3: no such column: x"
    assert failed(unlucky, "loud", "ProgramFailed") == said
    event = unlucky.wait_event("loud", "Failed")
    assert (event["type"], event["message"]) == ("Warning", said)


def test_a_program_that_the_image_does_not_have_is_named(unlucky: Tenant) -> None:
    message = failed(unlucky, "absent", "ProgramNotFound")
    assert "exit code 128 (StartError)" in message
    assert "/no/such/program" in message
    assert "exit code 127" in failed(unlucky, "shell", "ProgramNotFound")


def test_a_signal_is_named(unlucky: Tenant) -> None:
    assert "exit code 137 (SIGKILL)" in failed(unlucky, "killed", "ProgramFailed")


def test_a_time_limit_is_named(unlucky: Tenant) -> None:
    assert "DeadlineExceeded" in failed(unlucky, "late", "TimeLimitExceeded")


def test_what_does_not_start_in_time_gives_its_gpu_to_who_waits(unlucky: Tenant) -> None:
    for name in JOBS:
        unlucky.remove(name)  # which may hold something
    bad = of_image("registry.invalid/nothing:1", imagePullPolicy="Never")
    unlucky.submit("bad", gpu=1, parallelism=2, retries=0, template=bad)
    unlucky.wait_reason("bad", "ImageNotPulled")
    unlucky.submit("good", gpu=1, template=template(container()))
    unlucky.wait_reason("good", "WaitingForGPU")
    unlucky.set_project(startTimeoutSeconds=5)
    message = unlucky.wait_reason("bad", "StartTimedOut")
    unlucky.set_project(startTimeoutSeconds=600)  # who waits may start as slowly as it has to
    wait_running(unlucky, "good")
    assert "did not start within 5 s" in message and "ErrImageNeverPull" in message
    assert unlucky.batch_job("bad")["status"].get("failed", 0) == 0
