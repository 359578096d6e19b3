"""What is read of a cluster is what the operator watches, and what may not be read is told."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.paths import DEVICE_CLASSES, JOBS, NODES, PODS
from gpu_scheduler.simulate.cluster_read import read

Json = dict[str, Any]
GROUP = "/apis/gpu-scheduler.io/v1alpha1/"
THERE: Mapping[str, list[Json]] = {
    PODS: [],
    NODES: [{"metadata": {"name": "a", "managedFields": []}}],
    JOBS: [],
    **{f"{GROUP}{kind}": [] for kind in ("gpujobs", "gpuprojects", "gpunodes", "gpuclasses")},
    DEVICE_CLASSES: [{"metadata": {"name": "nic"}}],
}
GANG = {"metadata": {"namespace": "team-a", "name": "ring"}}
MEMBER = {
    "metadata": {"namespace": "team-a", "name": "x"},
    "spec": {"schedulingGroup": {"podGroupName": "ring"}},
}


class Server:
    """Collections by path; an error instead of one is raised."""

    def __init__(self, **_: object) -> None:
        self.there: dict[str, list[Json] | errors.ApiError] = dict(THERE)
        self.asked: list[str] = []

    def items(self, path: str, selector: str = "") -> Iterator[Json]:
        self.asked.append(path)
        found = self.there.get(path, errors.NotFound(404, "NotFound", "none"))
        if isinstance(found, errors.ApiError):
            raise found
        yield from found


def names(server: Any, kind: str) -> list[str]:
    return [each["metadata"]["name"] for each in read(server).of(kind)]


def test_device_classes_are_read_where_there_are_any_and_where_they_may_be() -> None:
    server = Server()
    assert (names(server, "DeviceClass"), names(server, "Node")) == (["nic"], ["a"])
    server.there[DEVICE_CLASSES] = errors.Forbidden(403, "Forbidden", "no")
    assert names(server, "DeviceClass") == []
    del server.there[DEVICE_CLASSES]
    assert names(server, "DeviceClass") == []


@pytest.mark.parametrize("version", ["v1", "v1alpha2"])
def test_podgroups_are_read_where_a_pod_names_one_in_the_version_that_is_served(
    version: str,
) -> None:
    server = Server()
    path = f"/apis/scheduling.k8s.io/{version}/podgroups"
    server.there[path] = [GANG]
    assert names(server, "PodGroup") == [] and path not in server.asked
    server.there[PODS] = [MEMBER]
    assert names(server, "PodGroup") == ["ring"]
    del server.there[path]
    assert names(server, "PodGroup") == []


@pytest.mark.parametrize("path", [PODS, NODES, "/apis/scheduling.k8s.io/v1/podgroups"])
def test_what_may_not_be_read_is_told(path: str) -> None:
    server: Any = Server()
    server.there[PODS] = [MEMBER]
    server.there[path] = errors.Forbidden(403, "Forbidden", "no")
    with pytest.raises(errors.Forbidden, match="the planner needs get and list on GPUJobs"):
        read(server)
