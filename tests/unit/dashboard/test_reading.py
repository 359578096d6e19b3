"""What the leader knows becomes rows that equal what kubectl shows."""

import pytest
from msgspec.structs import replace
from tests.unit.dashboard import rows
from tests.unit.dashboard.stage import Stage
from tests.unit.runtime.usage.stage import NODE
from tests.unit.state.builders import gpujob_body, half, make_pod

from gpu_scheduler.api import names
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.dashboard.content import device, jobs
from gpu_scheduler.dashboard.reading import picture_maker
from gpu_scheduler.dashboard.reading.queue import asked_words, pending_by_project
from gpu_scheduler.dashboard.rows import WorkRef
from gpu_scheduler.dashboard.visible import ALL
from gpu_scheduler.state.jobs.job import job_key
from gpu_scheduler.usage.answer import DeviceHealth, DeviceNow, ProcessNow

JOB = WorkRef(namespace="team-a", kind="GPUJob", name="job")


async def test_a_job_that_runs() -> None:
    stage = Stage()
    stage.job()
    pod = stage.runs()
    stage.works(pod, 60)
    stage.answers()
    found = await stage.picture()
    (row,) = found.works
    assert (row.ref, row.project, row.phase) == (JOB, "vision", "Running")
    assert (row.asked, row.held, row.busy, row.memory_mib) == (1.0, 0.5, 0.7, 1000.0)
    (node,) = found.nodes
    (share,) = node.devices[0].shares
    assert (share.ref, share.pod, share.gpus, share.busy) == (JOB, "job-0", 0.5, 0.7)
    assert (node.name, node.free, node.devices[0].free) == (NODE, 1.5, 0.5)
    (project,) = found.projects
    assert (project.held, project.busy, project.borrowed, project.running) == (0.5, 0.5, 0, 1)
    assert sum(found.parts.values()) == 2
    page = jobs.one(found, ALL, {"namespace": "team-a", "kind": "GPUJob", "name": "job"})
    assert page is not None
    assert (page.placed[0].pod, page.placed[0].devices) == ("job-0", (0,))
    assert page.beside[0].node == NODE and page.may_suspend
    assert page.commands["suspend"] == "kubectl gpu suspend job -n team-a"


async def test_a_device_has_its_health_and_its_processes() -> None:
    stage = Stage()
    stage.job()
    pod = stage.runs()
    process = ProcessNow(pid=7, memory_mib=900.0, busy=0.7)
    stage.shares[pod.uid] = replace(stage.shares[pod.uid], processes=(process,))
    asked = {"node": NODE, "index": "0"}
    page = device.page(await stage.picture(), ALL, asked)
    assert page is not None and (page.health, page.processes) == (None, ())
    health = DeviceHealth(celsius=81.0, slowed=("thermal", "new-word"), xids={79: 1, 31: 4})
    stage.answers(devices=(DeviceNow(uuid="0", busy=0.7, health=health),))
    page = device.page(await stage.picture(), ALL, asked)
    assert page is not None and page.health is not None
    assert page.health.slowed == ("heat", "new-word") and page.device.celsius == 81.0
    assert [(each.code, each.times) for each in page.health.xids or ()] == [(31, 4), (79, 1)]
    (row,) = page.processes
    assert (row.pid, row.ref, row.pod, row.container) == (7, JOB, "job-0", "main")
    assert page.node.name == NODE and page.node.devices == ()
    assert device.page(await stage.picture(), ALL, asked | {"index": "9"}) is None


