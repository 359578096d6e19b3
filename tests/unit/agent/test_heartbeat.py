import asyncio
from datetime import UTC, datetime
from typing import Any

from tests.unit.agent.fake_api import FakeApi
from tests.unit.runtime.virtual_loop import Running, virtual

from gpu_scheduler.agent.heartbeat import Heartbeat
from gpu_scheduler.kube import errors

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)


def heartbeat(api: FakeApi, **changes: Any) -> Heartbeat:
    given: dict[str, Any] = {
        "node": "n1",
        "namespace": "gpu-system",
        "lease_seconds": 40.0,
        "renew_seconds": 10.0,
        "node_uid": lambda: "node-uid",
        "now": lambda: NOW,
    }
    return Heartbeat(api, **{**given, **changes})


async def test_the_lease_is_as_the_operator_expects_it() -> None:
    api = FakeApi()
    await heartbeat(api).beat()
    ((path, body),) = api.applied
    assert path == "/apis/coordination.k8s.io/v1/namespaces/gpu-system/leases/gpu-node-n1"
    assert body["metadata"]["labels"] == {"gpu-scheduler.io/component": "agent"}
    assert body["metadata"]["ownerReferences"][0]["uid"] == "node-uid"
    assert body["spec"] == {
        "holderIdentity": "n1",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-02T03:04:05.000678Z",
    }


async def test_without_the_nodes_uid_it_has_no_owner() -> None:
    api = FakeApi()
    await heartbeat(api, node_uid=lambda: "").beat()
    assert "ownerReferences" not in api.applied[0][1]["metadata"]


@virtual
async def test_it_beats_every_ten_seconds() -> None:
    api = FakeApi()
    async with Running(heartbeat(api).run()):
        await asyncio.sleep(95)
    assert len(api.applied) == 10


@virtual
async def test_after_a_failure_it_tries_again_soon() -> None:
    api = FakeApi()
    api.fail.extend([errors.Unavailable(message="refused")] * 5)
    beating = heartbeat(api)
    async with Running(beating.run()):
        await asyncio.sleep(9)
        assert beating.failures == 5
        await asyncio.sleep(2)
        assert (beating.failures, len(api.applied)) == (0, 1)


@virtual
async def test_it_stops_while_what_the_agent_reports_is_not_true() -> None:
    api = FakeApi()
    alive = [True]
    async with Running(heartbeat(api, alive=lambda: alive[0]).run()):
        await asyncio.sleep(15)
        alive[0] = False
        await asyncio.sleep(100)
    assert len(api.applied) == 2
