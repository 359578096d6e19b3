"""Variables of a pod template as JSON, and those that say which part of its job a pod is.

Their values come from annotations, so that one template serves all pods.
"""

from typing import Any

JOB_INDEX = "GPUJOB_INDEX"
JOB_COMPLETIONS = "GPUJOB_COMPLETIONS"

Env = list[dict[str, Any]]


def from_annotation(name: str, annotation: str) -> dict[str, Any]:
    """A variable with the value of an annotation of the pod."""
    field = {"fieldPath": f"metadata.annotations['{annotation}']"}
    return {"name": name, "valueFrom": {"fieldRef": field}}
