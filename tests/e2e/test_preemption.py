"""Pods that have to give way, in real containers: they are told, they have their time, nothing is
charged, and the same index runs again to a good end.

Each program ends when a test says so; when it is told to stop it needs a second to clean up.
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from threading import Event

import pytest
import yaml
from tests.api.caller import Caller
from tests.api.pod_watch import placed
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import container, let_end, template
from tests.e2e.waits import LIMIT_SECONDS, NodeTenant, until

from cluster import Running
from cluster.name_server import NameServer

ROOT = Path(__file__).parents[2]
INDEX = "batch.kubernetes.io/job-completion-index"
PROGRAM = """
trap 'echo "told to stop"; sleep 1; echo "cleaned up"; exit 3' TERM
echo started
while [ ! -e /tmp/finish ]; do sleep 0.2; done
"""
# Exits with an error when it is stopped: only an eviction that is charged to nobody hides that.
WORK = template(container(PROGRAM), terminationGracePeriodSeconds=30)


@contextmanager
def last_words(cluster: Running, pods: list[Json]) -> Iterator[dict[str, Future[str]]]:
    """What pods print until they end, by index; an evicted pod's log is gone with it.

    Who follows them has heard something before the test goes on: by then they listen for being told
    to stop, and what they say is not lost with the pod. Where a test fails its pods are deleted, or
    it would wait for their last words for ever.
    """
    heard = {index(pod): Event() for pod in pods}
    environment = {**os.environ, **cluster.environment}

    def follow(pod: Json) -> str:
        meta = pod["metadata"]
        where = ("-n", meta["namespace"], meta["name"], "-c", "main")
        command = (cluster.binary("kubectl"), "logs", "--follow", *where)
        with Popen(command, stdout=PIPE, stderr=DEVNULL, text=True, env=environment) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            heard[index(pod)].set()
            return first + process.stdout.read()

    with ThreadPoolExecutor(len(pods)) as threads:
        try:
            words = {index(pod): threads.submit(follow, pod) for pod in pods}
            for number, each in heard.items():
                until(each.is_set, f"the program of index {number} has begun")
            yield words
        except BaseException:
            for meta in (pod["metadata"] for pod in pods):
                where = ("-n", meta["namespace"], meta["name"])
                cluster.kubectl("delete", "pod", *where, "--grace-period=1", check=False)
            raise


def index(pod: Json) -> str:
    return str(pod["metadata"]["annotations"][INDEX])


def running(tenant: Tenant, job: str, pods: int) -> list[Json]:
    """Until so many pods of a job run their containers and are not about to go; these pods."""

    def found() -> list[Json]:
        those = [
            pod
            for pod in tenant.pods(job)
            if pod["status"].get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")
        ]
        return those if len(those) == pods else []

    answer: list[Json] = until(found, lambda: f"{pods} pods of {job} run: {tenant.job(job)}")
    return sorted(answer, key=index)


def that_gave_way(tenant: Tenant, job: str, before: list[Json]) -> Json:
    """Until one of these pods of the job is about to go, or gone; the pod as it was."""

    def found() -> Json | None:
        there = (p["metadata"] for p in tenant.pods(job))
        stay = {meta["uid"] for meta in there if not meta.get("deletionTimestamp")}
        return next((pod for pod in before if pod["metadata"]["uid"] not in stay), None)

    pod: Json = until(found, lambda: f"a pod of {job} gives way: {tenant.job(job)}")
    return pod


def finish(cluster: Running, tenant: Tenant, job: str, pods: int) -> None:
    """Let a job's programs end well, and wait until it has succeeded."""
    for pod in running(tenant, job, pods):
        let_end(cluster, pod)
    tenant.wait_phase(job, "Succeeded")


def assert_nothing_charged(tenant: Tenant, job: str) -> None:
    status = tenant.batch_job(job)["status"]
    assert status.get("failed", 0) == 0, status
    assert status["completedIndexes"] == "0,1"
    assert tenant.status(job)["pods"]["succeeded"] == 2
    for pod in tenant.pods(job):
        assert pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "0"


