"""Pods that do not start say why, give their GPUs back in time, and do not come again at once."""

import asyncio
from datetime import UTC, datetime
from typing import Any, NoReturn

import pytest
from tests.unit.runtime.binding.test_failed_placements import Case as RecoveryCase
from tests.unit.runtime.fake_client import FakeClient, Sent
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import half, make_gpujob, make_pod
from tests.unit.state.pods.test_shares import asking

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.binding.starting import Starting
from gpu_scheduler.runtime.informers.custom_resources import project_record
from gpu_scheduler.runtime.informers.event_handlers import PodHandler
from gpu_scheduler.runtime.jobs.doubting import expire
from gpu_scheduler.state.jobs.beginnings import Beginnings
from gpu_scheduler.state.pods.containers import Trouble
from gpu_scheduler.state.pods.pod import record

KEY = make_gpujob().key
CREATING = [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}]
NO_IMAGE = [
    {"name": "main", "image": "x:1", "state": {"waiting": {"reason": "ErrImagePull"}}},
]
RUNS = [{"name": "fetch", "state": {"running": {}}}]


def event(reason: str, message: str, at: str, **more: Any) -> dict[str, Any]:
    return {"reason": reason, "message": message, "lastTimestamp": at, **more}


def starts(name: str = "job-0", statuses: Any = CREATING, **settings: Any) -> Pod:
    return make_pod(name, node="a", devices=half(), containerStatuses=statuses, **settings)


class Case(RecoveryCase):
    def __init__(self, **project: Any) -> None:
        super().__init__()
        self.state.project_changed(project_record(project_body(**project)))
        self.events_of: Any = {"items": []}
        self.requests: Any = FakeClient(lambda sent: self.events_of)
        self.state.changes.some.clear()
        epoch = 1_767_225_600.0 - self.start  # 2026-01-01T00:00:00Z
        self.state.waiting.doubts._now = lambda: epoch + clock()
        self.state.beginnings = Beginnings(self.state.waiting.doubts._now)
        self.starting = Starting(
            self.state,
            self.requests,
            self.evictor,
            self.evicting.gangs,
            clock=clock,
        )
        self.handler = PodHandler(self.state, self.placements, (self.starting,))

    @property
    def woken(self) -> bool:
        return self.state.changes.some.is_set()

    def running(self) -> Running:
        return self.evicting.running(self.starting.run(), self._plans())

    async def _plans(self) -> NoReturn:
        while True:  # as planning does
            await asyncio.sleep(1)
            expire(self.state, clock())

    def may_start(self) -> bool:
        return not self.state.waiting.doubts.held_back(KEY)

    def gave_back(self) -> str:
        doubt = self.state.waiting.doubts.of(KEY)
        assert doubt is not None
        reason, message = doubt.said(None)
        assert reason == Reason.START_TIMED_OUT
        return message

    async def until_it_may(self, start: bool) -> None:
        for _ in range(5000):
            if self.may_start() == start:
                return
            await asyncio.sleep(1)

    def asked(self) -> list[Sent]:
        return self.requests.of("GET")

    def trouble(self, name: str = "job-0") -> Trouble | None:
        return self.starting.trouble(record(starts(name)))


@virtual
async def test_the_last_event_about_a_volume_is_told_after_five_seconds() -> None:
    case = Case()
    volume = 'MountVolume.SetUp failed for volume "data" : secret "missing" not found'
    case.events_of = {
        "items": [
            event("FailedMount", "an older one", "2026-01-01T00:00:01Z"),
            event("FailedMount", volume, "2026-01-01T00:00:04Z"),
            event("BackOff", "something else", "2026-01-01T00:00:05Z"),
        ]
    }
    async with case.running():
        await case.see(starts())
        case.state.changes.touched.clear()
        await asyncio.sleep(4)
        assert case.asked() == []
        await asyncio.sleep(3)
    told = f"pod job-0 on a: FailedMount: {volume}"
    assert case.trouble() == Trouble(Reason.VOLUME_NOT_MOUNTED, told)
    assert case.state.changes.touched == {KEY}
    (ask,) = case.asked()
    assert ask.path == "/api/v1/namespaces/team-a/events"
    assert ask.params["fieldSelector"] == "involvedObject.uid=uid-job-0,type=Warning"


@virtual
async def test_a_sandbox_that_cannot_be_made_is_told() -> None:
    case = Case()
    case.events_of = {
        "items": [
            {
                "reason": "FailedCreatePodSandBox",
                "message": "no network",
                "eventTime": "2026-01-01T00:00:01.000000Z",
                "lastTimestamp": None,
            }
        ]
    }
    async with case.running():
        await case.see(starts())
        await asyncio.sleep(7)
    found = case.trouble()
    assert found is not None and found.reason is Reason.SANDBOX_NOT_CREATED


@pytest.mark.parametrize(
    "settings",
    [{"statuses": NO_IMAGE}, {"initContainerStatuses": RUNS}, {"phase": "Running"}],
    ids=["the pod itself says why", "an init container runs", "it runs"],
)
def test_events_are_read_of_nobody_else(settings: dict[str, Any]) -> None:
    @virtual
    async def none() -> None:
        case = Case()
        async with case.running():
            await case.see(starts(**settings))
            await asyncio.sleep(60)
        assert case.asked() == []

    none()


@virtual
async def test_events_are_read_ever_more_seldom_and_for_one_pod_of_a_job() -> None:
    case = Case(startTimeoutSeconds=0)
    async with case.running():
        await case.see(*(starts(f"job-{i}", index=i) for i in range(9)))
        await asyncio.sleep(3600)
    assert len(case.asked()) < 9 * 20


