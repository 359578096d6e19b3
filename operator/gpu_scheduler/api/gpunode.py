"""GPUNode: the GPUs of one node, as its agent found them.

Bears the node's name and is owned by the Node. Scheduling reads uuid, model, usableMiB,
computeCapability and healthy of the devices; the rest is for people. The CRD is generated from
these classes.
"""

from typing import Literal

from pydantic import Field

from gpu_scheduler.api.model import ApiModel, ComputeCapability
from gpu_scheduler.core.model.units import MOST_MIB

Tier = Literal["kernel", "interposer", "framework", "none"]


class ForeignProcess(ApiModel):
    """A process on a GPU that belongs to no allocation."""

    pid: int = Field(ge=0, description="Process id on the node.")
    name: str = Field(max_length=64, description="Its command.")
    used_mib: int | None = Field(None, ge=0, description="Device memory, MiB; absent = unknown.")


class Device(ApiModel):
    """One GPU."""

    uuid: str = Field(max_length=128, description="NVIDIA's identifier, GPU-…")
    index: int = Field(ge=0, description="Number on the node.")
    model: str = Field(max_length=128, description="Product name.")
    memory_mib: int = Field(ge=0, le=MOST_MIB, description="Memory in all, MiB.")
    usable_mib: int = Field(
        ge=0, le=MOST_MIB, description="Memory that programs can use, MiB; 0 = not known."
    )
    compute_capability: ComputeCapability = Field(description="CUDA compute capability.")
    healthy: bool = Field(True, description="false: takes no new pods.")
    message: str | None = Field(
        None, max_length=512, description="Why it is not healthy: XID, ECC, lost."
    )
    context_mib: int | None = Field(
        None,
        ge=1,
        le=MOST_MIB,
        description="What a CUDA context takes, MiB, as measured here; absent = not yet.",
    )
    foreign_processes: list[ForeignProcess] | None = Field(
        None,
        max_length=16,
        description="Processes of nobody's allocation; while there are any, no new pods.",
    )


class ContainerReport(ApiModel):
    """One GPU container of ours on this node, as the agent sees it."""

    namespace: str = Field(max_length=63, description="Namespace of the pod.")
    pod: str = Field(max_length=253, description="Name of the pod.")
    uid: str = Field(max_length=36, description="UID of the pod.")
    container: int = Field(ge=0, description="Number of the container in the pod.")
    isolation: Literal["kernel", "interposer", "framework", "none", "unprotected"] = Field(
        description="What enforces its cap now; unprotected: the promised layer is not in place."
    )
    compute_percent: int | None = Field(
        None,
        ge=0,
        le=100,
        description="Share of time, in tens of percent, in which a kernel of it ran on its GPUs "
        "(the mean of them): the mean of five minutes, at first of one. Measured, not enforced; "
        "absent where the driver cannot tell.",
    )
    over_cap_since: str | None = Field(
        None, max_length=32, description="Above its cap since then; absent when it is not."
    )
    message: str | None = Field(
        None, max_length=512, description="What is wrong, with numbers; absent when all is well."
    )


class GPUNodeStatus(ApiModel):
    """What the agent found."""

    driver_version: str | None = Field(None, max_length=64, description="NVIDIA driver.")
    isolation: Tier | None = Field(
        None, description="Best way to enforce memory caps that passed the self-test here."
    )
    failed_isolation: list[Tier] | None = Field(
        None,
        max_length=4,
        description="Levels that did not hold in the self-test, where no better one did: pods that "
        "share a GPU behind one of them are not placed here. Passed again, a level counts after "
        "ten minutes.",
    )
    self_test: str | None = Field(
        None, max_length=1024, description="What the self-test saw, layer by layer."
    )
    gpus: int | None = Field(None, ge=0, description="Number of devices.")
    devices: list[Device] = Field(
        default_factory=list, max_length=64, description="GPUs, by index."
    )
    containers: list[ContainerReport] | None = Field(
        None,
        max_length=1024,
        description="GPU containers of GPUJobs that run here, and what enforces their caps.",
    )
