import asyncio
from datetime import UTC, datetime
from typing import Any

from tests.unit.agent.builders import orders
from tests.unit.agent.fake_api import FakeApi
from tests.unit.runtime.virtual_loop import Running, virtual

from gpu_scheduler.agent.heartbeat import Heartbeat
from gpu_scheduler.agent.settings import AgentSettings
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.unexpected import counts

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)


def heartbeat(api: FakeApi, **changes: Any) -> Heartbeat:
    settings = AgentSettings(node="n1", namespace="gpu-system")
    uid, lease = changes.pop("node_uid", "node-uid"), changes.pop("lease_version", "")
    made = Heartbeat(api, settings, **{"now": lambda: NOW, **changes})
    made.take(orders(node_uid=uid, lease_version=lease))
    return made


LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-system/leases/gpu-node-n1"


async def test_the_lease_is_as_the_operator_expects_it() -> None:
    api = FakeApi()
    await heartbeat(api).beat()
    ((method, path, body),) = api.writes
    assert (method, path) == ("POST", LEASE)
    assert body["metadata"]["labels"] == {"gpu-scheduler.io/component": "agent"}
    assert body["metadata"]["ownerReferences"][0]["uid"] == "node-uid"
    assert body["spec"] == {
        "holderIdentity": "n1",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-02T03:04:05.000678Z",
    }


async def test_without_the_nodes_uid_it_has_no_owner() -> None:
    api = FakeApi()
    await heartbeat(api, node_uid="").beat()
    assert "ownerReferences" not in api.writes[0][2]["metadata"]


@virtual
async def test_it_beats_every_ten_seconds() -> None:
    api = FakeApi()
    async with Running(heartbeat(api).run()):
        await asyncio.sleep(95)
    assert len(api.writes) == 10


@virtual
async def test_after_a_failure_it_tries_again_soon() -> None:
    api = FakeApi()
    api.fail.extend([errors.Unavailable(message="refused")] * 5)
    beating = heartbeat(api)
    async with Running(beating.run()):
        await asyncio.sleep(9)
        assert (len(api.fail), api.writes) == (0, [])
        await asyncio.sleep(2)
        assert len(api.writes) == 1


@virtual
async def test_it_stops_while_what_the_agent_reports_is_not_true() -> None:
    api = FakeApi()
    alive = [True]
    async with Running(heartbeat(api, alive=lambda: alive[0]).run()):
        await asyncio.sleep(15)
        alive[0] = False
        await asyncio.sleep(100)
    assert len(api.writes) == 2


async def test_before_the_operators_first_word_there_is_none() -> None:
    api = FakeApi()
    silent = Heartbeat(api, AgentSettings(node="n1", namespace="x"))
    assert not await silent.beat()
    assert api.writes == []


async def test_a_lease_that_is_there_is_renewed_at_the_version_that_the_operator_sees() -> None:
    api = FakeApi()
    version = api.write(LEASE, spec={"holderIdentity": "n1"})
    beating = heartbeat(api, lease_version=version)
    assert await beating.beat()
    assert await beating.beat()
    assert api.methods() == ["PUT", "PUT"]


@virtual
async def test_a_lease_that_somebody_deleted_is_made_again_at_once() -> None:
    api = FakeApi()
    async with Running(heartbeat(api).run()):
        await asyncio.sleep(11)
        del api.objects[LEASE]
        await asyncio.sleep(12)
        assert LEASE in api.objects
    assert api.methods() == ["POST", "PUT", "POST"]


@virtual
async def test_a_lease_that_somebody_changed_is_renewed_when_the_operator_has_told_of_it() -> None:
    api = FakeApi()
    beating = heartbeat(api)
    async with Running(beating.run()):
        await asyncio.sleep(11)
        version = api.write(LEASE, spec={})
        await asyncio.sleep(30)
        assert api.objects[LEASE]["spec"] == {}
        beating.take(orders(lease_version=version))
        await asyncio.sleep(3)
        assert api.objects[LEASE]["spec"]["holderIdentity"] == "n1"


@virtual
async def test_what_nobody_foresaw_ends_no_heartbeat() -> None:
    api = FakeApi()
    told = [RuntimeError("nobody foresaw it")]

    def alive() -> bool:
        if told:
            raise told.pop()
        return True

    before = counts["heartbeat"]
    async with Running(heartbeat(api, alive=alive).run()):
        await asyncio.sleep(5)
    assert (counts["heartbeat"] - before, len(api.writes)) == (1, 1)
