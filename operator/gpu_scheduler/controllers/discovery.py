"""What kopf finds when it looks for the kinds that it serves: ours, at any time.

Left to itself it watches all CustomResourceDefinitions of the cluster and asks once after each
change what is served; but an API server serves a kind some time after it has said so, and then kopf
never looks again. Whether a kind is there the watch of it says, which is tried until it is open.
"""

from typing import Any

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.runtime.informers.custom_resources import (
    GPUCLASSES,
    GPUJOBS,
    GPUNODES,
    GPUPROJECTS,
)

_KINDS = {
    GPUJOBS: "GPUJob",
    GPUPROJECTS: "GPUProject",
    GPUNODES: "GPUNode",
    GPUCLASSES: "GPUClass",
}


def _resource(plural: str, kind: str, namespaced: bool) -> dict[str, Any]:
    return {
        "name": plural,
        "singularName": kind.lower(),
        "kind": kind,
        "namespaced": namespaced,
        "verbs": ["get", "list", "watch"],
    }


_OURS = {"version": VERSION, "groupVersion": f"{GROUP}/{VERSION}"}

ANSWERS: dict[str, dict[str, Any]] = {
    "/api": {"versions": ["v1"]},
    # Without them it does not begin; it asks nothing of them.
    "/api/v1": {"resources": [_resource("namespaces", "Namespace", False)]},
    "/apis": {"groups": [{"name": GROUP, "versions": [_OURS], "preferredVersion": _OURS}]},
    f"/apis/{GROUP}/{VERSION}": {
        "resources": [_resource(each, kind, each == GPUJOBS) for each, kind in _KINDS.items()]
    },
}
"""By paths."""
