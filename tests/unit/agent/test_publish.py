import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.unit.agent.builders import orders
from tests.unit.agent.fake_api import FakeApi
from tests.unit.runtime.virtual_loop import Running, clock, virtual

from gpu_scheduler.agent.publish import Publisher
from gpu_scheduler.api.gpunode import GPUNodeStatus
from gpu_scheduler.api.orders import GPUNodeAt
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.unexpected import counts

GPUNODE = "/apis/gpu-scheduler.io/v1alpha1/gpunodes/n1"


def status(gpus: int = 2) -> GPUNodeStatus:
    return GPUNodeStatus.model_validate({"gpus": gpus})


def publisher(api: FakeApi) -> Publisher:
    made = Publisher(api, "n1", clock)
    made.take(orders())
    return made


def at(version: str) -> GPUNodeAt:
    return GPUNodeAt("uid", version)


@virtual
async def test_the_object_is_made_first_and_belongs_to_its_node() -> None:
    api = FakeApi()
    writing = publisher(api)
    writing.publish(status())
    await writing.write()
    (_, made, body), (_, written, _) = api.writes
    assert api.methods() == ["POST", "PUT"]
    assert (made, written) == (GPUNODE, GPUNODE)
    assert body["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid"}
    ]
    assert api.statuses() == [{"gpus": 2, "devices": []}]


@virtual
async def test_only_a_change_is_written() -> None:
    api = FakeApi()
    writing = publisher(api)
    async with Running(writing.run()):
        for gpus in (2, 2, 2, 3, 3):
            writing.publish(status(gpus))
            await asyncio.sleep(1)
    assert [each["gpus"] for each in api.statuses()] == [2, 3]
    assert api.methods() == ["POST", "PUT", "PUT"]


@virtual
async def test_what_is_true_later_is_written_when_the_server_is_back() -> None:
    api = FakeApi()
    writing = publisher(api)
    api.fail.extend([errors.Unavailable(message="refused")] * 3)
    assert writing.behind_seconds() == float("inf")
    async with Running(writing.run()):
        writing.publish(status(2))
        await asyncio.sleep(3)
        assert api.statuses() == []
        writing.publish(status(3))
        await asyncio.sleep(10)
    assert [each["gpus"] for each in api.statuses()] == [3]
    assert writing.behind_seconds() == 0


@virtual
async def test_how_long_the_server_has_not_had_the_truth_is_counted() -> None:
    api = FakeApi()
    writing = publisher(api)
    writing.publish(status(2))
    await writing.write()
    await asyncio.sleep(50)
    assert writing.behind_seconds() == 0
    writing.publish(status(3))
    await asyncio.sleep(7)
    writing.publish(status(4))
    assert writing.behind_seconds() == 7


@asynccontextmanager
async def written() -> AsyncIterator[tuple[FakeApi, Publisher]]:
    """What has written its GPUNode, and goes on."""
    api = FakeApi()
    writing = publisher(api)
    writing.publish(status(2))
    async with Running(writing.run()):
        await asyncio.sleep(1)
        yield api, writing


@virtual
async def test_a_gpunode_that_somebody_deleted_is_written_again_at_once() -> None:
    async with written() as (api, writing):
        del api.objects[GPUNODE]
        writing.take(orders(gpu_node=None, lease_version="7"))
        await asyncio.sleep(0.1)
    assert api.objects[GPUNODE]["status"] == {"gpus": 2, "devices": []}


@virtual
async def test_one_that_was_deleted_unseen_comes_back_with_the_next_change() -> None:
    async with written() as (api, writing):
        del api.objects[GPUNODE]
        writing.publish(status(3))
        await asyncio.sleep(0.1)
    assert api.objects[GPUNODE]["status"]["gpus"] == 3


@virtual
async def test_one_that_somebody_overwrote_is_written_again_at_once() -> None:
    async with written() as (api, writing):
        version = api.write(GPUNODE, status={})
        writing.take(orders(gpu_node=at(version)))
        await asyncio.sleep(0.1)
    assert api.objects[GPUNODE]["status"]["gpus"] == 2


@virtual
async def test_the_echo_of_its_own_write_and_old_news_are_no_reason_to_write() -> None:
    api = FakeApi()
    writing = publisher(api)
    async with Running(writing.run()):
        writing.publish(status(2))
        await asyncio.sleep(1)
        first = str(api.version)
        writing.publish(status(3))
        await asyncio.sleep(1)
        before = len(api.writes)
        for version in (first, str(api.version), "1", "", "odd"):
            writing.take(orders(gpu_node=at(version)))
            await asyncio.sleep(1)
    assert len(api.writes) == before


@virtual
async def test_news_from_before_it_was_made_make_no_second_one() -> None:
    api = FakeApi()
    writing = publisher(api)
    async with Running(writing.run()):
        writing.publish(status(2))
        await asyncio.sleep(1)
        writing.take(orders(gpu_node=None, lease_version="5"))
        await asyncio.sleep(3)
        writing.take(orders(gpu_node=at(api.objects[GPUNODE]["metadata"]["resourceVersion"])))
        await asyncio.sleep(3)
        writing.publish(status(4))
        await asyncio.sleep(3)
    assert api.methods().count("POST") == 1
    assert api.objects[GPUNODE]["status"]["gpus"] == 4


@virtual
async def test_a_fresh_agent_goes_on_with_the_gpunode_that_is_there() -> None:
    api = FakeApi()
    version = api.write(GPUNODE, status={"gpus": 7})
    writing = Publisher(api, "n1", clock)
    async with Running(writing.run()):
        writing.publish(status(2))
        await asyncio.sleep(30)
        assert api.methods() == [], "not before the operator's first word"
        writing.take(orders(gpu_node=at(version)))
        assert (await writing.last()).gpus == 7
        await asyncio.sleep(1)
    assert api.methods() == ["PUT"]
    assert api.objects[GPUNODE]["status"]["gpus"] == 2


@virtual
async def test_after_a_conflict_it_waits_for_the_operators_word() -> None:
    api = FakeApi()
    writing = publisher(api)
    async with Running(writing.run()):
        writing.publish(status(2))
        await asyncio.sleep(1)
        version = api.write(GPUNODE, status={})
        writing.publish(status(3))
        await asyncio.sleep(60)
        assert api.statuses()[-1]["gpus"] == 2
        writing.take(orders(gpu_node=at(version)))
        await asyncio.sleep(3)
    assert api.statuses()[-1]["gpus"] == 3
    assert writing.behind_seconds() == 0


@virtual
async def test_the_last_status_is_read_back() -> None:
    api = FakeApi()
    nothing = GPUNodeStatus.model_validate({})
    assert await publisher(api).last() == nothing
    for known, expected in (({"gpus": 7}, 7), ({"gpus": "many"}, None)):
        reading = Publisher(api, "n1", clock)
        reading.take(orders(gpu_node=at(api.write(GPUNODE, status=known))))
        assert (await reading.last()).gpus == expected
    api.fail.append(errors.Unavailable(message="refused"))
    assert await reading.last() == nothing
    assert api.methods() == []


@virtual
async def test_what_nobody_foresaw_ends_no_publisher(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi()
    writing = publisher(api)
    before = counts["publisher"]
    api.fail.append(RuntimeError("nobody foresaw it"))  # type: ignore[arg-type]
    async with Running(writing.run()):
        writing.publish(status(2))
        await asyncio.sleep(5)
    assert counts["publisher"] == before + 1
    assert [each["gpus"] for each in api.statuses()] == [2]
