"""The owner reference that ties what is made for a GPUJob to its life."""

from typing import Any

from gpu_scheduler.api.names import API_VERSION


def owner_reference(name: str, uid: str) -> dict[str, Any]:
    """What is deleted with this GPUJob, and is its own."""
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
