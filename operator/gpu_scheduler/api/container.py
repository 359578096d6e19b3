"""The parts of a container that a GPUJob's short form and its roles both know.

Field names and meanings are those of a pod's container, so that what people know carries over.
"""

from typing import Annotated, Any, TypeVar

from pydantic import Field, WithJsonSchema

from gpu_scheduler.api.model import (
    INT_OR_STRING,
    SET,
    ApiModel,
    ExactNumber,
    Quantity,
    by_key,
    rules,
)
from gpu_scheduler.api.pod_template import POD_TEMPLATE
from gpu_scheduler.api.rules import GPU, GPU_MEMORY, RESOURCE_AMOUNTS

PodTemplate = Annotated[dict[str, Any], WithJsonSchema(POD_TEMPLATE)]
"""A PodTemplateSpec as JSON. The API server checks it in full by a dry run, not the CRD."""

_MOST_GPUS = 1024  # of one pod
GPUCount = Annotated[
    ExactNumber,
    Field(le=_MOST_GPUS),
    WithJsonSchema({"type": "number", "maximum": _MOST_GPUS} | rules(*GPU)),
]
MemoryAmount = Annotated[Quantity, WithJsonSchema(INT_OR_STRING | rules(*GPU_MEMORY))]
DeviceCount = Annotated[int, Field(ge=1, le=64)]  # of one node
Models = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=63)]],
    Field(max_length=16, json_schema_extra=SET),
]
"""GPU models, any of which will do."""

PullPolicy = Annotated[str, Field(json_schema_extra={"enum": ["Always", "IfNotPresent", "Never"]})]

Amounts = Annotated[
    dict[str, Quantity], Field(max_length=32, json_schema_extra=rules(*RESOURCE_AMOUNTS))
]
"""How much of each resource, as in a pod."""

T = TypeVar("T")
Named = Annotated[list[T], Field(min_length=1, max_length=16, json_schema_extra=by_key("name"))]
"""Parts of a job that are told apart by their names."""


class EnvironmentVariable(ApiModel):
    """An environment variable, as in a pod."""

    name: str = Field(min_length=1, max_length=253, description="Name of the variable.")
    value: str | None = Field(None, description="Its value; $(OTHER) expands as in pods.")
    value_from: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})] | None = Field(
        None,
        description="Source of the value, as in a pod's env: secretKeyRef, fieldRef …",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )


class Resources(ApiModel):
    """CPU and memory of the container, as in a pod; GPUs are not asked for here."""

    requests: Amounts | None = Field(None, description="Guaranteed: cpu, memory …")
    limits: Amounts | None = Field(None, description="Upper bound: cpu, memory …")
