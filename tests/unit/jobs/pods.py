"""Builders of pods as the API server returns them."""

from typing import Any

import msgspec

from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.kube.objects import Pod

HALF = (DeviceAllocation(0, "GPU-a", 500, 20224),)


def make_pod(
    spec: dict[str, Any] | None = None,
    *,
    gates: tuple[str, ...] = (),
    status: dict[str, Any] | None = None,
    **meta: Any,
) -> Pod:
    """A pod decoded from JSON, by default on the bind path and waiting."""
    body = {
        "metadata": {
            "name": "frac05-0-x",
            "namespace": "team-a",
            "uid": "uid-1",
            "resourceVersion": "42",
            "annotations": {"gpu-scheduler.io/c0-devices": "void"},
            **meta,
        },
        "spec": {
            "schedulerName": "default-scheduler" if gates else "gpu-scheduler",
            "schedulingGates": [{"name": gate} for gate in gates],
            **(spec or {}),
        },
        "status": {"phase": "Pending", **(status or {})},
    }
    return msgspec.convert(body, Pod)


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """A pod spec with these required node selector terms."""
    selector = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    }
