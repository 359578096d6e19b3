"""What a GPUJob did with its GPUs, as its status keeps it after its end: ``status.usage``."""

from pydantic import Field

from gpu_scheduler.api.model import ApiModel

TENTHS = 10
MOST_ROLES, MOST_ROLE_CHARS = 16, 63


class RoleUsage(ApiModel):
    """Sums over the pods of one role."""

    name: str = Field(max_length=MOST_ROLE_CHARS, description="Of the role.")
    gpu_seconds: int = Field(ge=0, description="GPUs × seconds that its pods held.")
    used_gpu_seconds: int | None = Field(
        None, ge=0, description="Of these used; absent: the driver cannot tell."
    )
    mean_percent: int | None = Field(
        None, ge=0, le=100, description="Share of time with a kernel of it."
    )
    peak_mib: int | None = Field(
        None, ge=0, description="Most memory that one container held on one GPU, MiB."
    )


class JobUsage(ApiModel):
    """Sums over all its pods, as the agents of their nodes told them; unknown time is in none."""

    gpu_seconds: int = Field(ge=0, description="Shares × seconds in which its pods held GPUs.")
    used_gpu_seconds: int | None = Field(
        None,
        ge=0,
        description="Of these used: time with a kernel of it, at most the share; absent: the "
        "driver cannot tell.",
    )
    idle_gpu_seconds: int | None = Field(None, ge=0, description="Of these without any kernel.")
    mean_percent: int | None = Field(
        None, ge=0, le=100, description="Share of time with a kernel of it."
    )
    p50_percent: int | None = Field(
        None, ge=0, le=100, description="Half of the time it was at most this."
    )
    p95_percent: int | None = Field(
        None, ge=0, le=100, description="For 95 % of the time it was at most this."
    )
    seconds_by_tenth: list[int] | None = Field(
        None,
        max_length=TENTHS,
        description="Seconds of its pods in which they were busy for less than 10 % of the time, "
        "less than 20 %, and so on.",
    )
    peak_mib: int | None = Field(
        None, ge=0, description="Most memory that one container held on one GPU, MiB."
    )
    cap_mib: int | None = Field(None, ge=0, description="What that container might hold, MiB.")
    roles: list[RoleUsage] | None = Field(
        None,
        max_length=MOST_ROLES,
        description="The same by role, in the order of their names; absent: it has none.",
    )
