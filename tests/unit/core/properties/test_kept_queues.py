"""A planner that keeps its queues from cycle to cycle decides what one decides that keeps nothing.

The histories are those of the golden record, but that a job that stays as it was is handed to the
planner as the same object, as the operator does.
"""

import pytest
from tests.unit.core.golden.history import History

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.preemption_policy import FAIR, STRICT, PreemptionPolicy
from gpu_scheduler.core.model.request import JobKey, WaitingJob
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.target_workload import DEFAULT

SOON = PreemptionPolicy(5.0, 5.0, 10.0, 20.0)  # some of it is overdue within a history
CHUNK, CYCLES = 8, 8


class Interned(History):
    """Hands out the same objects as long as they are equal, and plans a second time with nothing.

    Those jobs that stayed are in another order for the second plan.
    """

    def jobs(self) -> list[WaitingJob]:
        known: dict[JobKey, WaitingJob] = self.__dict__.setdefault("_known", {})
        found = []
        for job in super().jobs():
            if known.get(job.key) != job:
                known[job.key] = job
            found.append(known[job.key])
        self._random.shuffle(found)
        return found

    def plan(self) -> Plan:
        kept, state = self.session, self._random.getstate()
        result = super().plan()
        self.session = PlannerCache()
        anew, self.session = super().plan(), kept
        self._random.setstate(state)
        assert result == anew
        return result


PACKING = Packing.FRAGMENTATION


@pytest.mark.long
@pytest.mark.parametrize("number", range(8))
def test_what_is_kept_changes_no_plan(number: int) -> None:
    for seed in range(number * CHUNK, (number + 1) * CHUNK):
        history = Interned.of(10_000 + seed)
        history.session = PlannerCache()
        history.packing, history.workload = PACKING, DEFAULT
        history.preemption_policy = (STRICT, FAIR, SOON)[seed % 3]
        for _ in history.plans(CYCLES):
            pass