def test_a_preempted_trial_runs_again_and_succeeds(operated: Running, tenant: Tenant) -> None:
    tenant.submit("trials", gpu=1, parallelism=2, priority=10, retries=0, template=WORK)
    before = running(tenant, "trials", 2)
    with last_words(operated, before) as words:
        tenant.submit("urgent", gpu=1, priority=90, template=WORK)
        message = tenant.wait_reason("trials", "Preempted")
        assert f"{tenant.name}/urgent" in message
        assert tenant.status("trials")["preemptedBy"] == f"{tenant.name}/urgent"
        gone = that_gave_way(tenant, "trials", before)
        said = words[index(gone)].result(LIMIT_SECONDS)
        assert said.split("\n")[:3] == ["started", "told to stop", "cleaned up"]
        (other,) = [pod for pod in before if index(pod) != index(gone)]
        running(tenant, "urgent", 1)
        assert tenant.status("trials")["reason"] == "Preempted", "it still waits for its GPU"
        finish(operated, tenant, "urgent", 1)
        after = running(tenant, "trials", 2)
        assert [index(pod) for pod in after] == ["0", "1"]
        uids = {pod["metadata"]["uid"] for pod in after}
        assert other["metadata"]["uid"] in uids, "the other trial was left alone"
        assert gone["metadata"]["uid"] not in uids
        until(lambda: tenant.status("trials")["reason"] == "", "it waits for nothing any more")
        finish(operated, tenant, "trials", 2)
    assert_nothing_charged(tenant, "trials")


# Counts steps; saves them when it is told to stop, says so, and goes on from there.
TRAINING = """
saved=$GPUJOB_CHECKPOINT_DIR/step
step=$(cat $saved 2>/dev/null || echo 0)
save() {
  echo "$step" >$saved
  shown="Authorization: Bearer $(cat "$GPUJOB_TOKEN_FILE")"
  wget -q -O - --header "$shown" --post-data= "$GPUJOB_CHECKPOINT_URL" || echo "not noted"
}
trap 'save; echo " saved at $step"; exit 3' TERM
echo "begins at $step"
while [ ! -e $GPUJOB_CHECKPOINT_DIR/finish ]; do sleep 0.1; step=$((step + 1)); done
"""


def test_a_preempted_training_goes_on_where_it_was_saved(
    operated: Running, tenant: Tenant, names: NameServer, tmp_path: Path
) -> None:
    work = template(container(TRAINING), terminationGracePeriodSeconds=30)
    checkpoint = {"volume": {"hostPath": {"path": str(tmp_path)}}}
    spec: Json = {"gpu": 2, "priority": 10, "retries": 0, "template": work}
    tenant.submit("training", checkpoint=checkpoint, **spec)
    (first,) = running(tenant, "training", 1)
    began = datetime.fromisoformat(first["status"]["startTime"])
    with last_words(operated, [first]) as words:
        # Counted from its start, as what is lost would be; a report later than that loses nothing.
        until(lambda: (datetime.now(UTC) - began).total_seconds() > 3, "it has something to lose")
        tenant.submit("urgent", gpu=2, priority=90, template=WORK)
        said = words["0"].result(LIMIT_SECONDS).split("\n")
    assert said[0] == "begins at 0"
    answer, _, step = said[1].partition(" saved at ")
    assert datetime.fromisoformat(json.loads(answer)["checkpointedAt"]) > began
    assert int(step) > 0
    folder = tmp_path / tenant.name / "training" / "0"
    assert (folder / "step").read_text() == f"{step}\n"
    running(tenant, "urgent", 1)
    until(lambda: tenant.status("training")["evictions"] == 1, "the eviction is counted")
    assert tenant.status("training")["lostGPUSeconds"] == 0
    finish(operated, tenant, "urgent", 1)
    (second,) = running(tenant, "training", 1)
    with last_words(operated, [second]) as words:
        (folder / "finish").touch()
        assert words["0"].result(LIMIT_SECONDS).startswith(f"begins at {step}\n")
    status = tenant.wait_phase("training", "Succeeded")
    assert (status["evictions"], status["lostGPUSeconds"]) == (1, 0)
    assert tenant.batch_job("training")["status"].get("failed", 0) == 0


def test_a_program_that_failed_finds_its_own_folder_when_it_is_tried_again(
    operated: Running, tenant: Tenant, tmp_path: Path
) -> None:
    script = """
    cd "$GPUJOB_CHECKPOINT_DIR" && [ "$GPUJOB_CHECKPOINT_DIR" = /work ] || exit 9
    if [ -e saved ]; then exit 0; fi
    echo "$GPUJOB_INDEX" >saved
    exit 1
    """
    checkpoint = {"volume": {"hostPath": {"path": str(tmp_path)}}, "mountPath": "/work"}
    tenant.submit(
        "tries",
        gpu=0.5,
        parallelism=2,
        retries=1,
        checkpoint=checkpoint,
        template=template(container(script)),
    )
    tenant.wait_phase("tries", "Succeeded")
    saved = (tmp_path / tenant.name / "tries").glob("*/saved")
    assert {each.parent.name: each.read_text() for each in saved} == {"0": "0\n", "1": "1\n"}


