"""What running trials report, and the answer to each.

Every report has one defined answer, whatever is in it; a sentence says what was wrong. The rules of
early stopping live in memory: after a change of leaders they begin with nothing, so for a while
fewer trials are stopped, and that is all that a lost report can do. Asked twice: before there is a
body who sends it (``refusal``), then with it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite, nan

from gpu_scheduler.api.search import Objective
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.limits.rate_limiter import RateLimiter
from gpu_scheduler.runtime.reports.answer import Answer, refusal
from gpu_scheduler.runtime.reports.report_tokens import ReportJudge, ReportTokens, Sender
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.sweeps.core.reports import BadReportError, TrialReport, parse_report
from gpu_scheduler.sweeps.runtime.pruning import Pruning
from gpu_scheduler.sweeps.runtime.record import Sweep, Sweeps

PER_SECOND = 10.0  # reports of a trial, for long; so many more at once are let through:
BURST = 100.0

_NOT_STOPPED = refusal(403, "this pod runs no trial of a sweep with spec.sweep.earlyStopping")
_NOT_LOADED = refusal(503, "the results of this sweep are being read", retry_after_seconds=1)
_TOO_OFTEN = refusal(
    429,
    f"a trial may report {PER_SECOND:g} times a second; report less often",
    retry_after_seconds=1,
)


_Trial = tuple[Sweep, Objective, int, PodRecord]


@dataclass(slots=True)
class Reports(ReportJudge):
    """Takes reports."""

    state: ClusterState
    sweeps: Sweeps
    pruning: Pruning
    tokens: ReportTokens
    clock: Callable[[], float]
    answers: Counter[int] = field(default_factory=Counter)
    _allowances: RateLimiter[PodUID] = field(default_factory=lambda: RateLimiter(PER_SECOND, BURST))

    async def _refused(self, uid: PodUID, sender: Sender) -> Answer | None:
        trial = self._addressed(uid)
        if isinstance(trial, Answer):
            return trial
        refused = await self.tokens.refusal(uid, sender)
        if refused is None and self._allowances.is_spent(uid, self.clock()):
            refused = _TOO_OFTEN
        return refused

    def _addressed(self, uid: PodUID) -> _Trial | Answer:
        pod = self.state.pods.known.get(uid)
        if pod is None or pod.stage is Stage.ENDED:
            return refusal(410, "this pod does not run")
        found = self.sweeps.trial_of(pod)
        if found is None or found[0].stopping is None:
            return _NOT_STOPPED
        sweep, trial = found
        objective = sweep.objective
        assert objective is not None, "what stops trials compares by it"
        if not sweep.loaded:
            return _NOT_LOADED
        if sweep.running(trial) != uid:
            return refusal(410, f"trial {trial} does not run in this pod")
        return sweep, objective, trial, pod

    async def _answer(self, uid: PodUID, body: bytes) -> Answer:
        found = self._addressed(uid)
        if isinstance(found, Answer):
            return found
        sweep, objective, trial, pod = found
        if not self._allowances.spend(uid, self.clock()):
            return _TOO_OFTEN
        try:
            report = parse_report(body, objective)
        except BadReportError as error:
            return refusal(400, str(error))
        stop = await self._stop(sweep, objective, trial, pod, report)
        return Answer(200, {"stop": stop})

    async def _stop(
        self, sweep: Sweep, objective: Objective, trial: int, pod: PodRecord, report: TrialReport
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
