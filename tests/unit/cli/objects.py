"""Objects as the API server shows them, for tests of commands."""

from typing import Any

Json = dict[str, Any]
GROUP = "gpu-scheduler.io"


def pod(
    name: str,
    phase: str = "Running",
    *,
    index: int | None = None,
    role: str = "",
    trial: int | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: tuple[str, str] | None = None,
    conditions: list[Json] | None = None,
    **spec: Any,
) -> Json:
    tags = dict(labels or {})
    notes = dict(annotations or {})
    if index is not None:
        tags["batch.kubernetes.io/job-completion-index"] = str(index)
    if role:
        tags[f"{GROUP}/role"] = role
    if trial is not None:
        notes[f"{GROUP}/trial"] = str(trial)
    meta: Json = {
        "name": name,
        "namespace": "team-a",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": tags,
        "annotations": notes,
    }
    if owner is not None:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return {
        "metadata": meta,
        "spec": spec,
        "status": {"phase": phase, "conditions": conditions or []},
    }


def waits(reason: str, message: str = "") -> Json:
    return {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}


def asks(words: str) -> dict[str, str]:
    """Annotations of a pod that asks for a share by itself."""
    return {f"{GROUP}/asked": words}


def holds(node: str, **devices: list[int]) -> dict[str, str]:
    import json

    ledger = json.dumps({"v": 1, "n": node, "c": {"0": devices}})
    return {f"{GROUP}/allocation": ledger}


def job(name: str, phase: str = "Pending", reason: str = "", **spec: Any) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": name, "namespace": "team-a", "uid": f"uid-{name}"},
        "spec": {"image": "img", "gpu": 0.5, **spec},
        "status": {"phase": phase, "reason": reason},
    }
