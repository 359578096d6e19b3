"""How libgpucap gets into GPU containers: one emptyDir, one init container, three mounts each.

The init container copies the library from the operator's image (docs/adr/0016 has the paths). Its
CPU and memory are those of the first GPU container, word for word: the pod's effective requests,
its QoS class and what a ResourceQuota or LimitRange makes of it stay as they were, and where
nothing is asked for nothing throttles it. It runs as the pod's user, or the image's, never as root,
so the restricted Pod Security level accepts it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.names import (
    CAP_CONTAINER,
    CAP_LIBRARY_PATH,
    CAP_PRELOAD_PATH,
    CAP_STATE_PATH,
    CAP_VOLUME,
    VISIBLE_DEVICES,
    VOID,
)

# A tuple: what a template has in the place of a path may be a list, which no set can be asked for.
MOUNT_PATHS = (CAP_LIBRARY_PATH, CAP_PRELOAD_PATH, CAP_STATE_PATH)

_INSTALLER = "/opt/gpucap/gpucap-install"  # in the image
_TARGET = "/cap"
_USER = 65532  # of the operator's image; any other than root would do
_INIT_FIELD = re.compile(r"initContainers\[(\d+)\]")
_MIRRORED = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class CapImage:
    """The image that has libgpucap. An empty ``pull_policy`` leaves it to the cluster."""

    name: str
    pull_policy: str = ""


def volume() -> dict[str, Any]:
    """What init container and GPU containers share."""
    return {"name": CAP_VOLUME, "emptyDir": {}}


def mounts(slot: int) -> list[dict[str, Any]]:
    """Mounts of a GPU container; ``slot`` counts the GPU containers of the pod from 0.

    The installer makes 16 state folders, as many as a GPUJob can have GPU containers: their
    numbers in the pod can be higher.
    """
    return [
        _mount(CAP_LIBRARY_PATH, "lib", read_only=True),
        _mount(CAP_PRELOAD_PATH, "ld.so.preload", read_only=True),
        _mount(CAP_STATE_PATH, f"c{slot}", read_only=False),
    ]


def init_container(
    image: CapImage, pod_spec: Mapping[str, Any], gpu_container: Mapping[str, Any]
) -> dict[str, Any]:
    """The init container that fills the volume.

    Args:
        image: where the library is.
        pod_spec: of the pod; the user that it sets applies here too, unless that is root.
        gpu_container: the container whose CPU and memory it may use before that starts.
    """
    container: dict[str, Any] = {
        "name": CAP_CONTAINER,
        "image": image.name,
        "command": [_INSTALLER, _TARGET],
        "env": [{"name": VISIBLE_DEVICES, "value": VOID}],
        "securityContext": _security(pod_spec),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": CAP_VOLUME, "mountPath": _TARGET}],
    }
    if image.pull_policy:
        container["imagePullPolicy"] = image.pull_policy
    if resources := _mirrored(gpu_container.get("resources") or {}):
        container["resources"] = resources
    return container


def users_field(field: str) -> str:
    """A path below a pod's ``spec`` as it was before ``init_container`` came first.

    For what the API server says about a rendered pod, to whoever wrote the template.
    """
    found = _INIT_FIELD.match(field)
    if found is None or found[1] == "0":
        return field
    return f"initContainers[{int(found[1]) - 1}]{field[found.end() :]}"


def _mount(path: str, sub_path: str, *, read_only: bool) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": CAP_VOLUME, "mountPath": path, "subPath": sub_path}
    return mount | {"readOnly": True} if read_only else mount


def _security(pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    context: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    of_pod = pod_spec.get("securityContext")
    # Otherwise it is left open: clusters that give each namespace its range of users choose one.
    if isinstance(of_pod, Mapping) and of_pod.get("runAsUser") == 0:
        context["runAsUser"] = _USER
    return context


def _mirrored(resources: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        kind: {name: amounts[name] for name in _MIRRORED if name in amounts}
        for kind in ("requests", "limits")
        if (amounts := resources.get(kind) or {})
    }
    return {kind: amounts for kind, amounts in found.items() if amounts}
