"""GPULeader: whose placing writes the API server accepts.

Written by the operator alone: a leader that has the Lease takes the next term here before it lists
anything, and the chart's policy on terms goes by it (ADR 0041). Terms only grow.
"""

from pydantic import ConfigDict, Field

from gpu_scheduler.api.model import ApiModel, rules
from gpu_scheduler.api.rules import GPU_LEADER_SPEC


class GPULeaderSpec(ApiModel):
    """A leadership."""

    model_config = ConfigDict(json_schema_extra=rules(*GPU_LEADER_SPEC))

    holder: str = Field(
        min_length=1, max_length=320, description="The process that leads, as in the Lease."
    )
    term: int = Field(
        ge=1, le=2**53, description="Counts leaderships; each is greater than all before."
    )
