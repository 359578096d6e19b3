"""Numbers of a pod's containers, by which the ledger and our annotations name them.

Containers count from 0. An init container that runs as long as the pod does (restartPolicy Always,
a native sidecar) may hold GPUs as well: of these the first init container has number 64, the next
65, for a GPUJob's pod has at most 64 containers. In a template anything may stand at these places,
so what is malformed is passed over.
"""

from collections.abc import Iterator, Mapping
from typing import Any

FIRST_INIT = 64
# Why an init container that ends gets none.
ENDS = (
    "ends before the others start, and GPUs are held as long as the pod runs: give it "
    "restartPolicy Always (a sidecar), or do its work in a container"
)


def numbered(pod_spec: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Containers that may hold GPUs, with their numbers, of a pod spec without our own."""
    yield from _each(pod_spec.get("containers"), 0)
    for number, container in _each(pod_spec.get("initContainers"), FIRST_INIT):
        if container.get("restartPolicy") == "Always":
            yield number, container


def with_fields(
    pod_spec: Mapping[str, Any], path: str = "spec"
) -> Iterator[tuple[str, dict[str, Any]]]:
    """All containers of a pod spec in good form, each with its field; ``path``: of the spec."""
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(pod_spec.get(kind) or ()):
            yield f"{path}.{kind}[{index}]", container


def ending(pod_spec: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Init containers that end before the others start, with their index."""
    for index, container in _each(pod_spec.get("initContainers"), 0):
        if container.get("restartPolicy") != "Always":
            yield index, container


def passing(pod_spec: Mapping[str, Any]) -> frozenset[str]:
    """Names of the init containers that end before the others start."""
    return frozenset(str(container.get("name")) for _, container in ending(pod_spec))


def programs(pod_spec: Mapping[str, Any]) -> list[str]:
    """Names of all containers whose ends are the pod's: sidecars end when the pod does."""
    containers = (container for _, container in _each(pod_spec.get("containers"), 0))
    return [str(container.get("name")) for container in containers] + sorted(passing(pod_spec))


def _each(containers: object, first: int) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, container in enumerate(containers if isinstance(containers, list) else (), first):
        if isinstance(container, dict):
            yield number, container