def test_the_example_goes_on_where_it_was_when_its_pod_is_deleted(
    operated: Running, tenant: Tenant, names: NameServer, tmp_path: Path
) -> None:
    spec = yaml.safe_load((ROOT / "examples" / "checkpoint.yaml").read_text())["spec"]
    spec["checkpoint"]["volume"]["hostPath"]["path"] = str(tmp_path)
    tenant.submit("example", **spec)
    (first,) = running(tenant, "example", 1)
    with last_words(operated, [first]) as words:
        until(lambda: "begins at" in log(operated, first), "it has begun")
        name = first["metadata"]["name"]
        assert tenant.admin.send("DELETE", f"/api/v1/namespaces/{tenant.name}/pods/{name}").ok
        said = words["0"].result(LIMIT_SECONDS).splitlines()
    assert said[0] == "begins at step 0"
    step = said[-1].removeprefix("saved at step ")
    assert int(step) > 0
    (second,) = running(tenant, "example", 1)
    until(lambda: f"begins at step {step}\n" in log(operated, second), "it goes on")


def log(cluster: Running, pod: Json) -> str:
    """What the program of a pod has printed."""
    meta = pod["metadata"]
    return cluster.kubectl("logs", "-n", meta["namespace"], meta["name"], check=False).stdout


@pytest.fixture
def owner(admin: Caller, tenant: Tenant) -> Iterator[Tenant]:
    """Shares the node with `tenant`: a GPU each."""
    made = NodeTenant(admin).create(quota=1)
    tenant.set_project(quota=1)
    yield made
    made.delete()


def test_a_reclaimed_interactive_job_above_its_quota_runs_again_and_succeeds(
    operated: Running, tenant: Tenant, owner: Tenant
) -> None:
    tenant.submit("notes", gpu=1, parallelism=2, type="interactive", retries=0, template=WORK)
    before = running(tenant, "notes", 2)
    until(lambda: tenant.project_status().get("borrowedGPU") == "1", "one of them is borrowed")
    with last_words(operated, before) as words:
        owner.submit("own", gpu=1, template=WORK)
        message = tenant.wait_reason("notes", "Preempted")
        assert f"{owner.name}/own" in message
        assert tenant.status("notes")["preemptedBy"] == f"{owner.name}/own"
        gone = that_gave_way(tenant, "notes", before)
        said = words[index(gone)].result(LIMIT_SECONDS)
        assert said.split("\n")[:3] == ["started", "told to stop", "cleaned up"]
        running(owner, "own", 1)
        tenant.wait_event("notes", "Preempted", words="its quota is a guarantee")
        finish(operated, owner, "own", 1)
        after = running(tenant, "notes", 2)
        assert [index(pod) for pod in after] == ["0", "1"]
        finish(operated, tenant, "notes", 2)
    assert_nothing_charged(tenant, "notes")


def test_a_preempted_gang_goes_whole_runs_again_and_succeeds(
    operated: Running, tenant: Tenant
) -> None:
    tenant.submit("gang", gpu=1, parallelism=2, gang=True, priority=10, retries=0, template=WORK)
    before = running(tenant, "gang", 2)
    with last_words(operated, before) as words:
        tenant.submit("urgent", gpu=1, priority=90, template=WORK)
        until(
            lambda: tenant.status("gang").get("preemptedBy") == f"{tenant.name}/urgent",
            lambda: f"the gang gives way: {tenant.job('gang')}",
        )
        assert f"{tenant.name}/urgent" in tenant.wait_reason("gang", "Preempted")
        for number in ("0", "1"):
            said = words[number].result(LIMIT_SECONDS)
            assert said.split("\n")[:3] == ["started", "told to stop", "cleaned up"]
    running(tenant, "urgent", 1)
    until(lambda: tenant.status("gang")["pods"]["pending"] == 2, "both members wait")
    # The kubelet may take longer to say that those have ended that go, and to clean up after them,
    # than the Job to replace them.
    stay = (pod for pod in tenant.pods("gang") if not pod["metadata"].get("deletionTimestamp"))
    left = [pod["metadata"]["name"] for pod in stay if placed(pod)]
    assert left == [], f"one GPU is free, and no member takes it alone: {left}"
    until(lambda: tenant.status("gang")["allocatedGPU"] == "0", "it holds nothing")
    finish(operated, tenant, "urgent", 1)
    after = running(tenant, "gang", 2)
    assert [index(pod) for pod in after] == ["0", "1"]
    assert not {p["metadata"]["uid"] for p in before} & {p["metadata"]["uid"] for p in after}
    finish(operated, tenant, "gang", 2)
    assert_nothing_charged(tenant, "gang")
