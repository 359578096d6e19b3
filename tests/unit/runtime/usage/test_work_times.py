"""How long work waits and runs."""

from tests.unit.runtime.usage.stage import NODE, UsageStage
from tests.unit.state.builders import gpujob_body, half, make_job, make_pod

from gpu_scheduler.kube.times import timestamp
from gpu_scheduler.runtime.usage.work_times import WorkTimes


class RecordedTimes:
    """In place of metrics."""

    def __init__(self) -> None:
        self.waits: list[tuple[float, str]] = []
        self.runs: list[tuple[float, str]] = []

    def queue_wait_seconds(self, seconds: float, work_type: str) -> None:
        self.waits.append((seconds, work_type))

    def job_run_seconds(self, seconds: float, work_type: str) -> None:
        self.runs.append((seconds, work_type))

    def bind_seconds(self, seconds: float) -> None:
        pass

    def cycle_seconds(self, seconds: float, steps: object) -> None:
        pass


class Timed(UsageStage):
    """A GPUJob that begins now."""

    def __init__(self, *, live: bool = True) -> None:
        super().__init__()
        self.told = RecordedTimes()
        self.times = WorkTimes(self.state, self.told)
        self.state.beginnings.live = live
        self.version = 0
        self.begun = timestamp(self.common.clock.moment())
        self.has()

    def has(self, **status: object) -> None:
        self.version += 1
        body = gpujob_body(status=status)
        body["metadata"]["creationTimestamp"] = self.begun
        body["metadata"]["resourceVersion"] = str(self.version)
        self.resources.gpujob(body)
        self.state.job_changed(make_job())
        for record in self.state.gpujobs.values():
            record.status = status

    def pod(self, name: str = "job-0", phase: str = "Running", version: int = 1) -> None:
        pod = make_pod(name, node=NODE, devices=half(), phase=phase, version=version)
        record = self.state.pod_changed(pod)
        assert record is not None
        self.times.observe(pod, record)


def test_a_job_waits_until_its_first_pod_has_a_gpu_and_once() -> None:
    stage = Timed()
    stage.seconds += 90
    stage.pod()
    stage.seconds += 60
    stage.pod(version=2)
    stage.pod("job-1")
    assert stage.told.waits == [(90, "training")]


def test_a_job_runs_from_its_first_gpu_to_its_last() -> None:
    stage = Timed()
    stage.seconds += 90
    stage.pod()
    stage.seconds += 30
    stage.pod("job-1")
    stage.pod(phase="Succeeded", version=2)
    stage.seconds += 300
    stage.pod("job-1", phase="Succeeded", version=2)
    stage.seconds += 7
    stage.times.settle()
    assert stage.told.runs == [], "it may get more"
    stage.has(phase="Succeeded")
    stage.times.settle()
    stage.times.settle()
    assert stage.told.runs == [(330, "training")]


def test_a_job_that_was_deleted_is_over() -> None:
    stage = Timed()
    stage.pod()
    (key,) = stage.state.gpujobs
    stage.state.gpujob_gone(key)
    stage.times.settle()
    assert stage.told.runs == [], "its pod still holds a GPU"
    stage.seconds += 40
    stage.pod(phase="Failed", version=2)
    stage.times.settle()
    assert stage.told.runs == [(40, "training")]


def test_one_that_had_a_gpu_before_does_not_wait_for_its_first() -> None:
    stage = Timed()
    stage.has(phase="Pending", evictions=1)
    stage.pod()
    assert stage.told.waits == []


def test_a_new_leader_tells_no_wait_of_what_runs_already() -> None:
    stage = Timed(live=False)
    stage.pod()
    assert stage.told.waits == []
