"""A sweep with two trials that run, and everything that judges their reports."""

from typing import Any

import orjson
from tests.unit.runtime.binding.test_failed_placements import FakeEvents
from tests.unit.runtime.evicting import Evicting
from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.runtime.pod_tokens import judges, of
from tests.unit.runtime.virtual_loop import clock
from tests.unit.state.builders import half, make_gpujob, make_node, make_pod, make_project
from tests.unit.sweeps.runtime.cases import segment_job

from gpu_scheduler.api.names import CONDITION_PRUNED
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.reports.answer import Answer
from gpu_scheduler.runtime.reports.report_tokens import Sender
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.sweeps.runtime.pruning import Pruning
from gpu_scheduler.sweeps.runtime.record import Sweep, Sweeps
from gpu_scheduler.sweeps.runtime.reports import Reports

GRACE_SECONDS = 10
STOPPING = {"type": "asha", "minResource": 1, "reductionFactor": 2, "graceSeconds": GRACE_SECONDS}
TOLD_AT = "2026-03-01T12:00:00Z"


def told(at: str = TOLD_AT) -> dict[str, str]:
    """The mark on a pod that was told to stop."""
    return {"type": CONDITION_PRUNED, "status": "True", "lastTransitionTime": at}


def uid(trial: int) -> PodUID:
    """Of the pod in which a trial runs."""
    return PodUID(f"uid-job-{trial}")


class Case:
    """``early_stopping`` None: the sweep stops nothing; trials 0 and 1 run in job-0 and job-1."""

    def __init__(self, early_stopping: dict[str, Any] | None = STOPPING, **sweep: Any) -> None:
        self.state = ClusterState()
        self.answer: Any = {}
        self.client = FakeClient(self._reply)
        self.events = FakeEvents()
        self.pruning = Pruning(
            self.state,
            self.client,  # type: ignore[arg-type]
            Evicting(self.state, self.client, self.events).evictor,
            self.events,  # type: ignore[arg-type]
            clock=clock,
            now=Clock().moment,
        )
        self.sweeps = Sweeps(self.state)
        tokens, self.reviewer = judges()
        self.reports = Reports(self.state, self.sweeps, self.pruning, tokens, clock)
        spec = {
            "algorithm": "random",
            "objective": {"metric": "loss"},
            "parameters": {"lr": {"uniform": [0, 1]}},
        } | sweep
        if early_stopping is not None:
            spec["earlyStopping"] = early_stopping
        self.state.nodes.changed(make_node("a"))
        self.state.project_changed(make_project())
        record = make_gpujob(parallelism=2, completions=8, sweep=spec)
        assert record.spec is not None, record.problem
        self.state.gpujob_changed(record)
        self.state.job_changed(segment_job(0, 0, 8, uid_="job-uid"))
        found = self.sweeps.of(record.key)
        assert found is not None
        self.sweep: Sweep = found
        self.sweep.loaded = True
        for trial in (0, 1):
            self.see(self.pod(trial))
            self.sweep.live[trial] = uid(trial)

    def pod(self, trial: int, version: int = 1, **settings: Any) -> Pod:
        """The pod of a trial, on its node."""
        given: dict[str, Any] = {"node": "a", "devices": half(), "phase": "Running", "ran": True}
        return make_pod(f"job-{trial}", index=trial, version=version, **(given | settings))

    def see(self, pod: Pod) -> None:
        """The watch shows a pod."""
        self.state.pod_changed(pod)

    async def report(
        self,
        trial: int,
        loss: float = 0.5,
        *,
        step: int = 1,
        sender: Sender | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """What the program of a trial is answered."""
        if body is None:
            body = orjson.dumps({"step": step, "metrics": {"loss": loss}})
        refused = await self.reports.refusal(uid(trial), sender or of(uid(trial)))
        return refused or await self.reports.take(uid(trial), body)

    def _reply(self, sent: Sent) -> Any:
        return self.answer(sent) if callable(self.answer) else self.answer

    @property
    def evictions(self) -> list[str]:
        return [sent.path.split("/")[-2] for sent in self.client.of("POST", "/eviction")]

    @property
    def marks(self) -> list[str]:
        return [sent.path.split("/")[-2] for sent in self.client.of("PATCH", "/status")]
