"""Runs of the same program with fewer workers, as the GPUJobs of a namespace remember them.

The same program: specs that differ in the number of workers alone, or in what starts no other
program. What compares is the mean use of each GPU, so both have to run on one model of GPU, and
jobs that share no step (completions that are worked off, sweeps, roles) are not compared.
"""

from collections.abc import Iterable

from pydantic import ValidationError

from gpu_scheduler.api.gpujob import GPUJobSpec, Phase
from gpu_scheduler.api.job_usage import JobUsage
from gpu_scheduler.limits.bounded import digest
from gpu_scheduler.limits.in_pieces import in_pieces
from gpu_scheduler.state.jobs.job import GPUJobRecord, changed_seconds
from gpu_scheduler.usage.advice.work import EarlierRun

_KEPT_SECONDS = 7 * 86400.0
_LEAST_SECONDS = 1800  # of each worker: less is mostly its start
_PROGRAM = {
    *("image", "command", "args", "env", "working_dir", "resources", "template"),
    *("gpu_memory", "containers", "gpu_devices", "gpu_models", "shape"),
    *("min_compute_capability", "isolation"),
}
_Alike = tuple[str, bytes]  # namespace, and what the program is


class EarlierRuns:
    """Looked up once a minute."""

    def __init__(self) -> None:
        """None is known."""
        self._programs: dict[tuple[str, int], bytes] = {}  # by uid and generation
        self._runs: dict[_Alike, EarlierRun] = {}

    async def look(self, jobs: Iterable[GPUJobRecord], now: float, *, one_model: bool) -> None:
        """Find them anew: of each program the one with the fewest workers.

        Args:
            jobs: all that there are.
            now: epoch seconds.
            one_model: all GPUs of the cluster are of one.
        """
        runs: dict[_Alike, EarlierRun] = {}
        there: set[tuple[str, int]] = set()
        async for job in in_pieces(jobs):
            there.add((job.uid, job.generation))
            run = _run(job, now) if comparable(job, one_model=one_model) else None
            if run is None:
                continue
            program = self._program(job)
            known = runs.get((job.namespace, program))
            if known is None or run.workers < known.workers:
                runs[job.namespace, program] = run
        self._runs = runs
        self._programs = {key: each for key, each in self._programs.items() if key in there}

    def of(self, job: GPUJobRecord) -> EarlierRun | None:
        """A run of the program of a job."""
        if not self._runs or not comparable(job, one_model=True):
            return None
        return self._runs.get((job.namespace, self._program(job)))

    def _program(self, job: GPUJobRecord) -> bytes:
        key = job.uid, job.generation
        if key not in self._programs:
            self._programs[key] = _digest(job.said or job.spec)
        return self._programs[key]


def comparable(job: GPUJobRecord, *, one_model: bool) -> bool:
    """Whether its workers do the same at the same time, on GPUs of one model."""
    spec = job.said or job.spec
    if spec is None or spec.roles is not None or spec.sweep is not None:
        return False
    together = spec.gang is True or spec.total_pods == 1
    return together and spec.total_pods == spec.pods_at_once and (one_model or _names_one(spec))


def workers_of(job: GPUJobRecord) -> int:
    """Pods, times the whole devices of each."""
    spec = job.said or job.spec
    return 1 if spec is None else spec.pods_at_once * max(int(spec.gpu or 1), 1)


def _names_one(spec: GPUJobSpec) -> bool:
    return spec.shape is not None or len(spec.gpu_models or ()) == 1


def _digest(spec: GPUJobSpec | None) -> bytes:
    if spec is None:
        return b""
    share = str(spec.gpu) if spec.gpu is not None and spec.gpu < 1 else ""
    return digest(spec.model_dump_json(include=_PROGRAM, exclude_none=True), share)


def _run(job: GPUJobRecord, now: float) -> EarlierRun | None:
    ended = changed_seconds(job.status, "True", "Complete")
    if job.status.get("phase") != Phase.SUCCEEDED or now - ended > _KEPT_SECONDS:
        return None
    try:
        usage = JobUsage.model_validate(job.status.get("usage"))
    except ValidationError:
        return None
    workers = workers_of(job)
    seconds = sum(usage.seconds_by_tenth or ())
    if usage.mean_percent is None or seconds < _LEAST_SECONDS * workers:
        return None
    return EarlierRun(job.name, workers, usage.mean_percent / 100)
