"""Conditions, as everywhere in Kubernetes: one entry per type, the latest observation.

``observedGeneration`` says which version of the spec was judged, so ``kubectl wait`` and people
can tell a stale answer from a current one. Written by the status writer alone.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gpu_scheduler.api.model import ApiModel, by_key
from gpu_scheduler.core.model.wording import clip

StatusBody = Mapping[str, Any]

_MOST_CHARS = 4096


def _cut(text: object) -> object:
    return clip(text, _MOST_CHARS) if isinstance(text, str) else text


Sentence = Annotated[str, BeforeValidator(_cut), Field(max_length=_MOST_CHARS)]
"""A message for people; one that the API server would refuse for its length is cut."""


class ConditionType(StrEnum):
    """Types of conditions on our objects; what each means: ``CONDITIONS``."""

    ACCEPTED = "Accepted"
    PLACED = "Placed"
    COMPLETE = "Complete"
    FAILED = "Failed"
    PROTECTED = "Protected"
    DEVICES_HEALTHY = "DevicesHealthy"
    OWNED = "Owned"
    CANNOT_START = "CannotStart"
    IN_DOUBT = "InDoubt"
    SET_ASIDE = "SetAside"
    QUOTA_COVERED = "QuotaCovered"
    NAMESPACES_EXIST = "NamespacesExist"
    MATCHES = "Matches"
    ADVICE = "Advice"


CONDITIONS: Mapping[ConditionType, tuple[str, str]] = {
    ConditionType.ACCEPTED: (
        "GPUJob, GPUProject, GPUClass",
        "the spec is valid; of a GPUJob also: its namespace belongs to a project",
    ),
    ConditionType.PLACED: ("GPUJob", "at least one pod holds its GPUs"),
    ConditionType.COMPLETE: ("GPUJob", "every index succeeded; of a sweep: it has succeeded"),
    ConditionType.FAILED: (
        "GPUJob",
        "an index used up its retries, the time limit passed, or a sweep has failed",
    ),
    ConditionType.PROTECTED: (
        "GPUJob, a pod that has none",
        "memory caps are enforced and kept, as the agents see it",
    ),
    ConditionType.DEVICES_HEALTHY: (
        "GPUJob, a pod that has none",
        "no pod holds a device that is not healthy",
    ),
    ConditionType.OWNED: (
        "a pod that has lost its GPUJob",
        "it is False alone: no GPUJob owns the pod, which goes on holding GPUs",
    ),
    ConditionType.CANNOT_START: (
        "GPUJob",
        "a pod has its GPUs, and a container, a volume or its sandbox fails",
    ),
    ConditionType.IN_DOUBT: (
        "GPUJob",
        "its last pods could not start for a reason of its own: nobody gives way to it until one "
        "of them has started",
    ),
    ConditionType.SET_ASIDE: (
        "GPUJob, GPUProject",
        "the planner could not work with the object, and left it out: a defect of ours",
    ),
    ConditionType.QUOTA_COVERED: (
        "GPUProject",
        "the GPUs of the cluster suffice for what it asks for inside its quota",
    ),
    ConditionType.NAMESPACES_EXIST: (
        "GPUProject",
        "there is each namespace that it names and owns",
    ),
    ConditionType.MATCHES: ("GPUClass", "the cluster has GPUs of the class"),
    ConditionType.ADVICE: (
        "a pod that asks by itself",
        "it is True alone: something about what made the pod should be changed; the reason is the "
        "rule of docs/advice.md",
    ),
}
"""Who has a condition, and what is so while it is True."""


class StatusCondition(ApiModel):
    """One aspect of an object's state."""

    type: str = Field(max_length=64, description="Aspect that this condition reports.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    observed_generation: int | None = Field(
        None, description="metadata.generation that was judged."
    )
    last_transition_time: str = Field(
        description="When the status last changed.", json_schema_extra={"format": "date-time"}
    )
    reason: str = Field(max_length=128, description="Machine-readable reason, one word.")
    message: Sentence = Field("", description="Sentence for people.")


def condition(
    kind: str,
    holds: bool,
    reason: str,
    message: str,
    *,
    judged: tuple[int, str],
    before: StatusBody,
) -> StatusCondition:
    """A condition as it is now; it keeps its time while it holds, or while it does not.

    ``judged``: the generation that is judged, and when (RFC 3339). ``before``: the object's status,
    as JSON.
    """
    generation, now = judged
    status: Literal["True", "False"] = "True" if holds else "False"
    known = (c for c in before.get("conditions") or () if c.get("type") == kind)
    same = next((c for c in known if c.get("status") == status), None)
    since = str(same["lastTransitionTime"]) if same is not None else now
    return StatusCondition(
        type=kind,
        status=status,
        observed_generation=generation,
        last_transition_time=since,
        reason=reason,
        message=message,
    )


Conditions = Annotated[
    list[StatusCondition], Field(max_length=16, json_schema_extra=by_key("type"))
]
