"""GPU-seconds: exact, whoever asks."""

from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.usage.stage import NODE, UsageStage
from tests.unit.state.builders import half, make_pod

from gpu_scheduler.runtime.usage.gpu_seconds import GpuSeconds
from gpu_scheduler.state.pods.pod import PodRecord

IDLE_SECONDS = 100
OF = ("team-a", "training")


class Counted(UsageStage):
    """Its followers are told of pods as a leader's are."""

    def __init__(self) -> None:
        super().__init__()
        self.resources.project(project_body())
        self.counts = GpuSeconds(self.state, IDLE_SECONDS, self.monotonic)
        self.minute.gpu_seconds = self.counts

    def told(self, name: str = "job-0", version: int = 1, phase: str = "Running") -> PodRecord:
        pod = make_pod(name, node=NODE, devices=half(), phase=phase, version=version)
        if phase == "Running":
            record = self.runs(name, version)
        else:
            found = self.state.pod_changed(pod)
            assert found is not None
            record = found
        self.counts.observe(pod, record)
        return record


def test_what_ran_between_two_who_ask_counts_in_full() -> None:
    stage = Counted()
    stage.job()
    stage.told()
    stage.seconds += 7
    stage.told(version=2, phase="Succeeded")
    stage.seconds += 1000
    assert stage.counts.held() == {OF: 3.5}


def test_asking_often_changes_nothing() -> None:
    stage = Counted()
    stage.job()
    pod = stage.told()
    for _ in range(10):
        stage.seconds += 1.25
        stage.counts.held()
    assert stage.counts.held() == {OF: 6.25}
    stage.state.pod_gone(pod.uid)
    stage.counts.gone(pod.uid)
    assert stage.counts.held() == {OF: 6.25}


def test_news_of_a_pod_that_holds_the_same_counts_once() -> None:
    stage = Counted()
    stage.job()
    for version in range(1, 5):
        stage.told(version=version)
        stage.seconds += 10
    assert stage.counts.held() == {OF: 20}


async def test_a_pod_whose_job_is_known_later_counts_from_its_beginning() -> None:
    stage = Counted()
    stage.told()
    stage.seconds += 30
    assert stage.counts.held() == {}
    stage.job()
    await stage.minute.look()
    stage.seconds += 30
    assert stage.counts.held() == {OF: 30}


async def test_what_moves_to_another_project_counts_there_from_then_on() -> None:
    stage = Counted()
    stage.job()
    stage.told()
    stage.seconds += 60
    await stage.minute.look()
    stage.state.project_gone("team-a")  # type: ignore[arg-type]
    await stage.minute.look()
    stage.seconds += 20
    assert stage.counts.held() == {OF: 30, ("", "training"): 10}


async def test_idle_seconds_begin_at_the_threshold() -> None:
    stage = Counted()
    stage.job()
    pod = stage.told()
    for _ in range(4):
        stage.works(pod, 60, busy=0.0)
        stage.answers()
        await stage.minute.look()
    idle = 0.5 * (4 * 60 - IDLE_SECONDS)
    assert stage.counts.idle() == {OF: idle}
    stage.works(pod, 60)
    stage.answers()
    await stage.minute.look()
    assert stage.counts.idle() == {OF: idle}
    assert stage.counts.held() == {OF: 150}
