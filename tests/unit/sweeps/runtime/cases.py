"""A sweep on a state of its own: Jobs and pods come by hand, as the watch would bring them."""

from typing import Any

import msgspec
from tests.unit.state.builders import half, make_gpujob, make_job, make_node, make_pod, make_project

from gpu_scheduler.api.names import FIRST_TRIAL, HPARAMS, SEGMENT, TRIAL
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.objects import Job, Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import JobRecord
from gpu_scheduler.sweeps.core.outcome import Outcome
from gpu_scheduler.sweeps.runtime.record import Sweep, Sweeps
from gpu_scheduler.sweeps.runtime.trials import ReadLog, Trials

KEY = JobKey("team-a/job")
RANDOM: dict[str, Any] = {
    "algorithm": "random",
    "objective": {"metric": "loss"},
    "parameters": {"lr": {"uniform": [0, 1]}},
}


def segment_job(number: int = 0, first: int = 0, size: int = 4, **settings: Any) -> Job:
    """The Job of a segment; its uid is job-NUMBER."""
    notes = {SEGMENT: str(number), FIRST_TRIAL: str(first)}
    uid = settings.pop("uid_", f"job-{number}")
    job = make_job(f"job-s{number}", uid=uid, owner="job", completions=size, **settings)
    return msgspec.structs.replace(
        job, metadata=msgspec.structs.replace(job.metadata, annotations=notes)
    )


def trial_pod(trial: int, name: str = "", *, first: int = 0, number: int = 0, **more: Any) -> Pod:
    """The pod of a trial that has a place; ``message`` and ``code``: it has ended so."""
    message, code = more.pop("message", None), more.pop("code", 0)
    notes = {TRIAL: str(trial), HPARAMS: more.pop("hparams", "{}")}
    settings: dict[str, Any] = {"phase": "Running", "node": "a", "devices": half()}
    if message is not None:
        ended = {"exitCode": code, "message": message, "reason": "Error" if code else "Completed"}
        statuses = [{"name": "main", "state": {"terminated": ended}}]
        phase = "Failed" if code else "Succeeded"
        settings |= {"phase": phase, "containerStatuses": statuses}
    settings |= {"containers": [{"name": "main"}], **more}
    return make_pod(
        name or f"job-{trial}",
        job=f"job-{number}",
        index=trial - first,
        annotations_=notes,
        **settings,
    )


class Case:
    """A leader's knowledge of one sweep of four trials; nothing is asked of an API server."""

    def __init__(
        self,
        *,
        loaded: bool = True,
        completions: int = 4,
        parallelism: int = 2,
        read_log: ReadLog = lambda sweep, trial, seen, tell: None,
        **sweep: Any,
    ) -> None:
        self.state = ClusterState(trials_left=lambda job: self.sweeps.left(job))
        self.sweeps = Sweeps(self.state)
        self.now = 100.0
        self.changed: list[JobKey] = []
        self.trials = Trials(
            self.state,
            self.sweeps,
            changed=self.changed.append,
            read_log=read_log,
            clock=lambda: self.now,
        )
        self.state.nodes.changed(make_node("a"))
        self.state.project_changed(make_project())
        record = make_gpujob(parallelism=parallelism, completions=completions, sweep=RANDOM | sweep)
        assert record.spec is not None, record.problem
        self.state.gpujob_changed(record)
        found = self.sweeps.of(KEY)
        assert found is not None
        self.sweep: Sweep = found
        self.sweep.loaded = loaded

    def job(self, number: int = 0, first: int = 0, size: int = 4, **settings: Any) -> JobRecord:
        """The watch shows a Job."""
        record = self.state.job_changed(segment_job(number, first, size, **settings))
        assert record is not None
        self.trials.job_changed(record)
        return record

    def pod(self, trial: int, name: str = "", **settings: Any) -> None:
        """The watch shows a pod."""
        obj = trial_pod(trial, name, **settings)
        record = self.state.pod_changed(obj)
        if record is not None:
            self.trials.observe(obj, record)

    def outcome(self, trial: int) -> Outcome:
        """What came of a trial."""
        found = self.sweep.table.get(trial)
        assert found is not None, f"trial {trial} has not ended"
        return found
