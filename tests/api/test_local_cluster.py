"""The local cluster itself: side by side, after a crash, and gone without a trace."""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator

import pytest
from tests.api.conftest import CLUSTERS, settings

from cluster import Running, Settings, connect, down, fake_nodes, up
from cluster.process import is_alive, marked_with

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  completions: 4
  parallelism: 2
  completionMode: Indexed
  backoffLimitPerIndex: 0
  template:
    metadata: {{annotations: {annotations}}}
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: none}}]
"""


@pytest.fixture(scope="module")
def name() -> Iterator[str]:
    chosen = f"test-{uuid.uuid4().hex[:8]}"
    yield chosen
    down(chosen)


def other_up(name: str) -> Running:
    return up(Settings(name=name, nodes=(CLUSTERS / "dell-selfhosted.yaml",), owner=os.getpid()))


@pytest.fixture
def other(name: str) -> Running:
    """A cluster besides the shared one, which a test may break: the next one gets it whole."""
    return other_up(name)


def node_names(running: Running) -> list[str]:
    return running.kubectl("get", "nodes", "-o", "name").stdout.split()


def test_two_clusters_run_side_by_side(control_plane: Running, other: Running) -> None:
    assert "node/r750-0" in node_names(other)
    assert "node/r750-0" not in node_names(control_plane)
    assert len(node_names(control_plane)) == 4


def test_a_running_cluster_is_used_again(other: Running, name: str) -> None:
    before = other.processes
    assert other_up(name).processes == before


def test_the_api_server_can_go_and_come_back(other: Running) -> None:
    other.stop_process("kube-apiserver")
    assert not other.is_healthy()
    other.start_process("kube-apiserver")
    other.wait_ready()
    assert other.is_healthy()
    assert len(node_names(other)) == 4


def test_up_works_after_everything_was_killed(other: Running, name: str) -> None:
    killed = set(other.processes.values())
    for process in killed:
        os.kill(process.pid, signal.SIGKILL)
    again = other_up(name)
    assert again.is_healthy()
    assert not killed & set(again.processes.values())


def test_up_works_after_a_start_that_was_cut_off(other: Running, name: str) -> None:
    """A starter that is killed may leave programs that no file tells of."""
    (other.folder / "state.json").unlink()
    orphans = marked_with(other.folder)
    assert len(orphans) == 5
    assert other_up(name).is_healthy()
    assert not any(is_alive(process) for process in orphans)


def test_down_leaves_no_process_and_no_folder(other: Running, name: str) -> None:
    other.add_nodes(fake_nodes(3))
    processes = other.processes.values()
    down(other.name)
    assert not any(is_alive(process) for process in processes)
    assert not marked_with(other.folder)
    assert not other.folder.exists()
    assert connect(name) is None


def test_up_takes_down_what_a_test_run_that_was_killed_left(
    control_plane: Running, name: str
) -> None:
    down(name)
    with subprocess.Popen(["sleep", "600"]) as run:
        left = up(Settings(name=name, owner=run.pid))
        processes = left.processes.values()
        run.kill()
    assert up(settings("api")).processes == control_plane.processes
    assert connect(name) is None
    assert not any(is_alive(process) for process in processes)


def test_a_job_completes_as_its_annotations_say(control_plane: Running, namespace: str) -> None:
    annotations = '{kwok.x-k8s.io/run-seconds: "0", kwok.x-k8s.io/termination-message: "loss=1"}'
    job = JOB.format(name="good", namespace=namespace, annotations=annotations)
    control_plane.kubectl("apply", "-f", "-", input=job)
    control_plane.kubectl(
        "wait", "--for=condition=Complete", "job/good", f"-n={namespace}", "--timeout=60s"
    )
    messages = control_plane.kubectl(
        "get", "pods", f"-n={namespace}", "-o",
        "jsonpath={.items[*].status.containerStatuses[*].state.terminated.message}",
    ).stdout  # fmt: skip
    assert messages.split() == ["loss=1"] * 4


def test_chosen_indexes_fail(control_plane: Running, namespace: str) -> None:
    annotations = '{kwok.x-k8s.io/run-seconds: "0", kwok.x-k8s.io/fail-indexes: "1,3"}'
    job = JOB.format(name="bad", namespace=namespace, annotations=annotations)
    control_plane.kubectl("apply", "-f", "-", input=job)
    control_plane.kubectl(
        "wait", "--for=condition=Failed", "job/bad", f"-n={namespace}", "--timeout=60s"
    )
    status = control_plane.kubectl(
        "get", "job/bad", f"-n={namespace}", "-o",
        "jsonpath={.status.completedIndexes} {.status.failedIndexes}",
    ).stdout  # fmt: skip
    assert status == "0,2 1,3"


def test_stock_roles_are_bound_to_the_users_of_their_names(control_plane: Running) -> None:
    def may(user: str, verb: str) -> bool:
        config = f"--kubeconfig={control_plane.kubeconfig_of(user)}"
        answer = control_plane.kubectl(config, "auth", "can-i", verb, "pods", check=False)
        return answer.stdout.strip() == "yes"

    assert (may("edit-user", "create"), may("view-user", "create")) == (True, False)
    assert may("view-user", "list")
