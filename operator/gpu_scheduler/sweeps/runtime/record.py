"""What the operator remembers of a sweep: a table of outcomes, and a little of trials that run.

Everything here can be built anew from the GPUJob, its Jobs, its pods and its results ConfigMaps, so
a new leader knows what the old one knew; until the ConfigMaps have been read (``loaded``) no trial
starts. An outcome that is final never changes.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.requests import program_containers
from gpu_scheduler.api.search import Objective, Parameters, values_of
from gpu_scheduler.api.segments import Segment
from gpu_scheduler.api.sweep import EarlyStoppingSpec, StoppingType, SweepSpec
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord, namespace_of
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.stopping import Asha, Median, Stopping
from gpu_scheduler.sweeps.core.table import Table
from gpu_scheduler.sweeps.core.trials import parameters_of
from gpu_scheduler.sweeps.core.verdict import FatalExit, SweepPhase, SweepVerdict, judge
from gpu_scheduler.sweeps.runtime.endings import result_container
from gpu_scheduler.sweeps.search.studies import Study

TOLD_TO_STOP = "told to stop"  # message of a STARTED row: its end, whenever it comes, is Pruned


@dataclass(frozen=True, slots=True)
class LostResults:
    """What its status told of a sweep's trials when its results were found to be lost."""

    ended: int
    missing: int  # of these, without a usable result


@dataclass(slots=True)
class AdaptiveSearch:
    """What a search that learns from results needs beside the table.

    Attributes:
        study: Is asked for values; begun once a trial was asked for.
        unsearchable: Why there are no values for the next trial; empty: nothing is wrong.
        unstored: What trials were given whose rows say nothing of it.
    """

    study: Study | None = None
    unsearchable: str = ""
    unstored: dict[int, Parameters] = field(default_factory=dict)


class KnownSegments:
    """Segments that have a Job, or had one, by number."""

    def __init__(self, final: Callable[[int], bool]) -> None:
        """``final``: whether a trial has ended."""
        self._final = final
        self._all: list[Segment] = []
        self._over: dict[int, set[int]] = {}  # first trial -> one past the last

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._all)

    def know(self, job: JobRecord) -> bool:
        """Learn which trials a Job has; False when it is no segment of a sweep."""
        if job.segment is None:
            return False
        segment = Segment(job.segment, job.first_trial, len(job.indexes))
        if segment not in self._all:
            others = [each for each in self._all if each.number != segment.number]
            self._all = sorted([*others, segment], key=lambda each: each.number)
        return True

    def of(self, trial: int) -> Segment | None:
        """The segment that has a trial; None when it has no Job yet."""
        at = bisect_right(self._all, trial, key=lambda segment: segment.first) - 1
        found = self._all[at] if at >= 0 else None
        return found if found is not None and trial < found.end else None

    def unfinished(self, segment: Segment) -> int:
        """Trials of a segment that have not ended."""
        if segment.end in self._over.get(segment.first, ()):
            return 0  # ends are final: a hundred segments that are done cost nothing
        left = sum(1 for trial in range(segment.first, segment.end) if not self._final(trial))
        if not left:
            self._over.setdefault(segment.first, set()).add(segment.end)
        return left


def stopping_rule(said: EarlyStoppingSpec, objective: Objective) -> Stopping:
    """The rule, with nothing reported yet."""
    if said.type is StoppingType.MEDIAN:
        least, warmup = said.min_trials or 5, said.warmup_steps or 0
        return Median(objective, min_trials=least, warmup_steps=warmup)
    first, factor = said.min_resource or 1, said.reduction_factor or 3
    return Asha(objective, min_resource=first, reduction_factor=factor)


