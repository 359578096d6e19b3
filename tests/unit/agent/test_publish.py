import asyncio
from collections.abc import Iterator

import pytest
from tests.unit.agent.fake_api import FakeApi
from tests.unit.runtime.virtual_loop import Running, clock, virtual

from gpu_scheduler.agent.publish import Publisher
from gpu_scheduler.api.gpunode import GPUNodeStatus
from gpu_scheduler.kube import errors

GPUNODE = "/apis/gpu-scheduler.io/v1alpha1/gpunodes/n1"


def status(gpus: int = 2) -> GPUNodeStatus:
    return GPUNodeStatus.model_validate({"gpus": gpus})


@pytest.fixture
def api() -> Iterator[FakeApi]:
    yield FakeApi()


async def test_the_object_is_made_first_and_belongs_to_its_node(api: FakeApi) -> None:
    publisher = Publisher(api, "n1")
    publisher.publish(status())
    await publisher.write()
    (made, body), (written, _) = api.applied
    assert (made, written) == (GPUNODE, f"{GPUNODE}/status")
    assert body["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid"}
    ]
    assert api.statuses() == [{"gpus": 2, "devices": []}]


@virtual
async def test_only_a_change_is_written() -> None:
    api = FakeApi()
    publisher = Publisher(api, "n1", clock)
    async with Running(publisher.run()):
        for gpus in (2, 2, 2, 3, 3):
            publisher.publish(status(gpus))
            await asyncio.sleep(1)
    assert [each["gpus"] for each in api.statuses()] == [2, 3]
    assert len(api.applied) == 3


@virtual
async def test_what_is_true_later_is_written_when_the_server_is_back() -> None:
    api = FakeApi()
    publisher = Publisher(api, "n1", clock)
    api.fail.extend([errors.Unavailable(message="refused")] * 3)
    assert publisher.behind_seconds() == float("inf")
    async with Running(publisher.run()):
        publisher.publish(status(2))
        await asyncio.sleep(3)
        assert api.statuses() == []
        publisher.publish(status(3))
        await asyncio.sleep(10)
    assert [each["gpus"] for each in api.statuses()] == [3]
    assert publisher.behind_seconds() == 0


@virtual
async def test_how_long_the_server_has_not_had_the_truth_is_counted() -> None:
    api = FakeApi()
    publisher = Publisher(api, "n1", clock)
    publisher.publish(status(2))
    await publisher.write()
    await asyncio.sleep(50)
    assert publisher.behind_seconds() == 0
    publisher.publish(status(3))
    await asyncio.sleep(7)
    publisher.publish(status(4))
    assert publisher.behind_seconds() == 7


@virtual
async def test_a_gpunode_that_somebody_deleted_comes_back() -> None:
    api = FakeApi()
    publisher = Publisher(api, "n1", clock)
    publisher.publish(status(2))
    async with Running(publisher.run()):
        await asyncio.sleep(1)
        del api.objects[GPUNODE]
        await asyncio.sleep(400)
    assert GPUNODE in api.objects
    assert [each["gpus"] for each in api.statuses()] == [2, 2]


async def test_the_last_status_is_read_back(api: FakeApi) -> None:
    publisher = Publisher(api, "n1")
    assert await publisher.last() == GPUNodeStatus.model_validate({})
    api.objects[GPUNODE] = {"status": {"gpus": 7}}
    assert (await publisher.last()).gpus == 7
    api.objects[GPUNODE] = {"status": {"gpus": "many"}}
    assert (await publisher.last()).gpus is None
    api.fail.append(errors.Unavailable(message="refused"))
    assert (await publisher.last()).gpus is None
