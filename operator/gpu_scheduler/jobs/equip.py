"""What makes a pod spec ours: variables, files, the library, the runtime class, who schedules it.

One set of functions for the pods of GPUJobs and for those that ask for a share by themselves; each
fills in a spec that is its caller's own copy. Every container that gets no GPU is told ``void``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_scheduler.api.names import (
    CAP_VOLUME,
    MOUNT_PATH,
    VOID,
    devices_annotation,
    files_volume,
)
from gpu_scheduler.api.numbering import numbered
from gpu_scheduler.api.pod_env import Env
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.jobs import cap
from gpu_scheduler.jobs.env import gpu_env, void_env
from gpu_scheduler.jobs.framework import framework_env
from gpu_scheduler.jobs.volume import downward_volume, mount

MoreEnvironment = Callable[[Sequence[Mapping[str, Any]] | None], Env]
"""What a container is told of its job, from its own variables."""


def void_annotations(requests: Sequence[DeviceRequest]) -> dict[str, str]:
    """The devices of a pod that has no place: none, so that one that is missing never means all."""
    return {devices_annotation(request.container): VOID for request in requests}


def fill_containers(
    pod_spec: dict[str, Any],
    requests: Sequence[DeviceRequest],
    *,
    capped: bool,
    told: MoreEnvironment = lambda theirs: [],
) -> None:
    """Variables of all containers; files of those that get GPUs. ``capped``: by libgpucap."""
    asked = {request.container: request for request in requests}
    numbers = {id(container): number for number, container in numbered(pod_spec)}
    for container in (*(pod_spec.get("initContainers") or ()), *pod_spec["containers"]):
        theirs = container.get("env")
        known = told(theirs)
        index = numbers.get(id(container), -1)
        if index not in asked:
            container["env"] = void_env(known, theirs)
            continue
        ours = framework_env(asked[index], theirs, capped=capped)
        container["env"] = gpu_env(index, known, ours, theirs)
        mounts = container.get("volumeMounts") or ()
        kept = [m for m in mounts if m.get("mountPath") != MOUNT_PATH]
        container["volumeMounts"] = [*kept, mount(index)]
    if not asked:
        return
    names = {files_volume(index) for index in asked}
    volumes = [v for v in pod_spec.get("volumes") or () if v.get("name") not in names]
    pod_spec["volumes"] = [*volumes, *(downward_volume(index) for index in asked)]


def deliver(
    pod_spec: dict[str, Any], requests: Sequence[DeviceRequest], image: cap.CapImage | None
) -> None:
    """Put libgpucap into the containers that get GPUs; ``image`` None: nowhere.

    Our init container comes first: what looks at the numbers of init containers comes before this.
    """
    if image is None or not requests:
        return
    containers = dict(numbered(pod_spec))
    for slot, request in enumerate(requests):
        container = containers[request.container]
        kept = [m for m in container["volumeMounts"] if m.get("mountPath") not in cap.MOUNT_PATHS]
        container["volumeMounts"] = [*kept, *cap.mounts(slot)]
    first = cap.init_container(image, pod_spec, containers[requests[0].container])
    pod_spec["initContainers"] = [first, *(pod_spec.get("initContainers") or ())]
    others = [v for v in pod_spec["volumes"] if v.get("name") != CAP_VOLUME]
    pod_spec["volumes"] = [*others, cap.volume()]


def run_by(pod_spec: dict[str, Any], runtime_class: str) -> None:
    """Have the pod run by this runtime, where it names none; empty: the cluster has none."""
    if runtime_class and not pod_spec.get("runtimeClassName"):
        pod_spec["runtimeClassName"] = runtime_class
