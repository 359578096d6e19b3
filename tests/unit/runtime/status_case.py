"""A status writer on a state with one project and one job, and what it wrote."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from tests.unit.runtime.binding.test_failed_placements import FakeEvents
from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.status_writing import status_writer
from tests.unit.runtime.virtual_loop import Running, clock
from tests.unit.state.builders import gpujob_body, half, make_job, make_pod

from gpu_scheduler.core.model.decision import Reason, Reservation, Wait
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.runtime.eviction.preemption import Preempted
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.state.cluster_state import ClusterState

KEY = JobKey("team-a/job")
JOB_PATH = "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs/job/status"
PROJECT_PATH = "/apis/gpu-scheduler.io/v1alpha1/gpuprojects/team-a/status"
INTERVAL = 5.0


class FakeQuarantine:
    def __init__(self) -> None:
        self.why: dict[str, str] = {}

    def job(self, key: JobKey) -> str:
        return self.why.get(key, "")

    def project(self, name: ProjectName) -> str:
        return self.why.get(name, "")


class FakePlanning:
    def __init__(self) -> None:
        self.waits: dict[JobKey, Wait] = {}
        self.shares_milli: dict[ProjectName, int] = {}
        self.shares_by_model_milli: dict[str, dict[ProjectName, int]] = {}
        self.cycles = 1
        self.quarantine = FakeQuarantine()
        self.reservations: list[Reservation] = []

    def reservations_of(self, key: JobKey) -> list[Reservation]:
        return [each for each in self.reservations if each.job == key]


class FakePreemption:
    def __init__(self) -> None:
        self.known: dict[JobKey, Preempted] = {}

    def of(self, key: JobKey) -> Preempted | None:
        return self.known.get(key)

    def forget(self, key: JobKey) -> None:
        self.known.pop(key, None)


class Case:
    def __init__(
        self, *, seconds: float = INTERVAL, hurried: Callable[[], bool] = lambda: False
    ) -> None:
        self.state = ClusterState()
        self.custom_resources = CustomResources(self.state, changed=lambda key: None)
        self.custom_resources.project(project_body())
        self.custom_resources.gpujob(gpujob_body())
        self.answers: Iterator[Any] | None = None
        self.client = FakeClient(lambda sent: next(self.answers) if self.answers else {})
        self.planning, self.events = FakePlanning(), FakeEvents()
        self.preemption = FakePreemption()
        self.finished: list[JobKey] = []
        self.start = clock()
        self.numbers: Iterator[JobKey] = iter(())
        self.writer = status_writer(
            self.state,
            self.client,
            self.planning,
            self.events,
            self.preemption,
            numbers=lambda most: list(islice(self.numbers, most)),
            finished=self.finished.append,
            seconds=seconds,
            clock=clock,
            now=lambda: "2026-01-01T00:00:00Z",
            hurried=hurried,
        )

    def waits(self, name: str = "job") -> None:
        """The planner has a reason for this job to wait."""
        key = JobKey(f"team-a/{name}")
        self.planning.waits[key] = Wait(key, Reason.WAITING_FOR_GPU, "no GPU is free", 1)

    def written(self, path: str = JOB_PATH) -> list[Sent]:
        return [sent for sent in self.client.sent if sent.path == path]

    def running(self) -> Running:
        return Running(self.writer.run())

    def pod(self, version: int, index: int = 0) -> None:
        self.state.job_changed(make_job())
        self.state.pod_changed(
            make_pod(f"job-{index}", version=version, node="a", devices=half(), phase="Running")
        )
