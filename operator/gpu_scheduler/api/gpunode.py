"""GPUNode: the GPUs of one node, as its agent found them.

Bears the node's name and is owned by the Node. Scheduling reads uuid, model, usableMiB,
computeCapability and healthy of the devices; the rest is for people. The CRD is generated from
these classes.
"""

from typing import Literal

from pydantic import Field

from gpu_scheduler.api.model import ApiModel


class Device(ApiModel):
    """One GPU."""

    uuid: str = Field(max_length=128, description="NVIDIA's identifier, GPU-…")
    index: int = Field(ge=0, description="Number on the node.")
    model: str = Field(max_length=128, description="Product name.")
    memory_mib: int = Field(ge=0, description="Memory in all, MiB.")
    usable_mib: int = Field(ge=0, description="Memory that programs can use, MiB.")
    compute_capability: str = Field(
        max_length=5, pattern=r"^[0-9]{1,2}\.[0-9]{1,2}$", description="CUDA compute capability."
    )
    healthy: bool = Field(True, description="false: takes no new pods.")


class GPUNodeStatus(ApiModel):
    """What the agent found."""

    driver_version: str | None = Field(None, max_length=64, description="NVIDIA driver.")
    isolation: Literal["kernel", "interposer", "framework", "none"] | None = Field(
        None, description="Best way to enforce memory caps that passed the self-test here."
    )
    gpus: int | None = Field(None, ge=0, description="Number of devices.")
    devices: list[Device] = Field(
        default_factory=list, max_length=64, description="GPUs, by index."
    )
