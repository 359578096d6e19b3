"""The agent's settings: one home, read from ``GPUSCHED_AGENT_*`` environment variables.

The chart's ``agent`` values carry the same defaults. A value that cannot be used ends the start
with a sentence that names the variable.
"""

import os
import socket
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from gpu_scheduler import environment

PREFIX = "GPUSCHED_AGENT_"


def _parts(value: Any) -> Any:
    return (
        [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, str)
        else value
    )


Names = Annotated[tuple[str, ...], BeforeValidator(_parts)]
Numbers = Annotated[tuple[int, ...], BeforeValidator(_parts)]

# Host processes that use a GPU on the driver's behalf; names as in /proc/<pid>/comm (15 letters).
DAEMONS = (
    "nvidia-persiste",
    "nvidia-cuda-mps",
    "nv-hostengine",
    "dcgm-exporter",
    "nvidia-smi",
    "nv-fabricmanage",
    "Xorg",
)


class AgentSettings(BaseModel):
    """Everything that can be set. Field ``sample_seconds`` is ``GPUSCHED_AGENT_SAMPLE_SECONDS``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: str = Field(min_length=1, description="Name of this node; the chart sets it.")
    namespace: str = Field("gpu-scheduler", description="Namespace of the heartbeat's Lease.")
    pod_uid: str = Field("", description="UID of the agent's own pod.")
    sample_seconds: float = Field(3.0, ge=0.2, le=10, description="Between looks at the GPUs.")
    answer_seconds: float = Field(
        5.0, ge=0.5, description="A look that takes longer makes the devices unhealthy."
    )
    lease_seconds: float = Field(40.0, ge=1, description="Life of the heartbeat's Lease.")
    renew_seconds: float = Field(10.0, ge=0.2, description="Between heartbeats.")
    over_cap_samples: int = Field(3, ge=1, description="Looks above the cap before it counts.")
    tolerance_mib: int = Field(
        512, ge=0, description="Allowed above the cap, per process on the GPU (contexts), MiB."
    )
    unified_memory_mib: int = Field(
        0, ge=0, description="Memory of devices that share the machine's, MiB; 0 = not used."
    )
    ignored_xids: Numbers = Field((), description="XIDs that make no device unhealthy.")
    daemons: Names = Field(DAEMONS, description="Commands that may use a GPU beside us.")
    kernel_limits: bool = Field(False, description="Let the driver enforce caps where it can.")
    cgroup_root: str = Field("/sys/fs/cgroup", description="The node's cgroups, for the driver.")
    history_folder: str = Field(
        "", description="Folder on the node for the history of its GPUs; empty = none is kept."
    )
    history_megabytes: int = Field(64, ge=1, le=4096, description="Size of the history, MB.")
    orders_file: str = Field(
        "/run/gpu-scheduler-orders/orders", description="What the operator says of this node."
    )
    verdict_file: str = Field(
        "/run/gpu-scheduler/self-test.json", description="What the self-test at start left."
    )
    admin_port: int = Field(8081, ge=0, le=65535, description="Health and metrics; 0 = off.")
    admin_host: str = Field("0.0.0.0", description="Address that the admin port listens on.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severity of the lines in the log."
    )


def load(environ: Mapping[str, str] = os.environ) -> AgentSettings:
    """Settings from the environment.

    Raises:
        SettingsError: an unknown variable with our prefix, or a value that cannot be used.
    """
    settings = environment.read(AgentSettings, PREFIX, environ, node=socket.gethostname())
    if settings.renew_seconds * 2 > settings.lease_seconds:
        raise environment.SettingsError(
            f"{PREFIX}RENEW_SECONDS: {settings.renew_seconds:g} must be at most half of "
            f"{PREFIX}LEASE_SECONDS ({settings.lease_seconds:g})"
        )
    return settings
