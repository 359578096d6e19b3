"""What to change about work, as GPUUsage and the status of a GPUJob say it."""

from typing import Annotated

from pydantic import Field

from gpu_scheduler.api.condition import Sentence
from gpu_scheduler.api.model import ApiModel

MOST = 8
MOST_RULES = 16

Time = Annotated[str, Field(max_length=32)]


class Advice(ApiModel):
    """One thing to change."""

    rule: str = Field(max_length=64, description="Which rule of docs/advice.md says so.")
    since: Time | None = Field(None, description="Since when it is said.")
    message: Sentence = Field(description="What was seen then, and what to change.")
    command: Sentence = Field("", description="The line that does it; empty where none does.")


class AdviceEvent(ApiModel):
    """An Event that spoke of a workload."""

    rule: str = Field(max_length=64, description="Of which rule.")
    at: Time = Field(description="When.")
