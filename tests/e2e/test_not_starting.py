"""Pods that a real kubelet cannot start, or that fail: what the GPUJob says of them."""

from tests.api.tenant import Json, Tenant, until
from tests.e2e.gpu_jobs import container, template, wait_running


def of_image(image: str, **more: object) -> Json:
    return template({"name": "main", "image": image, "command": ["true"], **more})


def not_protected(tenant: Tenant, job: str) -> bool:
    conditions = tenant.status(job).get("conditions", [])
    return not any(c["type"] == "Protected" and c["status"] == "True" for c in conditions)


def test_an_image_that_cannot_be_had_names_it_and_the_kubelets_words(tenant: Tenant) -> None:
    tenant.submit("no-image", gpu=0.5, template=of_image("registry.invalid/nothing:1"))
    message = tenant.wait_reason("no-image", "ImageNotPulled", 60)
    assert "container main of pod no-image-0-" in message
    assert "registry.invalid/nothing:1" in message and "ErrImagePull" in message
    assert tenant.wait_event("no-image", "ImageNotPulled")["type"] == "Warning"
    assert not_protected(tenant, "no-image")
    conditions = {c["type"]: c for c in tenant.status("no-image")["conditions"]}
    assert conditions["CannotStart"]["reason"] == "ImageNotPulled"
    assert "registry.invalid/nothing:1" in conditions["CannotStart"]["message"]


def test_an_image_that_may_not_be_pulled_and_a_name_that_is_none(tenant: Tenant) -> None:
    never = of_image("registry.invalid/nothing:1", imagePullPolicy="Never")
    tenant.submit("never", gpu=0.25, template=never)
    assert "ErrImageNeverPull" in tenant.wait_reason("never", "ImageNotPulled")
    tenant.submit("no-name", gpu=0.25, template=of_image("UPPER/case:1"))
    message = tenant.wait_reason("no-name", "ImageNotPulled")
    assert "UPPER/case:1" in message and "repository name must be lowercase" in message


def test_a_secret_that_is_missing_is_named_and_once_there_the_job_runs(tenant: Tenant) -> None:
    source = {"secretKeyRef": {"name": "missing", "key": "token"}}
    needs = container(env=[{"name": "TOKEN", "valueFrom": source}])
    tenant.submit("no-secret", gpu=0.5, template=template(needs))
    message = tenant.wait_reason("no-secret", "ContainerNotStarted")
    assert 'CreateContainerConfigError: secret "missing" not found' in message
    body = {"metadata": {"name": "missing"}, "stringData": {"token": "x"}}
    assert tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/secrets", body).ok
    wait_running(tenant, "no-secret", seconds=90)
    until(lambda: tenant.status("no-secret")["reason"] == "", "it says so no more")


def test_a_volume_that_does_not_mount_is_told_from_the_pods_events(tenant: Tenant) -> None:
    volumes = [{"name": "data", "configMap": {"name": "absent"}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    needs = container(volumeMounts=mounts)  # a volume that nobody mounts is not waited for
    tenant.submit("no-volume", gpu=0.5, template=template(needs, volumes=volumes))
    message = tenant.wait_reason("no-volume", "VolumeNotMounted", 40)
    assert "FailedMount" in message and 'volume "data"' in message and '"absent"' in message


def test_what_does_not_start_in_time_gives_its_gpu_to_who_waits(tenant: Tenant) -> None:
    tenant.set_project(startTimeoutSeconds=30)
    bad = of_image("registry.invalid/nothing:1", imagePullPolicy="Never")
    tenant.submit("bad", gpu=1, parallelism=2, retries=0, template=bad)
    tenant.wait_reason("bad", "ImageNotPulled", 60)
    tenant.submit("good", gpu=1, template=template(container()))
    wait_running(tenant, "good", seconds=90)
    message = tenant.wait_reason("bad", "StartTimedOut")
    assert "did not start within 30 s" in message and "ErrImageNeverPull" in message
    assert tenant.batch_job("bad")["status"].get("failed", 0) == 0


def failed(tenant: Tenant, name: str, *containers: Json, **spec: object) -> Json:
    tenant.submit(name, gpu=0.5, retries=0, template=template(*containers), **spec)
    return tenant.wait_phase(name, "Failed", 90)


def test_failures_say_container_exit_code_and_the_last_line_of_the_log(tenant: Tenant) -> None:
    loud = container("{ echo first; echo 'no such column: x'; } >&2; exit 3")
    status = failed(tenant, "loud", loud)
    assert status["reason"] == "ProgramFailed"
    said = "index 0 failed: container main ended with exit code 3: no such column: x"
    assert status["message"] == said
    event = tenant.wait_event("loud", "Failed")
    assert (event["type"], event["message"]) == ("Warning", said)


def test_a_program_that_the_image_does_not_have_is_named(tenant: Tenant) -> None:
    absent = container()
    absent["command"] = ["/no/such/program"]
    status = failed(tenant, "absent", absent)
    assert status["reason"] == "ProgramNotFound"
    assert "exit code 128 (StartError)" in status["message"]
    assert "/no/such/program" in status["message"]
    shell = failed(tenant, "shell", container("no-such-command"))
    assert shell["reason"] == "ProgramNotFound" and "exit code 127" in shell["message"]


def test_a_signal_is_named(tenant: Tenant) -> None:
    # Process 1 would not hear it; and of $$$$ the API leaves $$.
    status = failed(tenant, "killed", container("sh -c 'kill -KILL $$$$'; exit $?"))
    assert "exit code 137 (SIGKILL)" in status["message"]


def test_a_time_limit_is_named(tenant: Tenant) -> None:
    status = failed(tenant, "late", container(), timeLimitSeconds=5)
    assert status["reason"] == "TimeLimitExceeded" and "DeadlineExceeded" in status["message"]
