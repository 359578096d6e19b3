"""Asking agents: who answers, who does not, and who answers nonsense."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace
from tests.unit.agent.until import until
from tests.unit.runtime.binding.test_node_orders import AGENTS, agent
from tests.unit.state.builders import make_node

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.usage import asking
from gpu_scheduler.runtime.usage.agent_addresses import AgentAddresses
from gpu_scheduler.runtime.usage.asking import AgentAsker
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.usage.answer import AgentUsage, dumps
from gpu_scheduler.usage.key import UsageKeys, may_ask

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_TICK_SECONDS", 0.005)


class Stage:
    def __init__(self, answer: Answer, port: int) -> None:
        self.state = ClusterState(AGENTS)
        self.state.nodes.changed(make_node("a"))
        self.addresses = AgentAddresses(AGENTS)
        self.seen = SeenUse(self.state.pods.known)
        self.keys = UsageKeys()
        self.now, self.looks = 0.0, 0
        self.asker = AgentAsker(self.addresses, self.keys, port, self.seen, self._clock)
        self.uid = self.see("127.0.0.1")

    def _clock(self) -> float:
        self.looks += 1
        return self.now

    async def asks_at(self, now: float) -> None:
        """Let it see this time, and have the answer to what it asks then."""
        self.now, before = now, self.looks
        await until(lambda: self.looks > before and not self.asker._busy)

    def see(self, ip: str, version: int = 1) -> PodUID:
        pod = agent("a", version=version)
        pod = replace(pod, status=replace(pod.status, pod_ip=ip))
        record = self.state.pod_changed(pod)
        assert record is not None
        self.addresses.observe(pod, record)
        return record.uid


async def asked(answer: Answer, so: Callable[[Stage], bool], *times: float) -> Stage:
    """Ask an agent that answers so, at these times, until this is so."""
    application = web.Application()
    application.router.add_get("/usage", answer)
    async with TestServer(application) as server:
        assert server.port is not None
        stage = Stage(answer, server.port)
        task = asyncio.create_task(stage.asker.run())
        for at in (0.0, *times):
            await stage.asks_at(at)
        await until(lambda: so(stage))
        task.cancel()
        await asyncio.wait({task})
    return stage


async def test_an_answer_is_taken_and_the_next_question_is_since_then() -> None:
    questions: list[str] = []
    stages: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        questions.append(request.query["since"])
        stages.append(request.headers["Authorization"])
        return web.Response(body=dumps(AgentUsage(look=7)))

    stage = await asked(answer, lambda stage: len(questions) >= 2, 20.0)
    assert questions[:2] == ["0", "7"]
    assert may_ask(stages[0], stage.keys.digest(stage.uid))
    assert stage.seen.silent_agents() == 0


async def _nonsense(request: web.Request) -> web.Response:
    return web.Response(body=b"\xc1 nonsense")


async def _refuses(request: web.Request) -> web.Response:
    return web.Response(status=401)


async def _sends_on(request: web.Request) -> web.Response:
    raise web.HTTPFound("http://169.254.169.254/latest/meta-data")


async def _too_much(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for _ in range(80):
        await answer.write(b"\x00" * 65536)
    return answer


async def _goes_away(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    answer.content_length = 1000
    await answer.prepare(request)
    await answer.write(b"\x81")
    raise ConnectionResetError


@pytest.mark.parametrize("answer", [_nonsense, _refuses, _sends_on, _too_much, _goes_away])
async def test_what_is_no_answer_makes_the_agent_silent(answer: Answer) -> None:
    stage = await asked(answer, lambda stage: stage.seen.silent_agents() == 1)
    assert stage.seen.look("a") == 0


async def test_who_does_not_answer_is_asked_ever_more_seldom() -> None:
    questions: list[float] = []

    async def answer(request: web.Request) -> web.Response:
        questions.append(0)
        return web.Response(status=500)

    await asked(answer, lambda stage: True, *(float(at) for at in range(5, 121, 5)))
    assert len(questions) <= 5  # at 0, 10, 30, 70 and then once a minute


async def test_why_an_agent_has_no_answer_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=503, text="no history is kept: the disk is full\n" + "x" * 5000)

    await asked(answer, lambda stage: bool(caplog.records), 11.0, 32.0, 73.0, 134.0, 195.0, 256.0)
    (said,) = caplog.messages
    assert "the agent of a does not say" in said
    assert "status 503, b'no history is kept: the disk is full" in said
    assert len(said) < 500


def test_an_agent_that_is_replaced_is_asked_where_its_successor_is() -> None:
    stage = Stage(_refuses, 1)
    assert stage.addresses.by_node["a"].ip == "127.0.0.1"
    stage.see("10.0.0.9", version=2)
    assert stage.addresses.by_node["a"].ip == "10.0.0.9"
    stage.addresses.gone(PodUID("another"))
    assert stage.addresses.by_node
    stage.addresses.gone(stage.uid)
    assert not stage.addresses.by_node