async def test_a_device_says_who_held_it_before() -> None:
    stage = Stage()
    stage.job()
    asked = {"node": NODE, "index": "0"}
    pod = make_pod("job-0", node=NODE, devices=half(), phase="Running")
    stage.earlier.observe(pod, stage.runs())
    page = device.page(await stage.picture(), ALL, asked)
    assert page is not None and page.earlier == () and page.earlier_from == stage.earlier.began
    stage.seconds += 60
    over = stage.state.pod_changed(make_pod("job-0", node=NODE, phase="Succeeded", version=2))
    assert over is not None
    stage.earlier.observe(pod, over)
    page = device.page(await stage.picture(), ALL, asked)
    assert page is not None
    (row,) = page.earlier
    assert (row.ref, row.gpus, row.pods, row.until - row.since) == (JOB, 0.5, 1, 61)


async def test_the_life_of_a_job_has_its_cores_beside_the_use_of_its_gpus() -> None:
    stage = Stage()
    stage.job()
    stage.works(stage.runs(), 60)
    stage.answers()
    await stage.minute.look()
    found = await stage.picture()
    page = jobs.one(found, ALL, {"namespace": "team-a", "kind": "GPUJob", "name": "job"})
    assert page is not None and page.curve is not None
    assert (page.curve.busy, page.curve.memory_mib) == ((0.7,), (1000.0,))
    assert (page.curve.cpu_cores, page.curve.cpu_limit) == ((1.5,), 4.0)


async def test_the_pods_of_a_gang_have_a_curve_each_and_the_slowest_is_named() -> None:
    stage = Stage()
    stage.job()
    (job,) = stage.state.gpujobs.values()
    job.said = GPUJobSpec.model_validate(gpujob_body(parallelism=2, gang=True)["spec"])
    for name, busy in (("job-0", 0.9), ("job-1", 0.3)):
        stage.works(stage.runs(name), 60, busy)
    stage.answers()
    await stage.minute.look()
    page = jobs.one(
        await stage.picture(), ALL, {"namespace": "team-a", "kind": "GPUJob", "name": "job"}
    )
    assert page is not None and page.ranks is not None and page.slowest is not None
    assert (page.slowest.pod, page.slowest.mean, page.slowest.median) == ("job-1", 0.3, 0.6)
    assert [(each.pod, each.busy) for each in page.ranks.pods] == [
        ("job-0", (0.9,)),
        ("job-1", (0.3,)),
    ]
    assert page.at - page.ranks.start == pytest.approx(61.0)


async def test_an_idle_job_is_listed_with_what_it_wasted() -> None:
    stage = Stage()
    stage.job()
    stage.works(stage.runs(), 7200, busy=0.0)
    stage.answers()
    found = await stage.picture()
    (row,) = found.idle
    assert row.ref == JOB
    assert row.gpu_hours == pytest.approx(1.0, rel=0.01)
    assert found.projects[0].idle == 0.5 and found.projects[0].busy == 0


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ((DeviceRequest(0, 1, 500),), "0.5"),
        ((DeviceRequest(0, 2, 1000),), "2"),
        ((DeviceRequest(0, 2, 500),), "2 × 0.5"),
        ((DeviceRequest(0, 1, 250), DeviceRequest(1, 1, 500)), "0.25 + 0.5"),
    ],
)
def test_what_a_pod_asks_for(devices: tuple[DeviceRequest, ...], expected: str) -> None:
    assert asked_words(devices) == expected


async def test_what_waits_says_what_its_status_says() -> None:
    stage = Stage()
    stage.waits(
        phase="Pending", reason="WaitingForQuota", message="vision uses all", queuePosition=3,
        pods={"pending": 2, "running": 0, "succeeded": 0, "failed": 0},
        conditions=[{"type": "Placed", "status": "False", "reason": "WaitingForQuota",
                     "lastTransitionTime": "2026-01-02T00:00:00Z"}],
    )  # fmt: skip
    found = await stage.picture()
    (row,) = found.queue
    assert (row.reason, row.message, row.position) == ("WaitingForQuota", "vision uses all", 3)
    assert (row.each, row.pods, row.gpus, row.since) == ("0.5", 2, 1.0, 1767312000.0)
    assert found.projects[0].waiting == 1 and found.projects[0].pending == 1.0
    assert not row.mends