class Sweep:
    """One sweep. Trials that run are few, trials that have ended are rows of ``table``."""

    def __init__(self, job: GPUJobRecord, spec: GPUJobSpec, said: SweepSpec) -> None:
        """Of this GPUJob, whose spec these are; nothing that is stored of it is known yet."""
        self.key = job.key
        self.uid = job.uid
        self.generation = job.generation
        self.spec = said
        self.search = said.search()
        self.objective = said.core_objective()
        self.stopping: Stopping | None = None
        if said.early_stopping is not None and self.objective is not None:
            self.stopping = stopping_rule(said.early_stopping, self.objective)
        self.completions = spec.total_pods
        self.container = result_container(spec)  # that says the result
        self.programs = frozenset(program_containers(spec))  # whose exit codes count
        self.table = Table(self.objective)
        self.loaded = False
        self.segments = KnownSegments(self.final)
        self.live: dict[int, PodUID] = {}  # trials whose pod has a place
        self.failures: dict[int, str] = {}  # how the last try of a trial failed
        self.fatal: FatalExit | None = None
        self.adaptive = AdaptiveSearch()
        self.told: LostResults | None = (
            None  # where the status knew of more ends than all else together
        )
        self.dirty: set[int] = set()  # segments with rows that are not stored yet
        self._verdict: SweepVerdict | None = (
            None  # while nothing has changed; running ones not counted
        )

    @property
    def namespace(self) -> str:
        """Of the GPUJob."""
        return namespace_of(self.key)

    @property
    def name(self) -> str:
        """Of the GPUJob."""
        return self.key.partition("/")[2]

    @property
    def ended(self) -> int:
        """Trials whose end is known."""
        counts = self.table.summary().counts
        return sum(n for state, n in counts.items() if state is not TrialState.STARTED)

    @property
    def lost(self) -> int:
        """Trials whose end was known once, and of which nothing is known any more."""
        if self.told is None:
            return 0
        # Those that were looked for afterwards in vain count as ended without a result.
        missing = self.table.summary().counts.get(TrialState.RESULT_MISSING, 0)
        in_vain = max(0, missing - self.told.missing)
        return max(0, self.told.ended - (self.ended - in_vain))

    def running(self, trial: int) -> PodUID | None:
        """The pod in which a trial runs or is about to; None when there is none."""
        return self.live.get(trial)

    def stop(self, trial: int) -> None:
        """Remember, also for the next leader, that a trial was told to stop: its end is Pruned."""
        if not self.final(trial) and not self.told_to_stop(trial):
            known = self.table.get(trial) or Outcome(trial, TrialState.STARTED)
            self.put(replace(known, message=TOLD_TO_STOP))

    def told_to_stop(self, trial: int) -> bool:
        """Whether ``stop`` was called for a trial that has not ended."""
        known = self.table.get(trial)
        return known is not None and known.message == TOLD_TO_STOP and not self.final(trial)

    def final(self, trial: int) -> bool:
        """Whether a trial has ended."""
        known = self.table.get(trial)
        return known is not None and known.state is not TrialState.STARTED

    def put(self, outcome: Outcome) -> bool:
        """Take over what came of a trial, unless it has ended before; whether that is news."""
        if self.final(outcome.trial) or not self.table.put(outcome):
            return False
        segment = self.segments.of(outcome.trial)
        if segment is not None:
            self.dirty.add(segment.number)
        if outcome.state is not TrialState.STARTED:
            self.failures.pop(outcome.trial, None)
            if self.adaptive.study is not None:
                self.adaptive.study.tell(outcome)
            if self.stopping is not None:
                succeeded = outcome.state is TrialState.SUCCEEDED
                self.stopping.ended(outcome.trial, succeeded=succeeded)
        self._verdict = None
        return True

    def restore(self, outcome: Outcome) -> None:
        """Take over a stored row; what is final here already stays."""
        if not self.final(outcome.trial):
            self.table.put(outcome)
            self._verdict = None

    def found_fatal(self, fatal: FatalExit) -> None:
        """A trial ended with one of ``failFastExitCodes``."""
        if self.fatal is None:
            self.fatal = fatal
            self._verdict = None

    def parameters(self, trial: int) -> Parameters | None:
        """What a trial was given; None for one of an adaptive search that never started."""
        if not self.search.adaptive:
            return parameters_of(self.search, trial)
        known = self.table.get(trial)
        if known is None or known.parameters is None:
            return self.adaptive.unstored.get(trial)
        return dict(zip(self.search.names, known.parameters, strict=False))

    def given(self, trial: int, parameters: Parameters) -> None:
        """Remember what a trial of an adaptive search was given: nobody could compute it again."""
        if self.search.adaptive and self.table.get(trial) is None:
            if parameters.keys() >= set(self.search.names):
                values = values_of(parameters, self.search.names)
                self.put(Outcome(trial, TrialState.STARTED, parameters=values))

    def suggested(self, trial: int, parameters: Parameters) -> None:
        """Remember what an adaptive search found for a trial."""
        self.given(trial, parameters)
        if self.parameters(trial) is None:  # its row is of a run whose values nobody knows
            self.adaptive.unstored[trial] = parameters

    def verdict(self, running: int | None = None) -> SweepVerdict:
        """How it stands; ``running``: trials that hold GPUs, if not those of ``live``."""
        if self._verdict is None:
            self._verdict = judge(
                self.table.summary(),
                completions=self.completions,
                running=1,
                max_failed=self.spec.max_failed_trials,
                fatal=self.fatal,
            )
        found = self._verdict
        if found.phase is SweepPhase.RUNNING and not found.may_start:
            left = len(self.live) if running is None else running
            return found if left else replace(found, phase=SweepPhase.SUCCEEDED)
        return found

    @property
    def may_start(self) -> bool:
        """Whether waiting trials may start."""
        return self.loaded and self.verdict().may_start

    def follow(self, generation: int, spec: GPUJobSpec) -> None:
        """Take over a changed spec: of a sweep only the number of trials can change."""
        self.generation = generation
        self._verdict = None
        self.completions = spec.total_pods


