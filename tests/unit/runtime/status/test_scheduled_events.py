"""The Event ``Scheduled``: of which pods, what it says, and that it holds up nobody."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.runtime.fake_client import AWAY, NOT_LEADER, FakeClient
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import make_assignment, make_pod
from tests.unit.state.pods.test_shares import asking

from gpu_scheduler.api.names import ASK_MODELS, ASKED
from gpu_scheduler.api.share_keys import KAI_LIMIT, KAI_REQUEST, NOT_READ
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.common.events import Events
from gpu_scheduler.runtime.status.scheduled_events import MOST, PAUSE_SECONDS, ScheduledEvents
from gpu_scheduler.state.pods.slim import slim


class Case:
    def __init__(self, reply: Callable[[Any], Any] = lambda sent: {}, **settings: Any) -> None:
        self.client = FakeClient(reply)
        self.events = Events(self.client, instance="me", clock=clock)  # type: ignore[arg-type]
        self.idle = asyncio.Event()
        self.idle.set()
        self.scheduled = ScheduledEvents(self.events, now=lambda: "then", **settings)

    def place(self, *pods: Pod, devices: tuple[DeviceAllocation, ...] | None = None) -> None:
        for pod in pods:
            self.scheduled.placed(make_assignment(pod.metadata.name, devices=devices), pod)

    async def run(self, seconds: float = 1.0) -> None:
        async with Running(self.scheduled.run(self.idle)):
            await asyncio.sleep(seconds)

    @property
    def said(self) -> list[str]:
        return [sent.body["message"] for sent in self.client.sent]


@virtual
async def test_it_says_where_a_pod_went_and_what_it_got() -> None:
    case = Case()
    case.place(asking())
    await case.run()
    (sent,) = case.client.sent
    assert (sent.method, sent.path) == ("POST", "/api/v1/namespaces/team-a/events")
    assert (sent.body["type"], sent.body["reason"]) == ("Normal", "Scheduled")
    assert sent.body["involvedObject"]["uid"] == "uid-web-1"
    assert sent.body["firstTimestamp"] == "then", "when it was placed, not when that was written"
    assert case.said == [
        "Successfully assigned team-a/web-1 to a: 0.5 of device 0 (20480 MiB)",
    ]


@virtual
async def test_what_containers_have_of_one_device_is_told_together() -> None:
    case = Case()
    devices = (
        DeviceAllocation(0, "GPU-1", 250, 100),
        DeviceAllocation(1, "GPU-1", 250, 100),
        DeviceAllocation(1, "GPU-2", 1000, 9),
    )
    case.place(asking(), devices=devices)
    await case.run()
    assert case.said[0].endswith("to a: 0.5 of device GPU-1 (200 MiB), 1 of device GPU-2 (9 MiB)")


@virtual
async def test_others_say_it_of_their_own_pods_and_nobody_where_it_is_off() -> None:
    case = Case()
    case.place(make_pod(), asking(path="gate"))
    await case.run()
    off = Case(on=False)
    off.place(asking())
    await off.run()
    assert case.said == off.said == []


@virtual
async def test_a_key_that_holds_nobody_to_anything_is_said_on_both_paths() -> None:
    for path in ("bind", "gate"):
        case = Case()
        case.place(
            asking(more={ASKED: "0:nvidia.com/gpumem=512,nvidia.com/gpucores=30"}, path=path)
        )
        await case.run()
        assert case.said[-1].startswith("nvidia.com/gpucores: devices are shared in time")
        assert len(case.said) == (2 if path == "bind" else 1)


@virtual
@pytest.mark.parametrize("key", NOT_READ)
async def test_a_choice_of_devices_that_is_not_read_is_said(key: str) -> None:
    case = Case()
    case.place(slim(asking(more={key: "GPU-1"}, path="gate")))
    await case.run()
    (said,) = case.said
    assert said.startswith(f"{key}: not read; models are chosen with")
    assert ASK_MODELS in said


@virtual
@pytest.mark.parametrize("key", ["gpu-memory.limit", KAI_LIMIT.format("main")])
async def test_a_limit_above_what_is_asked_is_said(key: str) -> None:
    case = Case()
    more = {ASKED: f"0:{KAI_REQUEST.format('main')}=1Gi", KAI_REQUEST.format("main"): "1Gi"}
    case.place(slim(asking(more={**more, key: "2Gi"}, path="gate")))
    await case.run()
    assert case.said == [f"{key}: not read; what is asked for is the cap"]


@virtual
async def test_placements_go_first() -> None:
    case = Case()
    case.idle.clear()
    case.place(asking())
    async with Running(case.scheduled.run(case.idle)):
        await asyncio.sleep(3600)
        assert case.said == []
        case.idle.set()
        await asyncio.sleep(1)
    assert len(case.said) == 1


@virtual
async def test_they_go_out_one_by_one_and_what_is_too_much_is_dropped() -> None:
    case = Case()
    case.place(*(asking(f"web-{number}") for number in range(MOST + 500)))
    async with Running(case.scheduled.run(case.idle)):
        await asyncio.sleep(10)
        assert len(case.said) <= 10 / PAUSE_SECONDS + 1
        await asyncio.sleep(2 * MOST * PAUSE_SECONDS)
        assert len(case.said) == MOST
        case.place(asking("later"))
        await asyncio.sleep(1)
    assert len(case.said) == MOST + 1, "there is room again"


@virtual
async def test_one_that_cannot_be_written_is_dropped_and_a_closed_fence_ends_it() -> None:
    case = Case(lambda sent: AWAY)
    case.place(asking("a"), asking("b"))
    await case.run()
    assert len(case.client.sent) == 2
    fenced = Case(lambda sent: NOT_LEADER)
    fenced.place(asking())
    results = await asyncio.gather(fenced.scheduled.run(fenced.idle), return_exceptions=True)
    assert isinstance(results[0], errors.NotLeader)


@virtual
async def test_none_is_written_in_a_namespace_that_goes() -> None:
    case = Case()
    case.events = Events(
        case.client,  # type: ignore[arg-type]
        instance="me",
        clock=clock,
        terminating=("team-a",),
    )
    case.scheduled = ScheduledEvents(case.events, now=lambda: "then")
    case.place(asking())
    await case.run()
    assert case.said == []
