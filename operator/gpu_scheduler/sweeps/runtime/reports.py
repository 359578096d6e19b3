"""What running trials report, and the answer to each.

Every report has one defined answer, whatever is in it; a sentence says what was wrong. The rules of
early stopping live in memory: after a change of leaders they begin with nothing, so for a while
fewer trials are stopped, and that is all that a lost report can do. Called by ``web.reports``,
first with the address alone (``refusal``).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite, nan

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.rate_limiter import RateLimiter
from gpu_scheduler.core.tokens import fits
from gpu_scheduler.runtime.answer import Answer, refusal
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods import PodRecord, Stage
from gpu_scheduler.sweeps.core.objective import Objective
from gpu_scheduler.sweeps.core.reports import BadReportError, Report, parse_report
from gpu_scheduler.sweeps.runtime.pruning import Pruning
from gpu_scheduler.sweeps.runtime.record import Sweep, Sweeps

PER_SECOND = 10.0  # reports of a trial, for long; so many more at once are let through:
BURST = 100.0


_TOO_OFTEN = refusal(
    429,
    f"a trial may report {PER_SECOND:g} times a second; report less often",
    retry_after_seconds=1,
)


@dataclass(slots=True)
class Reports:
    """Takes reports."""

    state: ClusterState
    sweeps: Sweeps
    pruning: Pruning
    clock: Callable[[], float]
    answers: Counter[int] = field(default_factory=Counter)  # by status
    _allowances: RateLimiter[PodUID] = field(default_factory=lambda: RateLimiter(PER_SECOND, BURST))

    def refusal(self, sweep_uid: str, trial: int, token: str) -> Answer | None:
        """Why nothing that comes under this address is taken now; None: send the body."""
        found = self._addressed(sweep_uid, trial, token)
        if not isinstance(found, Answer) and self._allowances.is_spent(found[1].uid, self.clock()):
            found = _TOO_OFTEN
        return self._counted(found) if isinstance(found, Answer) else None

    async def take(self, sweep_uid: str, trial: int, token: str, body: bytes) -> Answer:
        """Judge a report that came in under an address."""
        return self._counted(await self._answer(sweep_uid, trial, token, body))

    def _counted(self, answer: Answer) -> Answer:
        self.answers[answer.status] += 1
        return answer

    def _addressed(
        self, sweep_uid: str, trial: int, token: str
    ) -> tuple[Sweep, PodRecord] | Answer:
        sweep = self.sweeps.by_uid(sweep_uid)
        if sweep is None:
            return refusal(404, "there is no such sweep")
        if not sweep.loaded:
            return refusal(503, "the results of this sweep are being read", retry_after_seconds=1)
        uid = sweep.running(trial)
        pod = self.state.pods.get(uid) if uid is not None else None
        if pod is None or pod.stage is Stage.ENDED:
            return refusal(410, f"trial {trial} does not run")
        if not fits(pod.report_token, token):
            return refusal(403, f"this is not the token of the pod that runs trial {trial}")
        return sweep, pod

    async def _answer(self, sweep_uid: str, trial: int, token: str, body: bytes) -> Answer:
        found = self._addressed(sweep_uid, trial, token)
        if isinstance(found, Answer):
            return found
        sweep, pod = found
        if not self._allowances.spend(pod.uid, self.clock()):
            return _TOO_OFTEN
        if sweep.objective is None:
            return Answer(200, {"stop": False})  # there is nothing to compare by
        try:
            report = parse_report(body, sweep.objective)
        except BadReportError as error:
            return refusal(400, str(error))
        stop = await self._stop(sweep, sweep.objective, trial, pod, report)
        return Answer(200, {"stop": stop})

    async def _stop(
        self, sweep: Sweep, objective: Objective, trial: int, pod: PodRecord, report: Report
    ) -> bool:
        if self.pruning.told(pod):
            sweep.stop(trial)
            return True
        if sweep.stopping is None or sweep.final(trial):
            return False
        step, value = report.step, report.value
        # An infinite value is a trial that goes wrong, also where it has the sign of a good one.
        if not sweep.stopping.report(trial, step, value if isfinite(value) else nan):
            return False
        said = f"{objective.metric} {value:g} at step {step}"
        why = f"trial {trial} had {said}, worse than the others"
        if not await self.pruning.tell(pod, why):
            return False  # not stored, so not said: its next report will be
        sweep.stop(trial)
        return True
