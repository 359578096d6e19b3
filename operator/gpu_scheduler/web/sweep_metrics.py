"""Metrics of sweeps that go on: a few series for each, none for a trial, from their statuses."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from pydantic import ValidationError

from gpu_scheduler.api.sweep_status import SweepStatus
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.jobs.projects import ProjectStore
from gpu_scheduler.web.collector import filled

_SWEEP = ("namespace", "gpujob", "project")
_Sweep = tuple[tuple[str, str, str], SweepStatus]


def figures(jobs: Iterable[GPUJobRecord], projects: ProjectStore) -> Iterator[Metric]:
    """Of those of ``jobs`` that are sweeps, say how they stand and have not ended."""
    found = sorted(_sweeps(jobs, projects), key=lambda each: each[0])
    trials = GaugeMetricFamily(
        "gpusched_sweep_trials",
        "Trials of a sweep that goes on, by state.",
        labels=(*_SWEEP, "state"),
    )
    yield filled(trials, (([*of, state], n) for of, s in found for state, n in _states(s).items()))
    best = GaugeMetricFamily(
        "gpusched_sweep_best_objective",
        "Objective of a sweep's best trial so far; absent while there is none.",
        labels=_SWEEP,
    )
    yield filled(best, ((of, s.best.value) for of, s in found if s.best is not None))


def _sweeps(jobs: Iterable[GPUJobRecord], projects: ProjectStore) -> Iterator[_Sweep]:
    for job in jobs:
        said = job.status.get("sweep")
        if not said or job.finished:
            continue
        try:
            status = SweepStatus.model_validate(said)
        except ValidationError:
            continue  # somebody else's words, until ours are written
        yield (job.namespace, job.name, str(projects.owner(job.namespace) or "")), status


def _states(sweep: SweepStatus) -> dict[str, int]:
    counts = sweep.counts
    found = {
        "running": counts.running,
        "succeeded": counts.succeeded,
        "pruned": counts.pruned,
        "failed": counts.failed,
        "result-missing": counts.result_missing,
        "objective-not-finite": counts.objective_not_finite,
    }
    return {"waiting": max(0, sweep.trials - sum(found.values())), **found}
