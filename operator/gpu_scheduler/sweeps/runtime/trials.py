"""What becomes of trials, out of what pods and Jobs show.

A pod that succeeded ends its trial at once; one that failed does when its Job gives the index up,
since until then it is tried again. Nothing is read before the sweep's results have been loaded:
what is stored knows more than a pod. The Job keeps its pods, so whatever ended while nobody led is
read afterwards. An index that its Job calls done and whose pod nobody has seen is looked up
(``overdue``), and is lost only if the API server has no such pod either.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from gpu_scheduler.api.names import HPARAMS, TRIAL
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import JobRecord
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.results import Reading, read_message
from gpu_scheduler.sweeps.core.verdict import FatalExit
from gpu_scheduler.sweeps.runtime.endings import Ending, ending, fatal_code
from gpu_scheduler.sweeps.runtime.record import Sweep, Sweeps

log = logging.getLogger(__name__)

VANISHED = "its pod was deleted before its result was read"
LOST = "it failed, and its pod is gone"
_MOST_CHARS = 16 << 10  # of parameters, on a pod that may be anybody's


@dataclass(frozen=True, slots=True)
class TrialPod:
    """What counts of a trial's pod."""

    pod: PodRecord
    hparams: str  # as JSON, as its annotation says
    ending: Ending | None


Tell = Callable[[Reading], None]
ReadLog = Callable[[Sweep, int, TrialPod, Tell], None]


