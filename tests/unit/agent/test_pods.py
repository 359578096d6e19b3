from typing import Any

import msgspec
import pytest
from tests.unit.agent.fake_driver import gpu

from gpu_scheduler.agent.pods import AgentPod, Pods, gpu_containers
from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.core.decision import Grant


def pod(**changes: Any) -> AgentPod:
    grants = [Grant(1, gpu(0), 500, 20224), Grant(1, gpu(1), 250, 10112)]
    body: dict[str, Any] = {
        "metadata": {
            "name": "train-0",
            "namespace": "team-a",
            "uid": "u1",
            "labels": {"gpu-scheduler.io/job": "train"},
            "annotations": annotations("n1", grants),
        },
        "spec": {
            "containers": [
                {"name": "sidecar"},
                {"name": "main", "volumeMounts": [{"name": "gpu-scheduler-cap"}]},
            ]
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "main", "containerID": "containerd://abc"},
                {"name": "sidecar", "containerID": "containerd://def"},
            ],
        },
    }
    for key, value in changes.items():
        body[key] = {**body.get(key, {}), **value}
    return msgspec.convert(body, AgentPod)


def test_a_container_is_known_by_its_grants_and_id() -> None:
    (found,) = gpu_containers(pod())
    assert (found.namespace, found.pod, found.job) == ("team-a", "train-0", "train")
    assert (found.index, found.name, found.container_id) == (1, "main", "abc")
    assert found.promised
    assert not found.ended


def test_the_cap_is_the_one_that_the_library_obeys() -> None:
    (found,) = gpu_containers(pod())
    assert found.caps_mib == {gpu(0): 10112, gpu(1): 10112}
    live = {**pod().metadata.annotations, "gpu-scheduler.io/c1-memory-mib": "5000"}
    (changed,) = gpu_containers(pod(metadata={"uid": "u1", "annotations": live}))
    assert changed.caps_mib == {gpu(0): 5000, gpu(1): 5000}


@pytest.mark.parametrize("text", ["", "-1", "many", "1e3", "²"])
def test_a_cap_that_is_no_number_leaves_the_granted_one(text: str) -> None:
    odd = {**pod().metadata.annotations, "gpu-scheduler.io/c1-memory-mib": text}
    (found,) = gpu_containers(pod(metadata={"annotations": odd}))
    assert found.caps_mib == {gpu(0): 20224, gpu(1): 10112}


def test_without_the_mount_nothing_is_promised() -> None:
    (found,) = gpu_containers(pod(spec={"containers": [{"name": "a"}, {"name": "main"}]}))
    assert not found.promised


@pytest.mark.parametrize("text", ["", "{}", "nonsense"])
def test_a_pod_without_a_readable_allocation_is_somebody_elses(text: str) -> None:
    foreign = pod(metadata={"annotations": {"gpu-scheduler.io/allocation": text}})
    assert gpu_containers(foreign) == ()


def test_a_container_index_that_the_pod_does_not_have_is_left_out() -> None:
    assert gpu_containers(pod(spec={"containers": [{"name": "only"}]})) == ()


def test_the_sink_tells_ours_from_others_and_forgets() -> None:
    news: list[int] = []
    pods = Pods(lambda: news.append(1))
    pods.changed(pod())
    other = {"containers": [{"name": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    pods.changed(pod(metadata={"uid": "u2", "annotations": {}}, spec=other))
    assert (list(pods.containers), list(pods.others), len(news)) == (["u1"], ["u2"], 1)
    assert pods.others["u2"].whole_gpus
    pods.gone("team-a", "train-0", "u1")
    pods.gone("team-a", "train-0", "u2")
    assert not pods.containers
    assert not pods.others


def test_a_pod_that_was_placed_later_moves_to_ours() -> None:
    pods = Pods()
    pods.changed(pod(metadata={"annotations": {}, "uid": "u1"}))
    assert list(pods.others) == ["u1"]
    pods.changed(pod())
    assert (list(pods.containers), list(pods.others)) == (["u1"], [])
