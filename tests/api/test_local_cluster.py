"""The local cluster itself: side by side, after a crash, and gone without a trace."""

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import Running, Settings, connect, down, fake_nodes, up
from cluster.process import is_alive, marked_with

CLUSTERS = Path(__file__).parents[1] / "fixtures" / "clusters"
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


@pytest.fixture
def name() -> Iterator[str]:
    chosen = f"test-{uuid.uuid4().hex[:8]}"
    yield chosen
    down(chosen)


def node_names(running: Running) -> list[str]:
    return running.kubectl("get", "nodes", "-o", "name").stdout.split()


def test_two_clusters_run_side_by_side(control_plane: Running, name: str) -> None:
    other = up(Settings(name=name, nodes=(CLUSTERS / "dell-selfhosted.yaml",)))
    assert "node/r750-0" in node_names(other)
    assert "node/r750-0" not in node_names(control_plane)
    assert len(node_names(control_plane)) == 4


def test_a_running_cluster_is_used_again(control_plane: Running) -> None:
    before = control_plane.processes
    again = up(Settings(name=control_plane.name, nodes=(CLUSTERS / "dell-saas.yaml",)))
    assert again.processes == before


def test_up_works_after_everything_was_killed(name: str) -> None:
    first = up(Settings(name=name))
    killed = first.processes
    for process in killed.values():
        os.kill(process.pid, signal.SIGKILL)
    second = up(Settings(name=name))
    assert second.is_healthy()
    assert not set(killed.values()) & set(second.processes.values())


def test_up_works_after_a_start_that_was_cut_off(name: str) -> None:
    """A starter that is killed may leave programs that no file tells of."""
    running = up(Settings(name=name))
    (running.folder / "state.json").unlink()
    orphans = marked_with(running.folder)
    assert len(orphans) == 5
    assert up(Settings(name=name)).is_healthy()
    assert not any(is_alive(process) for process in orphans)


def test_down_leaves_no_process_and_no_folder(name: str) -> None:
    running = up(Settings(name=name))
    running.add_nodes(fake_nodes(3))
    processes = running.processes.values()
    running.stop()
    assert not any(is_alive(process) for process in processes)
    assert not marked_with(running.folder)
    assert not running.folder.exists()
    assert connect(name) is None


def test_the_api_server_can_go_and_come_back(name: str) -> None:
    running = up(Settings(name=name, nodes=(CLUSTERS / "dell-saas.yaml",)))
    running.stop_process("kube-apiserver")
    assert not running.is_healthy()
    running.start_process("kube-apiserver")
    running.wait_ready()
    assert running.is_healthy()
    assert len(node_names(running)) == 4


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