class Trials:
    """Listens to the pods and Jobs of sweeps."""

    def __init__(
        self,
        state: ClusterState,
        sweeps: Sweeps,
        *,
        changed: Callable[[JobKey], None],
        read_log: ReadLog = lambda sweep, trial, seen, tell: None,
        clock: Callable[[], float],
    ) -> None:
        """``changed``: the Jobs of this GPUJob may have to be looked at.

        ``read_log`` is asked for the result of each trial that succeeded and has it in its log.
        """
        self._read_log = read_log
        self._state = state
        self._sweeps = sweeps
        self._changed = changed
        self._clock = clock
        self._later: dict[
            str, dict[PodUID, TrialPod]
        ] = {}  # Job uid -> pods, until they can be read
        self._live: dict[PodUID, tuple[JobKey, int]] = {}
        self._judged: dict[str, tuple[str, str, str]] = {}  # Job uid -> what it said last
        # By uid and trial: a GPUJob that is made again under its name has nothing to do with these,
        # nor has a Job. Since when, monotonic seconds, and which Job says that the trial is over.
        self._unsettled: dict[tuple[str, int], tuple[float, str]] = {}
        self._reading: set[tuple[str, int]] = set()  # trials whose log is being read

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod changed; ``pod`` is its record."""
        annotations = obj.metadata.annotations
        if TRIAL not in annotations or not pod.job_uid:
            return
        ended = None
        if pod.stage is Stage.ENDED:
            ended = ending(obj)
        said = annotations.get(HPARAMS, "")
        seen = TrialPod(pod, said if len(said) <= _MOST_CHARS else "", ended)
        found = self._sweeps.trial_of(pod)
        if found is None or not found[0].loaded:
            self._later.setdefault(pod.job_uid, {})[pod.uid] = seen
        else:
            self._take(*found, seen)

    def gone(self, uid: PodUID) -> None:
        """A pod is gone."""
        for job_uid, pods in tuple(self._later.items()):
            if pods.pop(uid, None) is not None and not pods:
                del self._later[job_uid]
        key, trial = self._live.pop(uid, ("", -1))
        sweep = self._sweeps.of(JobKey(key)) if key else None
        if sweep is not None and sweep.live.get(trial) == uid:
            del sweep.live[trial]
            self._changed(sweep.key)

    def loaded(self, sweep: Sweep) -> None:
        """The stored results of a sweep are in its table: now its pods and Jobs can be read."""
        for job in self._state.workloads.jobs(sweep.key):
            self.job_changed(job)
        self._state.changes.replan()
        self._state.changes.touch(sweep.key)

    def job_changed(self, job: JobRecord) -> None:
        """A Job of a GPUJob changed, or has become known."""
        sweep = self._sweeps.of(job.owner)
        if sweep is None or sweep.uid != job.owner_uid or not sweep.segments.know(job):
            return
        if not sweep.loaded:
            return
        for seen in self._later.pop(job.uid, {}).values():
            found = self._sweeps.trial_of(seen.pod)
            if found is not None:
                self._take(*found, seen)
        said = (job.completed_indexes, job.lost_indexes, job.failure)
        if self._judged.get(job.uid) == said:
            return
        self._judged[job.uid] = said
        if any(j.uid != job.uid and not j.complete for j in self._state.workloads.jobs(sweep.key)):
            self._changed(sweep.key)  # they share the parallelism, by what each has left
        for index in _over(job):
            trial = job.first_trial + index
            if not sweep.final(trial) and (sweep.uid, trial) not in self._unsettled:
                self._unsettled[sweep.uid, trial] = (self._clock(), job.uid)
        self._settle_failed(sweep, job)

    def job_gone(self, uid: str) -> None:
        """Forget a Job."""
        self._judged.pop(uid, None)
        self._later.pop(uid, None)

    def overdue(self, seconds: float) -> list[tuple[Sweep, JobRecord, list[int]]]:
        """Trials that their Job calls done, unexplained for so long, by Job."""
        due: dict[str, tuple[Sweep, JobRecord, list[int]]] = {}
        for (uid, trial), (since, job_uid) in tuple(self._unsettled.items()):
            sweep, job = self._sweeps.by_uid(uid), self._state.jobs.believed.get(job_uid)
            if sweep is None or job is None or sweep.final(trial):
                del self._unsettled[uid, trial]
                continue
            if not sweep.loaded or self._clock() - since < seconds:
                continue
            if (uid, trial) in self._reading:
                continue
            due.setdefault(job.uid, (sweep, job, []))[2].append(trial)
        return list(due.values())

    def resolve(
        self, sweep: Sweep, job: JobRecord, trials: Iterable[int], pods: Iterable[Pod]
    ) -> None:
        """Judge ``trials`` by ``pods``: all that the API server has of their Job right now."""
        there: dict[int, list[PodRecord]] = {}
        for obj in pods:
            pod = self._state.pod_changed(obj)
            if pod is not None:
                self.observe(obj, pod)
            else:  # the watch was faster than this answer
                pod = self._state.pods.known.get(PodUID(obj.metadata.uid))
            if pod is not None:
                there.setdefault(job.first_trial + pod.index, []).append(pod)
        completed = {job.first_trial + index for index in job.completed}
        for trial in trials:
            if sweep.final(trial):
                continue
            if trial not in completed:
                self._fail(sweep, trial, sweep.failures.get(trial, LOST))
            elif not any(pod.phase == "Succeeded" for pod in there.get(trial, ())):
                self.end(sweep, Outcome(trial, TrialState.RESULT_MISSING, message=VANISHED))

    def end(self, sweep: Sweep, outcome: Outcome) -> None:
        """A trial has ended."""
        known = sweep.table.get(outcome.trial)
        parameters = known.parameters if known is not None else None
        could_start = sweep.may_start
        full = Outcome(
            outcome.trial, outcome.state, outcome.value, outcome.also, outcome.message, parameters
        )
        if not sweep.put(full):
            return
        self._unsettled.pop((sweep.uid, outcome.trial), None)
        self._news(sweep, could_start)

    def reading(self, sweep: Sweep) -> frozenset[int]:
        """Trials whose log is being read."""
        return frozenset(trial for uid, trial in self._reading if uid == sweep.uid)

    def read(self, sweep: Sweep, trial: int, reading: Reading) -> None:
        """What a trial's program said, from wherever it was read; it ended well."""
        self._reading.discard((sweep.uid, trial))
        state, message = reading.state, reading.message
        if sweep.told_to_stop(trial):
            state, message = TrialState.PRUNED, ""
        self.end(sweep, Outcome(trial, state, reading.value, reading.also, message))

    def _take(self, sweep: Sweep, trial: int, seen: TrialPod) -> None:
        self._judge(sweep, trial, seen)
        if seen.pod.phase == "Succeeded" and sweep.final(trial):
            # All that counts is in the table now, and a Job keeps its pods to its end: nobody
            # needs to remember thousands of them.
            self._state.pod_gone(seen.pod.uid, for_good=False)

    def _judge(self, sweep: Sweep, trial: int, seen: TrialPod) -> None:
        pod = seen.pod
        if sweep.search.adaptive:
            self._remember(sweep, trial, seen.hparams)
        if pod.pruned:
            sweep.stop(trial)  # an earlier leader may have told it
        if seen.ending is None:
            if pod.allocation is not None:
                sweep.live[trial] = pod.uid
                self._live[pod.uid] = (sweep.key, trial)
            return
        self._live.pop(pod.uid, None)
        if sweep.live.get(trial) == pod.uid:
            del sweep.live[trial]
            self._changed(sweep.key)  # perhaps it was the last one of a sweep that ends
        if pod.phase != "Succeeded":
            self._look_for_fatal(sweep, trial, pod, seen.ending)
        if sweep.final(trial):
            return
        if pod.phase != "Succeeded":
            self._failed(sweep, trial, seen.ending)
        elif sweep.spec.result_from is not None and not sweep.told_to_stop(trial):
            self._reading.add((sweep.uid, trial))
            self._read_log(sweep, trial, seen, partial(self.read, sweep, trial))
        else:
            message = seen.ending.messages.get(sweep.container, "")
            self.read(sweep, trial, read_message(message, sweep.objective))

    def _look_for_fatal(self, sweep: Sweep, trial: int, pod: PodRecord, ended: Ending) -> None:
        if pod.disrupted or pod.pruned or pod.deleting:
            return  # it answered the signal of whoever ended it, which says nothing of the search
        code = fatal_code(ended, sweep.spec.fail_fast_exit_codes or (), sweep.programs)
        if code is not None and sweep.fatal is None:
            could_start = sweep.may_start
            sweep.found_fatal(FatalExit(trial, code))
            self._news(sweep, could_start)

    def _failed(self, sweep: Sweep, trial: int, ended: Ending) -> None:
        sweep.failures[trial] = ended.failure
        job = self._job_of(sweep, trial)
        if job is not None and (sweep.uid, trial) in self._unsettled:
            self._settle_failed(sweep, job)

    def _settle_failed(self, sweep: Sweep, job: JobRecord) -> None:
        """End trials that their Job has given up and whose last failure is known."""
        if not job.lost_indexes:
            return
        for index in job.lost:
            trial = job.first_trial + index
            if trial in sweep.failures and not sweep.final(trial):
                self._fail(sweep, trial, sweep.failures[trial])

    def _fail(self, sweep: Sweep, trial: int, why: str) -> None:
        state = TrialState.PRUNED if sweep.told_to_stop(trial) else TrialState.FAILED
        self.end(sweep, Outcome(trial, state, message=why))

    def _remember(self, sweep: Sweep, trial: int, hparams: str) -> None:
        try:
            parameters = json.loads(hparams)
        except (ValueError, RecursionError):
            return
        if isinstance(parameters, dict):
            sweep.given(trial, parameters)

    def _news(self, sweep: Sweep, could_start: bool) -> None:
        self._state.changes.touch(sweep.key)
        self._state.waiting.members_changed(sweep.key)
        self._changed(sweep.key)
        if sweep.may_start != could_start:
            self._state.changes.replan()

    def _job_of(self, sweep: Sweep, trial: int) -> JobRecord | None:
        return next(
            (
                job
                for job in self._state.workloads.jobs(sweep.key)
                if job.first_trial <= trial < job.first_trial + job.completions
            ),
            None,
        )


def _over(job: JobRecord) -> Iterator[int]:
    """Indexes that will not be tried again; all of a Job that has failed as a whole."""
    if job.failure:
        return iter(job.indexes)
    return (index for part in (job.completed, job.lost) for index in part)
