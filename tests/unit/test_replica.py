"""A replica that stands by: it ends when told to, and never takes the Lease with it."""

import asyncio
import os
import signal

from aiohttp import ClientSession
from tests.unit.kube.fake_server import Answer, FakeServer

from gpu_scheduler.api.names import LABEL_LEADER
from gpu_scheduler.replica import run
from gpu_scheduler.runtime.common.settings import OperatorSettings

LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases"
LEASE = f"{LEASES}/gpu-scheduler-leader"
SETTINGS = OperatorSettings(identity="me", admin_port=0)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


async def finished(replica: asyncio.Task[int]) -> int:
    return await asyncio.wait_for(replica, 60)


async def test_a_stand_by_that_is_told_to_stop_ends_well_and_touches_nothing() -> None:
    async with FakeServer() as server:
        spec = {"holderIdentity": "other", "leaseDurationSeconds": 15}
        server.put(LEASE, {"spec": spec})
        replica = asyncio.create_task(run(SETTINGS, server.connection))
        await server.changes.until(lambda: len(server.seen) >= 1)
        terminate()
        assert await finished(replica) == 0
        assert server.objects[LEASE]["spec"] == spec
        assert {seen.method for seen in server.seen} == {"GET"}


async def test_a_stand_by_that_is_stopped_while_it_takes_the_lease_gives_it_back() -> None:
    """Otherwise the next leader would wait for a holder that does not exist."""
    async with FakeServer() as server:
        server.answers.extend([Answer(404), Answer(stall=True, after=True)])
        replica = asyncio.create_task(run(SETTINGS, server.connection))
        await server.changes.until(lambda: len(server.seen) >= 2)
        assert server.objects[LEASE]["spec"]["holderIdentity"].startswith("me_")
        terminate()
        assert await finished(replica) == 0
        assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_a_server_that_is_away_does_not_keep_a_stand_by_from_ending() -> None:
    async with FakeServer() as server:
        server.answers.extend([Answer(stall=True)] * 20)
        replica = asyncio.create_task(run(SETTINGS, server.connection))
        await server.changes.until(lambda: len(server.seen) >= 1)
        terminate()
        assert await finished(replica) == 0


async def test_a_stand_by_takes_the_leaders_label_off_its_pod_and_no_reports(
    port: int,
) -> None:
    async with FakeServer() as server:
        server.put(LEASE, {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 15}})
        pod = "/api/v1/namespaces/gpu-scheduler/pods/operator-0"
        server.put(pod, {"metadata": {"name": "operator-0"}})
        settings = OperatorSettings(
            identity="me",
            admin_port=0,
            report_port=port,
            report_host="127.0.0.1",
            report_url="http://reports.example/reports",
            pod="operator-0",
        )
        replica = asyncio.create_task(run(settings, server.connection))
        await server.changes.until(lambda: any(seen.method == "PATCH" for seen in server.seen))
        (patch,) = (seen for seen in server.seen if seen.method == "PATCH")
        assert patch.path == pod
        assert patch.body == {"metadata": {"labels": {LABEL_LEADER: None}}}
        async with ClientSession() as session:
            report = session.post(f"http://127.0.0.1:{port}/reports/trials/u", data=b"{}")
            async with report as answer:
                assert answer.status == 503
        terminate()
        assert await finished(replica) == 0
