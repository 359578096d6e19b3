"""Folders and reports of checkpoints, on a real control plane; a test plays the programs.

What a folder is to a program that runs is shown on a real node (``tests/e2e/test_preemption.py``).
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.api import pod_tokens
from tests.api.free_port import free_port
from tests.api.replica import CALM_LEASE, Replica
from tests.api.site import Site, Team, site_on
from tests.api.tenant import STAYS, Json, Tenant, held, template, until
from tests.api.test_sweep_reports import post

from cluster import Running
from gpu_scheduler.api.names import CHECKPOINT_URL, CHECKPOINTED, REPORT_URL
from gpu_scheduler.runtime.reports.checkpoints import EVERY_SECONDS

CLAIM: Json = {"volume": {"persistentVolumeClaim": {"claimName": "work"}}}
FOLDER: Json = {"volume": {"hostPath": {"path": "/scratch", "type": "DirectoryOrCreate"}}}


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    port = str(free_port())
    return {
        **CALM_LEASE,
        "report_port": port,
        "report_host": "127.0.0.1",
        "report_url": f"http://127.0.0.1:{port}/reports",
        "patience_seconds": "1",
    }


@pytest.fixture(scope="module")
def site(control_plane: Running, settings: dict[str, str]) -> Iterator[Site]:
    with site_on(control_plane, settings) as made:
        yield made


def running(tenant: Tenant, job: str, count: int = 1) -> list[Json]:
    """Until so many pods of a job run."""

    def found() -> list[Json]:
        pods = [p for p in tenant.pods(job) if p["status"].get("phase") == "Running"]
        return pods if len(pods) == count else []

    pods: list[Json] = until(found, lambda: f"{job} runs: {json.dumps(tenant.status(job))}")
    return sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))


def url(pod: Json) -> str:
    """What its program finds in GPUJOB_CHECKPOINT_URL."""
    found: str = pod["metadata"]["annotations"][CHECKPOINT_URL]
    return found


def say(tenant: Tenant, pod: Json, where: str = "") -> tuple[int, Json]:
    """What its program does that has saved, and what it is answered."""
    return post(where or url(pod), b"", pod_tokens.projected(tenant.admin, pod))


def saved(tenant: Tenant, pod: Json) -> str:
    path = f"/api/v1/namespaces/{tenant.name}/pods/{pod['metadata']['name']}"
    annotations: Json = tenant.admin.get(path).body["metadata"]["annotations"]
    return str(annotations.get(CHECKPOINTED, ""))


def mount(pod: Json) -> Json:
    (found,) = [m for m in pod["spec"]["containers"][0]["volumeMounts"] if "subPathExpr" in m]
    return dict(found)


def test_each_index_has_a_folder_which_stays_its_own_when_it_is_tried_again(team: Team) -> None:
    tenant = team(quota=4)
    fails = template({"kwok.x-k8s.io/run-seconds": "2", "kwok.x-k8s.io/exit-code": "1"})
    tenant.submit("tries", gpu=1, retries=5, checkpoint=FOLDER, template=fails)
    (first,) = running(tenant, "tries")
    until(
        lambda: {p["metadata"]["uid"] for p in tenant.pods("tries")} - {first["metadata"]["uid"]},
        "it is tried again",
        60,
    )
    mounts = [mount(pod) for pod in tenant.pods("tries")]
    assert len(mounts) > 1
    folder = f"{tenant.name}/tries/$(GPUJOB_INDEX)"
    assert {(each["mountPath"], each["subPathExpr"]) for each in mounts} == {
        ("/checkpoint", folder)
    }


def test_a_program_says_that_it_has_saved_and_its_pod_bears_the_time(team: Team) -> None:
    tenant = team(quota=4)
    tenant.submit("work", gpu=1, parallelism=2, checkpoint=FOLDER, template=template())
    one, other = running(tenant, "work", 2)
    before = datetime.now(UTC)
    status, answer = say(tenant, one)
    assert status == 200, answer
    assert before <= datetime.fromisoformat(answer["checkpointedAt"]) <= datetime.now(UTC)
    assert saved(tenant, one) == answer["checkpointedAt"]
    assert saved(tenant, other) == "", "nobody speaks for it"


def test_every_report_of_a_checkpoint_has_its_answer(team: Team, site: Site) -> None:
    tenant = team(quota=4)
    tenant.submit("asked", gpu=1, parallelism=2, checkpoint=FOLDER, template=template())
    one, other = running(tenant, "asked", 2)
    base, uid = url(one).rsplit("/", 1)
    assert uid == one["metadata"]["uid"]
    token, theirs = (pod_tokens.projected(tenant.admin, pod) for pod in (one, other))
    answers: dict[str, tuple[str, bytes, str]] = {
        "something": (url(one), b'{"step": 3}', token),
        "of its own": (url(one), b"{}", token),
        "no token": (url(one), b"", ""),
        "no token at all": (url(one), b"", "0" * 32),
        "that of another pod": (url(other), b"", token),
        "an unknown pod": (f"{base}/no-such-uid", b"", token),
        "an address of before": (f"{url(one)}/{'0' * 32}", b"", ""),
        "a way around": (f"{base}/../checkpoints/{uid}/x/y", b"", token),
        "much too long": (url(other), b"x" * 100_000, theirs),
    }
    began = time.monotonic()
    got = {name: post(*request) for name, request in answers.items()}
    assert {name: status for name, (status, _) in got.items()} == {
        "something": 400,
        "of its own": 200,
        "no token": 401,
        "no token at all": 401,
        "that of another pod": 403,
        "an unknown pod": 410,
        "an address of before": 410,
        "a way around": 404,
        "much too long": 413,
    }
    until(lambda: post(url(one), b"", token)[0] == 429, "the next one comes too soon")
    with ThreadPoolExecutor(8) as threads:
        statuses = Counter(
            s for s, _ in threads.map(lambda _: post(url(one), b"", token), range(200))
        )
    may_write = (time.monotonic() - began) // EVERY_SECONDS  # on a busy machine
    assert statuses[200] <= may_write, "a flood writes nothing"
    assert statuses.total() == statuses[200] + statuses[429]
    logs = "".join(path.read_text() for path in site.running.folder.glob("replica*.log"))
    assert logs
    assert token not in logs


def test_who_saves_when_it_is_told_to_stop_has_lost_nothing(team: Team) -> None:
    tenant = team(quota=8)
    spec: Json = {"gpu": 2, "priority": 1, "retries": 0, "template": template(STAYS)}
    tenant.submit("low", parallelism=4, checkpoint=FOLDER, **spec)
    pods = running(tenant, "low", 4)
    assert {say(tenant, pod)[0] for pod in pods} == {200}
    until(lambda: seconds_of(pods[0]) > 2, "they have something to lose")
    tenant.submit("urgent", gpu=2, priority=90, template=template())
    pod = leaving(tenant, "low")
    token = pod_tokens.projected(tenant.admin, pod)
    status, answer = post(url(pod), b"", token)
    assert status == 200, answer
    assert saved(tenant, pod) == answer["checkpointedAt"]
    until(lambda: post(url(pod), b"", token)[0] == 429, "once more, and not as often as it likes")
    tenant.let_go("low")
    tenant.wait_placed("urgent", 1)
    until(lambda: pod["metadata"]["uid"] not in uids(tenant, "low"), "it has gone")
    found = until(lambda: (s := tenant.status("low")).get("evictions") and s, "its status says so")
    assert (found["evictions"], found["lostGPUSeconds"]) == (1, 0)
    assert post(url(pod), b"", token)[0] == 410


def test_who_does_not_save_loses_what_it_did_until_it_had_gone(team: Team) -> None:
    tenant = team(quota=8)
    spec: Json = {"gpu": 2, "priority": 1, "retries": 0, "template": template(STAYS)}
    tenant.submit("low", parallelism=4, **spec)
    pods = running(tenant, "low", 4)
    assert not any(CHECKPOINT_URL in pod["metadata"]["annotations"] for pod in pods)
    tenant.submit("urgent", gpu=2, priority=90, template=template())
    pod = leaving(tenant, "low")
    told_after = seconds_of(pod)
    until(lambda: seconds_of(pod) > told_after + 2, "it uses some of its grace period")
    ran = seconds_of(pod)
    tenant.let_go("low")
    tenant.wait_placed("urgent", 1)
    until(lambda: tenant.status("low").get("lostGPUSeconds"), "its loss is known")
    lost = tenant.status("low")["lostGPUSeconds"]
    # Its containers ended in a whole second, as its start is one: the second that runs is left out.
    assert 2 * int(ran) <= lost <= 2 * seconds_of(pod) + 2, "its grace period counts too"


def seconds_of(pod: Json) -> float:
    """How long a pod has run, or may have: since it was bound."""
    (bound,) = (c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    return (datetime.now(UTC) - datetime.fromisoformat(bound["lastTransitionTime"])).total_seconds()


def uids(tenant: Tenant, job: str) -> set[str]:
    return {str(pod["metadata"]["uid"]) for pod in tenant.pods(job)}


def leaving(tenant: Tenant, job: str) -> Json:
    """Until a pod of a job has to go; the pod."""
    pod: Json = until(
        lambda: next((p for p in tenant.pods(job) if p["metadata"].get("deletionTimestamp")), None),
        lambda: f"a pod of {job} has to go: {json.dumps(tenant.status(job))}",
    )
    return pod


def test_a_trial_reports_how_it_goes_and_that_it_has_saved(team: Team) -> None:
    tenant = team(quota=4)
    trials = [{"quality": 1}, {"quality": 2}]
    sweep = {
        "algorithm": "list",
        "objective": {"metric": "loss"},
        "trials": trials,
        "earlyStopping": {"type": "median"},
    }
    tenant.submit("search", gpu=1, sweep=sweep, checkpoint=FOLDER, template=template())
    (pod,) = running(tenant, "search")
    (job_uid,) = [tenant.job("search")["metadata"]["uid"]]
    assert mount(pod)["subPathExpr"] == f"{tenant.name}/search.{job_uid}/$(GPUJOB_INDEX)"
    assert say(tenant, pod)[0] == 200
    trial = pod["metadata"]["annotations"][REPORT_URL]
    report = json.dumps({"step": 1, "metrics": {"loss": 0.5}})
    token = pod_tokens.projected(tenant.admin, pod)
    assert post(trial, report, token) == (200, {"stop": False})


WRONG: dict[str, tuple[Json, Json, str]] = {
    "a volume that is not there": (
        {"volume": {"name": "work"}},
        {},
        "spec.checkpoint.volume.name: work is no volume of spec.template",
    ),
    "a volume that goes with its pod": (
        {"volume": {"name": "work"}},
        {"volumes": [{"name": "work", "emptyDir": {}}]},
        "spec.checkpoint.volume.name: work is a volume of spec.template that is gone with its pod",
    ),
    "a mount in the way": (
        FOLDER,
        {
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [
                {
                    "name": "main",
                    "image": "a",
                    "volumeMounts": [{"name": "data", "mountPath": "/checkpoint/"}],
                }
            ],
        },
        "spec.template.spec.containers[0].volumeMounts[0].mountPath: /checkpoint is where",
    ),
    "a name in the way": (
        CLAIM,
        {"volumes": [{"name": "gpu-scheduler-checkpoint", "emptyDir": {}}]},
        "spec.template.spec.volumes[0].name: gpu-scheduler-checkpoint is the volume of",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_api_server_cannot_see_is_said_in_the_status(team: Team, case: str) -> None:
    checkpoint, pod, says = WRONG[case]
    tenant = team(quota=4)
    tenant.submit("wrong", gpu=1, checkpoint=checkpoint, template=template(**pod))
    assert says in tenant.wait_reason("wrong", "Invalid")


def test_a_claim_that_is_not_there_is_waited_for_and_nothing_is_held(team: Team) -> None:
    """One that waits for its first consumer then takes the gate path."""
    tenant = team(quota=4)
    tenant.submit("waits", gpu=1, image="a", checkpoint=CLAIM)
    said = tenant.wait_reason("waits", "VolumeNotMounted")
    assert said.startswith(f"there is no PersistentVolumeClaim work of namespace {tenant.name}")
    assert tenant.pods("waits") == [] and held(tenant) == 0
    first = {"provisioner": "example.com/none", "volumeBindingMode": "WaitForFirstConsumer"}
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    assert tenant.admin.create(classes, {"metadata": {"name": tenant.name}, **first}).ok
    wanted = {
        "storageClassName": tenant.name,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    path = f"/api/v1/namespaces/{tenant.name}/persistentvolumeclaims"
    assert tenant.admin.create(path, {"metadata": {"name": "work"}, "spec": wanted}).ok
    pod = until(lambda: tenant.pods("waits"), "its pod is made")[0]
    assert pod["spec"]["schedulerName"] == "default-scheduler", "which knows about volumes"
    assert {"name": "gpu-scheduler-checkpoint", **CLAIM["volume"]} in pod["spec"]["volumes"]


def test_a_new_leader_knows_the_address_and_what_was_saved(
    site: Site, team: Team, settings: dict[str, str]
) -> None:
    tenant = team(quota=4)
    tenant.submit("survives", gpu=1, checkpoint=FOLDER, template=template())
    (pod,) = running(tenant, "survives")
    status, answer = say(tenant, pod)
    assert status == 200
    port = free_port()
    second = Replica(site.running, "second", {**settings, "report_port": str(port)}).start()
    try:
        there = url(pod).replace(f":{settings['report_port']}/", f":{port}/")
        until(lambda: _status(tenant, pod, there) == 503, "the stand-by says that it is one")
        site.replica.kill()
        site.replica.forget()
        until(lambda: _status(tenant, pod, there) == 200, "the new leader takes it")
        assert saved(tenant, pod) > answer["checkpointedAt"]
    finally:
        second.stop()
        site.replica.start().wait_leading()


def _status(tenant: Tenant, pod: Json, where: str) -> Any:
    try:
        return say(tenant, pod, where)[0]
    except OSError:
        return None  # it does not listen yet
