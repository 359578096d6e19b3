"""Roles: parts of a GPUJob whose pods differ, such as a master, workers and parameter servers.

A role says how many pods it has and what differs from the job itself; what it leaves out is as the
job says. What the pods of a job are, with or without roles, is worked out in ``parts``.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from gpu_scheduler.api.container import (
    DeviceCount,
    EnvironmentVariable,
    GPUCount,
    MemoryAmount,
    Models,
    PullPolicy,
    Resources,
)
from gpu_scheduler.api.model import ApiModel, rules
from gpu_scheduler.api.pod_template import ROLE_TEMPLATE
from gpu_scheduler.api.rules import MAX_GANG_PODS, ROLE


class TopologyMode(StrEnum):
    """How much it matters that a gang stays together."""

    REQUIRED = "required"
    PREFERRED = "preferred"


class Framework(StrEnum):
    """Who is told about the other pods, through its own environment variables."""

    TORCH = "torch"
    TENSORFLOW = "tensorflow"


class TopologySpec(ApiModel):
    """All pods of a gang in one domain."""

    key: str = Field(
        min_length=1,
        max_length=317,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        description="Label of nodes whose value names the domain, for example "
        "topology.kubernetes.io/zone. Nodes without it are in no domain.",
    )
    mode: TopologyMode = Field(
        TopologyMode.REQUIRED,
        description="required: wait until one domain has room for all; preferred: rather than "
        "wait, spread over several.",
    )


class Role(ApiModel):
    """Pods of one kind. What is absent here is as the job itself says."""

    model_config = ConfigDict(json_schema_extra=rules(*ROLE))

    name: str = Field(
        min_length=1,
        max_length=40,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Name of the role, a part of its pods' host names: JOB-ROLE-INDEX.JOB.",
    )
    replicas: int = Field(1, ge=1, le=MAX_GANG_PODS, description="Pods of the role.")
    gpu: GPUCount | None = Field(
        None, description="GPUs of each pod, as in spec.gpu. Without gpu and gpuMemory: no GPU."
    )
    gpu_memory: MemoryAmount | None = Field(
        None, description="Device memory on one GPU instead of gpu, for example 20Gi."
    )
    gpu_devices: DeviceCount | None = Field(
        None, description="That share or memory on each of this many GPUs."
    )
    gpu_models: Models | None = Field(
        None,
        description="GPU models of this role, instead of the job's gpuModels.",
    )
    image: str | None = Field(
        None, min_length=1, max_length=1024, description="Image, instead of the job's."
    )
    image_pull_policy: PullPolicy | None = Field(
        None, description="When to pull the image: Always, IfNotPresent or Never."
    )
    command: list[str] | None = Field(
        None, max_length=256, description="Replaces the image's entrypoint, and the job's command."
    )
    args: list[str] | None = Field(
        None, max_length=1024, description="Arguments, instead of the job's."
    )
    env: list[EnvironmentVariable] | None = Field(
        None,
        max_length=512,
        description="Environment variables; one of the same name as one of the job's replaces it.",
    )
    working_dir: str | None = Field(
        None, max_length=4096, description="Working directory, instead of the job's."
    )
    resources: Resources | None = Field(
        None, description="CPU and memory, instead of the job's, as in a pod."
    )
    template: Annotated[dict[str, Any], WithJsonSchema(ROLE_TEMPLATE)] | None = Field(
        None,
        description="A whole pod template for this role, instead of the job's image or template.",
    )