@pytest.mark.parametrize(
    ("reason", "mends", "waiting", "pending"),
    [
        (Reason.INVALID, True, 1, 0.0),
        (Reason.EXCEEDS_QUOTA, True, 1, 0.0),
        (Reason.UNSATISFIABLE, True, 1, 0.0),
        (Reason.VOLUME_NOT_MOUNTED, True, 1, 0.0),
        (Reason.DELETING, True, 0, 0.0),
        (Reason.FRAGMENTED, False, 1, 1.0),
        (Reason.WAITING_FOR_QUOTA, False, 1, 1.0),
    ],
)
async def test_what_has_to_be_mended_waits_and_asks_for_nothing(
    reason: Reason, mends: bool, waiting: int, pending: float
) -> None:
    stage = Stage()
    stage.waits(phase="Pending", reason=str(reason), message="spec.gpu: 7", pods={"pending": 2})
    found = await stage.picture()
    assert [row.mends for row in found.queue] == [mends]
    assert (found.projects[0].waiting, found.projects[0].pending) == (waiting, pending)


def test_what_has_its_place_and_cannot_start_there_does_not_wait_for_one() -> None:
    row = rows.queued("next", reason=str(Reason.IMAGE_NOT_PULLED), mends=True)
    placed = rows.job("next", reason=str(Reason.IMAGE_NOT_PULLED))
    assert pending_by_project([row], [placed]) == {}
    assert pending_by_project([row], []) == {"vision": (1, 0.0)}


async def test_rows_are_made_anew_only_where_something_changed() -> None:
    stage = Stage()
    stage.job()
    stage.waits(phase="Pending", reason="WaitingForQuota")
    first = {row.ref: row for row in (await stage.picture()).works}
    stage.state.gpujobs[job_key("team-a", "job")].status = {"phase": "Succeeded"}
    second = {row.ref: row for row in (await stage.picture()).works}
    later = WorkRef(namespace="team-a", kind="GPUJob", name="later")
    assert second[later] is first[later]
    assert second[JOB].phase == "Succeeded"


async def test_pods_that_ask_by_themselves_are_rows_of_their_owner() -> None:
    stage = Stage()
    asked = {names.ASKED: f"0:{names.ASK_GPU}=0.5"}
    made = make_pod(
        "api-1", node=NODE, devices=half("1"), phase="Running", annotations_=asked, job=None
    )
    stage.state.pod_changed(made)
    found = await stage.picture()
    (row,) = found.works
    assert (row.ref, row.phase) == (
        WorkRef(namespace="team-a", kind="Pod", name="api-1"),
        "Running",
    )
    page = jobs.one(found, ALL, {"namespace": "team-a", "kind": "Pod", "name": "api-1"})
    assert page is not None and not page.may_suspend
    assert page.commands["why"] == "kubectl gpu why pod/api-1 -n team-a"


async def test_charts_say_since_when_a_project_borrows() -> None:
    stage = Stage()
    stage.job()
    for number in range(3):
        stage.runs(f"job-{number}", version=number + 1)
    for _ in range(30):
        stage.seconds += 10
        await stage.charts.look()
    found = await stage.picture()
    (project,) = found.projects
    assert project.borrowed == 0.5 and project.borrowed_since is not None
    assert 280 <= found.at - project.borrowed_since <= 310
    chart = found.details.chart("vision", "1h")
    assert chart is not None and chart.held[-2] == 1.5 and chart.gpus[-2] == 1.0
    whole = found.details.chart("", "24h")
    assert whole is not None and whole.gpus[-1] == 2.0 and whole.held[0] is None


async def test_where_there_is_much_pictures_come_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(picture_maker, "_SECONDS_OF_EACH", 2.0)
    stage = Stage()
    stage.waits(phase="Pending")
    first = await stage.picture()
    assert await stage.picture() is first, "a second later"
    assert await stage.picture() is not first, "two seconds later"
