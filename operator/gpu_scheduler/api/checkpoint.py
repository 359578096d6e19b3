"""``spec.checkpoint``: where the pods of a GPUJob save their work, so that they can go on from it.

A volume that outlives its pods, of which each index has a folder of its own. How it gets into the
pods is in ``jobs.checkpoint``; what is wrong with one, in ``checkpoint_rules``.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from gpu_scheduler.api import checkpoint_rules
from gpu_scheduler.api.model import ApiModel, rules

DEFAULT_PATH = "/checkpoint"

SourcePath = Annotated[
    str,
    Field(min_length=1, max_length=1024),
    WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": 1024} | rules(*checkpoint_rules.SOURCE)
    ),
]
MountPath = Annotated[
    str,
    Field(min_length=1, max_length=255),
    WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": 255} | rules(*checkpoint_rules.MOUNT)
    ),
]
ClaimName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": 253} | rules(*checkpoint_rules.CLAIM)
    ),
]


class HostPathType(StrEnum):
    """What has to be at a path of a node."""

    DIRECTORY_OR_CREATE = "DirectoryOrCreate"
    DIRECTORY = "Directory"


class ClaimSource(ApiModel):
    """A PersistentVolumeClaim."""

    claim_name: ClaimName = Field(description="Its name, in the namespace of the job.")


class NFSSource(ApiModel):
    """A folder of an NFS server."""

    server: str = Field(min_length=1, max_length=253, description="Host name or address.")
    path: SourcePath = Field(description="The folder that the server exports.")


class HostPathSource(ApiModel):
    """A folder of the node, for one node or for one that is mounted alike on all."""

    path: SourcePath = Field(description="The folder on the node.")
    type: HostPathType | None = Field(
        None,
        description="DirectoryOrCreate makes what is missing; Directory makes nothing.",
    )


class CheckpointVolume(ApiModel):
    """A volume that outlives its pods."""

    model_config = ConfigDict(json_schema_extra=rules(*checkpoint_rules.VOLUME))

    name: str | None = Field(
        None, min_length=1, max_length=63, description="A volume of the template."
    )
    persistent_volume_claim: ClaimSource | None = Field(
        None, description="A PersistentVolumeClaim of the namespace."
    )
    nfs: NFSSource | None = Field(None, description="A folder of an NFS server.")
    host_path: HostPathSource | None = Field(None, description="A folder of the node.")


class Checkpoint(ApiModel):
    """Where work is saved."""

    volume: CheckpointVolume = Field(description="Exactly one kind of volume.")
    mount_path: MountPath = Field(
        DEFAULT_PATH,
        description="Where each container finds the folder of its index; also in "
        "GPUJOB_CHECKPOINT_DIR.",
    )
