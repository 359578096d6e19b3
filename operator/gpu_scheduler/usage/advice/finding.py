"""What a rule says of a piece of work."""

from dataclasses import dataclass
from enum import StrEnum


class RuleName(StrEnum):
    """The rules in order of precedence: the first that holds is the headline."""

    GPU_NEVER_USED = "GPU_NEVER_USED"
    GPU_IDLE = "GPU_IDLE"
    THROTTLED = "THROTTLED"
    MEMORY_TIGHT = "MEMORY_TIGHT"
    CONTENDED = "CONTENDED"
    DATA_BOUND = "DATA_BOUND"
    ADD_WORKERS = "ADD_WORKERS"
    CODE_BOUND = "CODE_BOUND"
    STOP_AND_GO = "STOP_AND_GO"
    SCALING_INEFFICIENT = "SCALING_INEFFICIENT"
    NO_TENSOR_CORES = "NO_TENSOR_CORES"
    OVERSIZED = "OVERSIZED"
    SMALL_BATCH = "SMALL_BATCH"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to change.

    Attributes:
        rule: that holds.
        message: what was seen, and what to change.
        command: the line that does it; empty where none does.
        saved: GPU-hours a day that the change gives back; 0 where it makes the work faster instead.
    """

    rule: RuleName
    message: str
    command: str = ""
    saved: float = 0.0
