import asyncio
from typing import Any

from tests.unit.runtime.fake_client import AWAY, NOT_LEADER, FakeClient
from tests.unit.runtime.virtual_loop import Running, clock, virtual

from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.common.events import Events, InvolvedObject

JOB = InvolvedObject("GPUJob", "team-a", "job", "gpujob-uid")
PROJECT = InvolvedObject("GPUProject", "", "team-a", "project-uid")


def make(client: FakeClient, **settings: Any) -> Events:
    return Events(client, instance="me", clock=clock, **settings)  # type: ignore[arg-type]


@virtual
async def test_an_event_is_written_beside_its_object() -> None:
    client = FakeClient()
    events = make(client)
    events.say(JOB, "Warning", "PodRejected", "no CPU")
    events.say(PROJECT, "Normal", "Accepted", "fine")
    async with Running(events.run()):
        await asyncio.sleep(1)
    first, second = client.sent
    assert first.path == "/api/v1/namespaces/team-a/events"
    assert first.body["involvedObject"]["uid"] == "gpujob-uid"
    assert (first.body["type"], first.body["reason"]) == ("Warning", "PodRejected")
    assert second.path == "/api/v1/namespaces/default/events"


@virtual
async def test_the_same_is_said_once_in_ten_minutes() -> None:
    client = FakeClient()
    events = make(client)
    async with Running(events.run()):
        for _ in range(3):
            events.say(JOB, "Normal", "Fragmented", "0.3 free")
            await asyncio.sleep(100)
        events.say(JOB, "Normal", "Fragmented", "0.4 free")
        await asyncio.sleep(400)
        events.say(JOB, "Normal", "Fragmented", "0.3 free")
        await asyncio.sleep(1)
    assert [sent.body["message"] for sent in client.sent] == ["0.3 free", "0.4 free", "0.3 free"]


@virtual
async def test_of_very_many_different_events_the_oldest_are_no_longer_known() -> None:
    client = FakeClient()
    events = make(client, limit=20_000)
    for number in range(10_001):
        events.say(JOB, "Warning", "Fragmented", f"{number} free")
    events.say(JOB, "Warning", "Fragmented", "10000 free")  # said a moment ago
    events.say(JOB, "Warning", "Fragmented", "0 free")  # said so long ago that it is news again
    async with Running(events.run()):
        await asyncio.sleep(1)
    assert len(client.sent) == 10_002
    assert client.sent[-1].body["message"] == "0 free"


@virtual
async def test_events_that_cannot_be_written_are_dropped() -> None:
    client = FakeClient(lambda sent: AWAY)
    events = make(client, limit=5)
    for number in range(100):
        events.say(JOB, "Normal", "Many", str(number))
    async with Running(events.run()):
        await asyncio.sleep(1)
    assert len(client.sent) == 5


@virtual
async def test_long_sentences_fit() -> None:
    client = FakeClient()
    events = make(client)
    events.say(InvolvedObject("GPUJob", "team-a", "n" * 253, "u"), "Normal", "Long", "x" * 5000)
    async with Running(events.run()):
        await asyncio.sleep(1)
    (sent,) = client.sent
    assert len(sent.body["message"]) == 1024
    assert len(sent.body["metadata"]["name"]) <= 253


@virtual
async def test_a_closed_fence_ends_it() -> None:
    events = make(FakeClient(lambda sent: NOT_LEADER))
    events.say(JOB, "Normal", "Late", "")
    results = await asyncio.gather(events.run(), return_exceptions=True)
    assert isinstance(results[0], errors.NotLeader)


@virtual
async def test_of_thousands_that_begin_to_wait_only_the_first_are_told_that_all_is_well() -> None:
    client = FakeClient()
    events = make(client, limit=20_000)
    for number in range(5_000):
        job = InvolvedObject("GPUJob", "team-a", f"job-{number}", f"uid-{number}")
        events.say(job, "Normal", "WaitingForGPU", "no GPU is free")
    events.say(JOB, "Warning", "Invalid", "spec.gpu: wrong")
    async with Running(events.run()):
        await asyncio.sleep(1)
    reasons = [sent.body["reason"] for sent in client.sent]
    assert len(reasons) < 100 and reasons[-1] == "Invalid"
