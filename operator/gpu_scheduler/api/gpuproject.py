"""GPUProject: who may use how many GPUs.

A namespace belongs to one project; the pods of its GPUJobs are charged to it and to nobody else.
Up to ``quota`` is guaranteed, above it a project borrows what others leave idle, never above
``limit``. Read by the state; the CRD is generated from these classes.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from gpu_scheduler.api.condition import Conditions
from gpu_scheduler.api.model import SET, ApiModel, ExactNumber, by_key, rules
from gpu_scheduler.api.rules import AMOUNT, GPU_PROJECT_SPEC
from gpu_scheduler.core.model.units import milli_from_gpu

START_TIMEOUT_SECONDS = 600
_MOST_GPUS = 1_000_000
Amount = Annotated[
    ExactNumber,
    Field(le=_MOST_GPUS),
    WithJsonSchema({"type": "number", "maximum": _MOST_GPUS} | rules(*AMOUNT)),
]
Namespace = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
]


class OverCapPolicy(StrEnum):
    """What happens to a container that is above its memory cap."""

    WARN = "warn"
    KILL = "kill"
    EVICT = "evict"


class GPUProjectSpec(ApiModel):
    """What the project is entitled to."""

    model_config = ConfigDict(json_schema_extra=rules(*GPU_PROJECT_SPEC))

    namespaces: list[Namespace] = Field(
        min_length=1,
        max_length=256,
        description="Namespaces whose GPUJobs are charged to this project; each belongs to one "
        "project only.",
        json_schema_extra=SET,
    )
    quota: Amount = Field(
        description="Guaranteed GPUs, at most three decimals, for example 2.5. Pods inside it "
        "are never taken back for other projects."
    )
    quota_by_model: dict[str, Amount] | None = Field(
        None, max_length=16, description="Guaranteed GPUs of a model, for example A100: 2."
    )
    limit: Amount | None = Field(
        None, description="Most GPUs held at once, borrowed ones included. Absent: no limit."
    )
    weight: int = Field(
        1,
        ge=0,
        le=1000,
        description="Share of what others leave idle; 0 = never above quota.",
    )
    over_cap_policy: OverCapPolicy | None = Field(
        None,
        description="What happens to a container that holds more device memory than its cap for "
        "three samples: warn (Event and condition), kill (its processes on the GPU), evict (the "
        "pod; no retry is charged). Absent: warn, and evict if it goes on for a minute.",
    )

    min_runtime_seconds: int | None = Field(
        None,
        ge=0,
        le=604800,
        description="A pod of the project that has run for less is not evicted for another "
        "project's fair share; for a quota, or a higher priority of its own project, it may be. "
        "Absent: scheduling.minRuntimeSeconds of the release.",
    )
    start_timeout_seconds: int = Field(
        START_TIMEOUT_SECONDS,
        ge=0,
        le=2**31 - 1,
        description="A pod that has its GPUs and whose containers have not started for so long "
        "gives them back and is tried again later; no retry is charged. 0 = never.",
    )

    @property
    def quota_milli(self) -> int:
        """Guaranteed milli-GPU."""
        return milli_from_gpu(self.quota)

    @property
    def limit_milli(self) -> int | None:
        """Most milli-GPU; None = no limit."""
        return None if self.limit is None else milli_from_gpu(self.limit)


class JobCounts(ApiModel):
    """GPUJobs of the project."""

    running: int = Field(default=0, description="GPUJobs with a pod that runs.")
    pending: int = Field(
        default=0,
        description="Jobs with pods that wait for a place, those that cannot "
        "start as they are included.",
    )


class ModelHoldings(ApiModel):
    """What the project holds of a model that its quotaByModel names."""

    model: str = Field(max_length=253, description="The model, as in quotaByModel.")
    quota_gpu: str = Field("0", description="Guaranteed GPUs of it.")
    allocated_gpu: str = Field("0", description="GPUs of it held by pods that have not ended.")
    fair_share_gpu: str = Field("0", description="GPUs of it that the project should hold now.")


class GPUProjectStatus(ApiModel):
    """What the project holds. GPUs are decimal strings."""

    observed_generation: int | None = Field(None, description="metadata.generation judged here.")
    allocated_gpu: str = Field("0", description="GPUs held by pods that have not ended.")
    borrowed_gpu: str = Field("0", description="Of these, GPUs above the quota.")
    fair_share_gpu: str = Field(
        "0",
        description="GPUs that it should hold now: what it asks for up to its quota, and its part "
        "by weight of what is left. Above it, preemptible pods may be taken back for others.",
    )
    by_model: list[ModelHoldings] = Field(
        default_factory=list,
        max_length=16,
        description="The same of each model that quotaByModel names.",
        json_schema_extra=by_key("model"),
    )
    pending_gpu: str = Field(
        "0", description="GPUs that waiting pods ask for, as far as they can start as they are."
    )
    jobs: JobCounts = Field(default_factory=JobCounts, description="GPUJobs by state.")
    conditions: Conditions = Field(
        default_factory=list,
        description="Accepted: False when a namespace is claimed by another project. "
        "QuotaCovered: False when quotas promise more GPUs than the cluster has. "
        "NamespacesExist: False when a namespace that it names does not exist. SetAside: the "
        "planner could not work with it.",
    )
