"""What a GPUUsage says from minute to minute, and after a change of leader."""

import asyncio
from typing import Any

import orjson
import pytest
from tests.unit.runtime.fake_client import NOT_FOUND, FakeClient
from tests.unit.runtime.usage.stage import UsageStage, follow
from tests.unit.state.builders import USABLE_MIB, gpujob_body

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.gpuusage import MOST_BYTES, GPUUsageStatus, Workload
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusDetails
from gpu_scheduler.runtime.usage import usage_objects
from gpu_scheduler.runtime.usage.kept_work import KeptWork
from gpu_scheduler.runtime.usage.usage_objects import status_of
from gpu_scheduler.state.jobs.job import job_key
from gpu_scheduler.usage.answer import Totals


async def minute(stage: UsageStage) -> None:
    stage.answers()
    await stage.minute.look()


async def test_a_running_job_is_shown_with_what_it_does() -> None:
    stage = UsageStage()
    stage.job()
    pod = stage.runs()
    for _ in range(3):
        stage.works(pod, 60)
        await minute(stage)
    shown = stage.workload()
    assert (shown["kind"], shown["name"], shown["uid"]) == ("GPUJob", "job", "gpujob-uid")
    assert (shown["state"], shown["gpus"], shown["pods"]) == ("Running", 0.5, 1)
    assert shown["busy"] == {"now": 70, "mean": 70, "p50": 80, "p95": 80}
    assert shown["memoryMiB"] == {"now": 1000, "peak": 1000, "cap": USABLE_MIB // 2}
    assert (shown["gpuSeconds"], shown["usedGPUSeconds"]) == (90, 90)  # at most the share
    assert shown["curve"] == {
        "stepSeconds": 60,
        "busyPercent": [70, 70, 70],
        "memoryMiB": [1000, 1000, 1000],
        "cpuPercent": [150, 150, 150],
    }
    assert "idleSince" not in shown


async def test_nothing_is_written_while_nothing_moves() -> None:
    stage = UsageStage()
    stage.job()
    pod = stage.runs()
    await minute(stage)
    stage.works(pod, 60)
    await minute(stage)
    before = stage.minute.objects.writes
    await stage.minute.objects.write()
    assert stage.minute.objects.writes == before


async def test_what_is_not_known_is_absent() -> None:
    stage = UsageStage()
    stage.job()
    stage.runs()
    await stage.minute.look()  # no agent has said anything
    shown = stage.workload()
    assert shown["busy"] == {}
    assert "now" not in shown["memoryMiB"]
    assert shown["gpus"] == 0.5
    assert shown["curve"]["busyPercent"] == [-1]


async def test_pods_that_ended_still_count() -> None:
    stage = UsageStage()
    stage.job()
    first = stage.runs()
    stage.works(first, 60, busy=1.0, mib=3000)
    await minute(stage)
    stage.ends(first)
    second = stage.runs("job-1")
    stage.works(second, 60, busy=0.0, mib=500)
    await minute(stage)
    shown = stage.workload()
    assert shown["busy"]["mean"] == 50
    assert shown["memoryMiB"]["peak"] == 3000
    assert shown["gpuSeconds"] == 60


async def test_a_job_between_two_pods_has_not_ended_and_one_that_is_over_has() -> None:
    stage = UsageStage()
    stage.job()
    pod = stage.runs()
    stage.works(pod, 60)
    await minute(stage)
    stage.ends(pod)
    await minute(stage)
    assert (stage.workload()["state"], stage.workload()["gpus"]) == ("Running", 0)
    stage.job("Succeeded", version=2)
    await minute(stage)
    shown = stage.workload()
    assert shown["state"] == "Ended"
    assert shown["gpuSeconds"] == 30
    assert shown["busy"]["mean"] == 70
    assert "now" not in shown["busy"]


async def test_an_idle_one_says_since_when() -> None:
    stage = UsageStage()
    stage.job()
    pod = stage.runs()
    stage.works(pod, 60)
    await minute(stage)
    stage.works(pod, 120, busy=0.0)
    await minute(stage)
    assert stage.workload()["idleSince"] == "2023-11-14T22:30:00Z"


async def test_another_leader_goes_on_from_the_object_and_the_agents() -> None:
    async def history(changes: set[int]) -> dict[str, Any]:
        stage = UsageStage()
        stage.job()
        pod = stage.runs()
        for number in range(90):
            stage.works(pod, 60, busy=number % 10 / 10, mib=1000 + number)
            await minute(stage)
            if number in changes:
                stage = await follow(stage)
        stage.ends(pod)
        stage.job("Succeeded", version=2)
        await minute(stage)
        return stage.workload()

    undisturbed, disturbed = await history(set()), await history({3, 40, 77})
    assert disturbed == undisturbed


async def test_one_that_somebody_deleted_is_made_again() -> None:
    gone = False

    def reply(sent: Any) -> Any:
        if sent.method == "PATCH" and gone:
            return NOT_FOUND
        return {"metadata": {"uid": "usage-uid"}}

    stage = UsageStage(FakeClient(reply))
    stage.job()
    pod = stage.runs()
    stage.works(pod, 60)
    await minute(stage)
    assert len(stage.client.of("POST")) == 1
    gone = True
    stage.works(pod, 60)
    await minute(stage)
    gone = False
    stage.works(pod, 60)
    await minute(stage)
    assert len(stage.client.of("POST")) == 2


async def test_of_a_namespace_that_is_gone_nothing_is_kept_or_tried_again() -> None:
    gone = errors.NotFound(404, "NotFound", "told so", StatusDetails(name="team-a"))
    stage = UsageStage(FakeClient(lambda sent: gone if sent.method == "POST" else {}))
    stage.job()
    pod = stage.runs()
    stage.works(pod, 60)
    await minute(stage)
    stage.ends(pod)
    stage.state.gpujob_gone(job_key("team-a", "job"))
    for _ in range(20):
        await minute(stage)
    assert len(stage.client.of("POST")) == 1
    assert stage.minute.objects.lately() == set()


async def test_a_kind_that_is_missing_is_no_namespace_that_is_gone() -> None:
    stage = UsageStage(FakeClient(lambda sent: NOT_FOUND if sent.method == "POST" else {}))
    stage.job()
    stage.works(stage.runs(), 60)
    await minute(stage)
    assert stage.minute.objects.lately() == {"gpujob-uid"}


async def test_a_kind_that_is_missing_at_the_start_is_said_once_an_hour_and_when_it_is_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def reply(sent: Any) -> Any:
        nonlocal tries
        tries += 1
        return NOT_FOUND if tries <= 121 else {"metadata": {"resourceVersion": "1"}, "items": []}

    stage, at_once = UsageStage(FakeClient(reply)), asyncio.sleep
    monkeypatch.setattr(usage_objects.asyncio, "sleep", lambda seconds: at_once(0))
    with caplog.at_level("INFO", logger=usage_objects.__name__):
        await stage.minute.objects.restore()
    said = [record.message.partition(":")[0] for record in caplog.records]
    assert said == [
        *["GPUUsages cannot be read, so none is written"] * 2,
        "GPUUsages can be read again",
    ]


def test_what_does_not_fit_is_counted_and_is_the_least() -> None:
    def kept(number: int, ended: float) -> KeptWork:
        shown = Workload.model_validate(
            {
                "kind": "GPUJob",
                "name": f"job-{number}-{'x' * 150}",
                "state": "Ended" if ended else "Running",
                "gpus": number,
            }
        )
        return KeptWork(shown, Totals(), ended=ended)

    running = [kept(number, 0.0) for number in range(50)]
    ended = [kept(number, 1000.0 + number) for number in range(900)]
    body, _ = status_of([*ended, *running])
    status = GPUUsageStatus.model_validate(body)
    assert status.to_json() == body
    assert len(orjson.dumps(status.to_json())) < MOST_BYTES + 1024
    assert status.omitted == 950 - len(status.workloads) > 0
    assert [each.state for each in status.workloads[:50]] == ["Running"] * 50
    assert status.workloads[0].gpus == 49
    assert status.workloads[50].name.startswith("job-899-")  # of those that ended, the last first
    assert status.gpus == sum(range(50))
    assert GPUUsageStatus.model_validate(status.to_json()) == status


@pytest.mark.parametrize("gang", [True, False])
async def test_of_pods_that_wait_for_each_other_the_slowest_is_named(gang: bool) -> None:
    stage = UsageStage()
    stage.job()
    (job,) = stage.state.gpujobs.values()
    spec = {"gang": True} if gang else {}
    job.said = GPUJobSpec.model_validate(gpujob_body(parallelism=3, **spec)["spec"])
    pods = {name: stage.runs(name) for name in ("job-0", "job-1", "job-2")}
    for name, busy in (("job-0", 0.9), ("job-1", 0.3), ("job-2", 0.8)):
        stage.works(pods[name], 60, busy)
    await minute(stage)
    named = {"pod": "job-1", "meanPercent": 30, "medianPercent": 80, "ranks": 3}
    assert stage.workload().get("slowestRank") == (named if gang else None)
    ranks = stage.minute.objects.ranks("team-a", job.uid)
    points = {"job-0": (90,), "job-1": (30,), "job-2": (80,)}
    assert (ranks.shown() if ranks is not None else None) == (points if gang else None)
    for pod in pods.values():
        stage.ends(pod)
    job.status = {"phase": "Succeeded"}
    await minute(stage)
    assert stage.workload()["state"] == "Ended"
    assert stage.workload().get("slowestRank") == (named if gang else None)
