"""The release goes while pods that asked by themselves run and wait, and comes back."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.api.tenant import Json, Tenant, held
from tests.e2e.conftest import install_chart
from tests.e2e.gpu_jobs import container, devices_there, environment, template
from tests.e2e.metrics import end_term
from tests.e2e.share_workloads import (
    STATEFUL_SETS,
    Workload,
    asking,
    assert_capped,
    cap_mib,
    delete_pod,
    described,
    devices,
    make_pod,
    pod_named,
    serve,
    team,
    wait_phase,
)
from tests.e2e.waits import until

from cluster import Running
from demo.install import RELEASE
from gpu_scheduler.api.names import ALLOCATION, ASK_GPU, ASKED, GATE

NO_GPU = [{"name": "QUICKSTART_ALLOW_NO_GPU", "value": "1"}]  # may be so


@dataclass(frozen=True, slots=True)
class Left:
    """What the release left behind.

    Attributes:
        owner: its project may use two GPUs.
        web: two pods with half a GPU each run, a third waits.
        old: one pod with a GPU runs, a second waits.
        shard: the only pod of this StatefulSet waits.
        before: all pods as they were while the release was there, and ``notebook``, which nobody
            would make again and which waits behind the gate for half a GPU.
    """

    owner: Tenant
    web: Workload
    old: Workload
    shard: Workload
    before: list[Json]

    def in_phase(self, phase: str) -> list[Json]:
        """Those that were in this phase."""
        return [pod for pod in self.before if pod["status"]["phase"] == phase]

    def same(self, pod: Json) -> Json:
        """A pod as it is now; it must be the same one."""
        found = pod_named(self.owner, pod["metadata"]["name"])
        assert found, f"{pod['metadata']['name']} is gone"
        assert found["metadata"]["uid"] == pod["metadata"]["uid"]
        assert "deletionTimestamp" not in found["metadata"]
        return found


@pytest.fixture(scope="module")
def left(operated: Running) -> Iterator[Left]:
    """The release was uninstalled while pods ran and waited; it is there again afterwards."""
    with team(operated, quota=2, limit=2) as owner:
        web = serve(owner, "web", 2, asking("0.5"))
        web.wait_running(2)
        old = serve(owner, "old", 1, either("1"))
        old.wait_running(1)
        web.change(replicas=3)
        old.change(replicas=2)
        make_pod(owner, "notebook", asking("0.5"))
        shard = Workload(owner, "shard", STATEFUL_SETS)
        shard.create(either("1"), replicas=1, serviceName="shard")

        def told() -> list[Json]:
            pods = [pod for pod in owner.pods() if pod["status"].get("phase") == "Pending"]
            return [pod for pod in pods if "WaitingForQuota" in described(operated, pod)]

        until(lambda: len(told()) == 4, lambda: f"four wait: {json.dumps(owner.pods())}")
        before = owner.pods()
        try:
            operated.helm("uninstall", RELEASE, "-n", RELEASE)
            until(lambda: not _released(owner), lambda: f"it is gone: {_released(owner)}")
            end_term(operated)
            yield Left(owner, web, old, shard, before)
        finally:
            install_chart(operated)


def either(gpu: str) -> Json:
    """A pod template that asks, of a program that runs without a GPU as well."""
    return asking(gpu, template(container(env=NO_GPU)))


def assert_plain(cluster: Running, pod: Json) -> None:
    """It runs as if there had never been a release."""
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert devices_there(cluster, pod) == (set(), set())
    assert "NVIDIA_VISIBLE_DEVICES" not in environment(cluster, pod)


def _released(owner: Tenant) -> list[str]:
    """Names of the pods of operator and agent."""
    found = owner.admin.get(f"/api/v1/namespaces/{RELEASE}/pods").body["items"]
    return [pod["metadata"]["name"] for pod in found]


def _containers(pod: Json) -> dict[str, tuple[str, int]]:
    """Id and restarts of each container."""
    statuses = (*pod["status"]["initContainerStatuses"], *pod["status"]["containerStatuses"])
    return {each["name"]: (each["containerID"], each["restartCount"]) for each in statuses}


def test_pods_that_run_are_not_touched_and_keep_their_caps(operated: Running, left: Left) -> None:
    running = left.in_phase("Running")
    assert len(running) == 3
    for pod in running:
        (allocated,) = devices(pod)
        assert _containers(left.same(pod)) == _containers(pod)
        assert devices_there(operated, pod) == ({allocated.device}, {allocated.device})
    for pod in running:
        if pod["metadata"]["labels"]["app"] == "web":
            assert_capped(operated, pod, devices(pod)[0].device, cap_mib(500))
    for pod in running:
        assert _containers(left.same(pod)) == _containers(pod), "nor by what was tried in it"


def test_pods_that_wait_go_on_waiting_and_still_say_why(operated: Running, left: Left) -> None:
    waiting = left.in_phase("Pending")
    assert len(waiting) == 4
    for pod in waiting:
        now = left.same(pod)
        assert now["status"]["phase"] == "Pending" and "nodeName" not in now["spec"]
        assert "WaitingForQuota" in described(operated, now)
    (gated,) = [pod for pod in waiting if pod["metadata"]["name"] == "notebook"]
    assert left.same(gated)["spec"]["schedulingGates"] == [{"name": GATE}]


def test_a_pod_that_is_made_meanwhile_runs_without_a_gpu(operated: Running, left: Left) -> None:
    make_pod(left.owner, "meanwhile", either("0.5"))
    pod = wait_phase(left.owner, "meanwhile", "Running")
    assert ASKED not in pod["metadata"].get("annotations", {})
    assert_plain(operated, pod)


def test_without_the_label_the_controller_makes_pods_that_run_without_a_gpu(
    operated: Running, left: Left
) -> None:
    before = {pod["metadata"]["uid"] for pod in left.old.pods()}
    left.old.change(template={"metadata": {"labels": {ASK_GPU: None}}})
    until(
        lambda: (
            len(left.old.running()) == 2
            and not before & {pod["metadata"]["uid"] for pod in left.old.pods()}
        ),
        lambda: f"both were replaced: {json.dumps(left.old.pods())}",
    )
    for pod in left.old.running():
        assert_plain(operated, pod)


def test_a_stateful_set_does_the_same_once_its_waiting_pod_is_deleted(
    operated: Running, left: Left
) -> None:
    left.shard.change(template={"metadata": {"labels": {ASK_GPU: None}}})
    (waiting,) = left.shard.pods()
    delete_pod(left.owner, waiting["metadata"]["name"])
    # Its controller may make one more of the old template, if it hears of the deletion first.
    (pod,) = until(
        lambda: [p for p in left.shard.running() if ASK_GPU not in p["metadata"]["labels"]],
        lambda: f"one of the new template runs: {json.dumps(left.shard.pods())}",
    )
    assert_plain(operated, pod)


def test_the_next_release_takes_over_who_runs_and_places_who_waits(
    operated: Running, left: Left
) -> None:
    install_chart(operated)
    pods = left.web.wait_running(3)
    notebook = wait_phase(left.owner, "notebook", "Running")
    until(lambda: held(left.owner) == 2, "the project pays for all of them")
    for pod in left.before:
        if pod["metadata"]["labels"].get("app") not in ("old", "shard"):
            now = left.same(pod)
            if pod["status"]["phase"] == "Running":
                assert _containers(now) == _containers(pod)
    plain = pod_named(left.owner, "meanwhile")
    assert ALLOCATION not in plain["metadata"].get("annotations", {}), "it stays what it is"
    on = [allocated.device for pod in (*pods, notebook) for allocated in devices(pod)]
    assert sorted(map(on.count, set(on))) == [2, 2], "two halves on each device"
    for pod in (*pods, notebook):
        assert_capped(operated, pod, devices(pod)[0].device, cap_mib(500))