@virtual
async def test_who_may_not_read_events_stops_asking() -> None:
    case = Case(startTimeoutSeconds=0)
    case.events_of = errors.Forbidden(403, "Forbidden", "no")
    async with case.running():
        await case.see(starts())
        await asyncio.sleep(600)
    assert len(case.asked()) == 1 and case.trouble() is None


@virtual
async def test_a_pod_that_does_not_start_in_time_is_evicted_uncharged() -> None:
    case = Case()
    async with case.running():
        await case.see(starts(statuses=NO_IMAGE))
        await asyncio.sleep(595)
        assert case.evictions == [] and case.may_start()
        await asyncio.sleep(8)
    assert case.evictions == ["job-0"]
    said = case.gave_back()
    assert said.startswith("pod job-0 gave its GPU back, for it did not start within 600 s: ")
    assert "; it is tried again at 2026-01-01T00:11:0" in said and "ErrImagePull" in said
    ((name, reason, message),) = case.events.said
    assert (name, reason) == ("job", "StartTimedOut") and "ErrImagePull" in message
    assert case.starting.timed_out == 1


@pytest.mark.parametrize(("seconds", "evicted"), [(0, 0), (30, 1)])
def test_the_project_says_how_long_that_is(seconds: int, evicted: int) -> None:
    @virtual
    async def waits() -> None:
        case = Case(startTimeoutSeconds=seconds)
        async with case.running():
            await case.see(starts())
            await asyncio.sleep(35)
            assert len(case.evictions) == evicted
            await asyncio.sleep(3600 if not seconds else 0)
            assert len(case.evictions) == evicted

    waits()


@virtual
async def test_an_init_container_may_run_for_hours() -> None:
    case = Case(startTimeoutSeconds=30)
    async with case.running():
        await case.see(starts(initContainerStatuses=RUNS))
        await asyncio.sleep(7200)
        assert case.evictions == []
        await case.see(starts(version=2))
        await asyncio.sleep(35)
        assert case.evictions == ["job-0"]


@virtual
async def test_a_new_leader_counts_from_when_the_kubelet_took_the_pod() -> None:
    case = Case()
    async with case.running():
        began = "2025-12-31T23:59:00Z"
        await case.see(starts(created=began, startTime=began))
        await asyncio.sleep(545)
        assert case.evictions == ["job-0"]


@virtual
async def test_the_job_is_tried_again_after_a_time_that_doubles_until_it_runs() -> None:
    case = Case(startTimeoutSeconds=10)
    waited = []
    async with case.running():
        for number in range(9):
            await case.see(starts(f"job-{number}", uid=f"uid-{number}"))
            await case.until_it_may(False)
            case.handler.gone("team-a", f"job-{number}", f"uid-{number}")
            began, version = clock(), case.state.changes.version
            case.state.changes.some.clear()
            await case.until_it_may(True)
            waited.append(round((clock() - began) / 60))
            assert case.state.changes.version > version and case.woken
        assert waited == [1, 2, 4, 8, 16, 32, 60, 60, 60]
        await case.see(starts("job-9"), starts("job-9", phase="Running", version=2))
        await case.see(starts("job-10"))
        await asyncio.sleep(75)
        assert case.may_start()


@virtual
async def test_of_pods_that_are_late_together_the_one_that_knows_why_is_heard() -> None:
    case = Case(startTimeoutSeconds=10)
    async with case.running():
        await case.see(starts("job-0"), starts("job-1", NO_IMAGE, index=1))
        await asyncio.sleep(15)
    said = case.gave_back()
    assert "pod job-1 gave its GPU back" in said and "ErrImagePull" in said


@virtual
async def test_pods_of_a_job_that_are_late_together_count_once() -> None:
    case = Case(startTimeoutSeconds=10)
    async with case.running():
        await case.see(*(starts(f"job-{i}", index=i) for i in range(5)))
        await asyncio.sleep(15)
        assert len(case.evictions) == 5 and not case.may_start()
        await asyncio.sleep(60)
        assert case.may_start()


@pytest.mark.parametrize("controller, evicted", [("ReplicaSet", 1), ("", 0)])
def test_a_pod_that_asks_by_itself_gives_way_where_another_one_is_made(
    controller: str, evicted: int
) -> None:
    @virtual
    async def run() -> None:
        case = Case(startTimeoutSeconds=60)
        pod = asking(controller=controller, node="a", devices=half(), containerStatuses=CREATING)
        async with case.running():
            await case.see(pod)
            await asyncio.sleep(70)
            assert len(case.evictions) == evicted
            case.handler.gone("team-a", "web-1", "uid-web-1")
            await case.see(asking("web-2"))
        (job,) = case.state.waiting_jobs()
        assert job.doubtful == bool(evicted)

    run()


@pytest.mark.parametrize("ahead", [3600.0, -3600.0, 86_400.0, -86_400.0, -1e9])
def test_the_clock_of_its_node_gives_a_pod_neither_more_nor_less_time(ahead: float) -> None:
    @virtual
    async def run() -> None:
        case = Case(startTimeoutSeconds=60)
        case.state.beginnings.live = True
        started = datetime.fromtimestamp(case.state.waiting.doubts._now() + ahead, UTC)
        async with case.running():
            await case.see(starts(startTime=started.isoformat()))
            await asyncio.sleep(58)
            assert case.evictions == []
            await asyncio.sleep(4)
        assert case.evictions == ["job-0"]

    run()
