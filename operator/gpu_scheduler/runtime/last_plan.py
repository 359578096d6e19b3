"""What the last plan said: read by the status, by ``gang_guard`` and by the metrics.

Written by ``planning`` alone, after each cycle.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_scheduler.core.model.decision import Reservation, Wait
from gpu_scheduler.core.model.promises import NOTHING, Memory
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.runtime.aside import Aside


@dataclass(slots=True)
class LastPlan:
    """Its words and numbers.

    Attributes:
        aside: what was not planned with.
        waits: why jobs wait.
        reservations: room that is made or kept for pods.
        memory: what the next plan is to know of it.
        shares_milli: fair shares.
        shares_by_model_milli: the same of models with guarantees.
        cycles: plans so far.
    """

    aside: Aside
    waits: Mapping[JobKey, Wait] = field(default_factory=dict)
    reservations: Mapping[PodUID, Reservation] = field(default_factory=dict)
    memory: Memory = NOTHING
    shares_milli: Mapping[ProjectName, int] = field(default_factory=dict)
    shares_by_model_milli: Mapping[str, Mapping[ProjectName, int]] = field(default_factory=dict)
    cycles: int = 0

    def expecting(self) -> set[JobKey]:
        """Jobs for which room is being made or kept."""
        return {each.job for each in self.reservations.values()}
