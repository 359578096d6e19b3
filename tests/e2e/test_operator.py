"""The operator as the chart runs it: two replicas, one leads, and neither may do much else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.api.tenant import GROUP, Json, Tenant
from tests.e2e.gpu_jobs import container, start, template, wait_running
from tests.e2e.metrics import end_term, holder, replicas, runs, wait_leader
from tests.e2e.waits import until

from cluster import Running
from demo.install import RELEASE


def in_operator(cluster: Running, pod: str, *command: str) -> str:
    answer = cluster.kubectl("exec", "-n", RELEASE, pod, "--", *command, check=False)
    return (answer.stdout + answer.stderr).strip()


def ready(cluster: Running) -> list[Json]:
    """The two replicas, once both are ready."""

    def found() -> list[Json]:
        pods = replicas(cluster)
        statuses = [pod["status"].get("containerStatuses", [{}])[0] for pod in pods]
        return pods if [each.get("ready") for each in statuses] == [True, True] else []

    pods: list[Json] = until(found, "two replicas are ready")
    return pods


def test_two_replicas_are_ready_and_one_leads(operated: Running) -> None:
    names = {pod["metadata"]["name"] for pod in ready(operated)}
    assert wait_leader(operated) in names


def test_it_is_nobody_and_can_write_nowhere(operated: Running) -> None:
    for pod in ready(operated):
        name = pod["metadata"]["name"]
        assert in_operator(operated, name, "id", "-u") == "65532"
        for path in ("/x", "/tmp/x", "/opt/operator/x"):
            said = in_operator(operated, name, "touch", path)
            assert "Read-only file system" in said or "Permission denied" in said, said
        assert "Read-only file system" in in_operator(operated, name, "touch", "/tmp/x")
        assert in_operator(operated, name, "grep", "CapEff", "/proc/1/status").endswith("0" * 16)


def test_when_the_leader_is_gone_the_other_one_goes_on(operated: Running, tenant: Tenant) -> None:
    before = start(tenant, "through-it-all", gpu=0.5)
    tenant.submit("waiting", gpu=2)
    tenant.wait_reason("waiting", "WaitingForGPU")
    first = wait_leader(operated)
    (uid,) = [p["metadata"]["uid"] for p in replicas(operated) if p["metadata"]["name"] == first]
    operated.kubectl("delete", "pod", first, "-n", RELEASE, "--force", "--grace-period=0")
    until(lambda: not runs(uid), "its processes are gone")
    if holder(operated).startswith(first):  # it had no time to give it back
        end_term(operated)
    tenant.submit("newcomer", gpu=0.5, template=template(container()))
    wait_running(tenant, "newcomer")
    assert wait_leader(operated) != first
    (after,) = tenant.pods("through-it-all")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["phase"] == "Running"
    shared = {
        tenant.allocations(job)[0].devices[0].device for job in ("through-it-all", "newcomer")
    }
    assert len(shared) == 1, "the new leader knew what was taken"
    assert len(ready(operated)) == 2


def gpu(cluster: Running, *words: str, seed: str = "0") -> str:
    """What ``kubectl gpu`` prints."""
    program = [sys.executable, "-c", "from gpu_scheduler.main import kubectl_gpu; kubectl_gpu()"]
    path = os.pathsep.join((str(cluster.binary("kubectl").parent), os.environ["PATH"]))
    environment = {**os.environ, **cluster.environment, "PATH": path, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [*program, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_dump_is_read_in_the_leaders_pod_alone_and_replays_to_one_plan(
    operated: Running, tenant: Tenant, tmp_path: Path
) -> None:
    start(tenant, "half", gpu=0.5)
    tenant.submit("both", gpu=2, template=template(container()))
    tenant.wait_reason("both", "WaitingForGPU")
    file = tmp_path / "dump.json"
    assert "1 jobs wait on" in gpu(operated, "dump", "-o", str(file))
    replay = ("simulate", "--from", str(file), "-o", "json")
    plan = gpu(operated, *replay)
    assert plan == gpu(operated, *replay, seed="1") and f"{tenant.name}/both" in plan
    assert tenant.name not in gpu(operated, "dump", "--replace-names")

    account = f"{tenant.name}:default"
    edit = ("--clusterrole=edit", f"--serviceaccount={account}", "-n", tenant.name)
    operated.kubectl("create", "rolebinding", "edit", *edit)
    pod = wait_leader(operated)
    who = f"--as=system:serviceaccount:{account}"
    read = ("exec", who, "-n", RELEASE, pod, "--", "python3", "-m", "gpu_scheduler.web.read_dump")
    answer = operated.kubectl(*read, check=False)
    assert answer.returncode and not answer.stdout, answer
    assert "forbidden" in answer.stderr.lower()


def test_describe_says_why_a_job_waits(operated: Running, tenant: Tenant) -> None:
    start(tenant, "half", gpu=0.5)
    tenant.submit("both", gpu=2, template=template(container()))
    tenant.wait_reason("both", "WaitingForGPU")
    text = operated.kubectl("describe", "gj", "both", "-n", tenant.name).stdout
    assert "WaitingForGPU" in text and "needs 2 GPUs" in text
    tenant.remove("half")
    wait_running(tenant, "both")


def test_more_than_the_project_may_have_waits_for_quota_and_starts_by_itself(
    tenant: Tenant,
) -> None:
    tenant.set_project(quota=0.5, limit=0.6)
    start(tenant, "inside", gpu=0.5)
    tenant.submit("over", gpu=0.4, template=template(container()))
    assert "0.6" in tenant.wait_reason("over", "WaitingForQuota")
    tenant.submit("never", gpu=1, template=template(container()))
    assert "0.6" in tenant.wait_reason("never", "ExceedsQuota")
    tenant.remove("inside")
    wait_running(tenant, "over")


@pytest.mark.parametrize(
    ("field", "value"),
    [("gpu", 1.5), ("gpu", 0), ("retries", -1), ("gpuu", 0.5), ("timeLimitSeconds", "long")],
)
def test_a_wrong_manifest_is_refused_and_the_field_is_named(
    operated: Running, owner: Tenant, field: str, value: object
) -> None:
    manifest = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": "wrong", "namespace": owner.name},
        "spec": {"image": "x", "gpu": 0.5, field: value},
    }
    answer = operated.kubectl("apply", "-f", "-", input=json.dumps(manifest), check=False)
    assert answer.returncode != 0
    assert f"spec.{field}" in answer.stderr, answer.stderr
    assert owner.admin.get(f"{GROUP}/namespaces/{owner.name}/gpujobs/wrong").status == 404