class Sweeps:
    """All sweeps. They follow from the GPUJobs of ``state``: nobody has to announce them."""

    def __init__(self, state: ClusterState) -> None:
        """Know nothing but where to look."""
        self._state = state
        self._known: dict[JobKey, Sweep] = {}
        self._by_uid: dict[str, Sweep] = {}

    def of(self, key: JobKey) -> Sweep | None:
        """The sweep that a GPUJob is; None when it is none, or cannot be read."""
        job, known = self._state.gpujobs.get(key), self._known.get(key)
        if known is not None and (job is None or job.uid != known.uid):
            self._forget(known)
            known = None
        if job is None or job.spec is None or job.spec.sweep is None:
            return known if job is not None else None
        if known is None:
            known = Sweep(job, job.spec, job.spec.sweep)
            self._known[key] = self._by_uid[job.uid] = known
        elif known.generation != job.generation:
            known.follow(job.generation, job.spec)
        return known

    def by_uid(self, uid: str) -> Sweep | None:
        """The sweep of the GPUJob with this uid, once it was looked at by its key."""
        known = self._by_uid.get(uid)
        found = self.of(known.key) if known is not None else None
        return found if found is not None and found.uid == uid else None

    def trial_of(self, pod: PodRecord) -> tuple[Sweep, int] | None:
        """The sweep and the number of the trial that a pod is for; None: it is for none."""
        job = self._state.jobs.believed.get(pod.job_uid)
        sweep = self.of(job.owner) if job is not None else None
        if (
            job is None
            or sweep is None
            or sweep.uid != job.owner_uid
            or not sweep.segments.know(job)
        ):
            return None
        if pod.index not in job.indexes:
            return None  # whoever may edit a pod may write any index
        return sweep, job.first_trial + pod.index

    def all(self) -> list[Sweep]:
        """Those known and not deleted."""
        return [sweep for key in tuple(self._known) if (sweep := self.of(key)) is not None]

    def left(self, job: GPUJobRecord) -> int | None:
        """Trials of a GPUJob that have not ended; None where it is no sweep."""
        if job.spec is None or job.spec.sweep is None:
            return None
        sweep = self.of(job.key)
        return max(0, sweep.completions - sweep.ended) if sweep is not None and sweep.loaded else 0

    def may_start(self, key: JobKey) -> bool:
        """Whether pods of a GPUJob may be placed; those of jobs that are no sweeps always may."""
        sweep = self.of(key)
        return sweep is None or sweep.may_start

    def _forget(self, sweep: Sweep) -> None:
        self._known.pop(sweep.key, None)
        self._by_uid.pop(sweep.uid, None)
