"""The proxy of the fault tests does to requests what its rules say, and counts it."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from tests import faultproxy
from tests.faultproxy import Fault, FaultProxy, Rule
from tests.unit.kube.fake_server import FakeServer

POD = "/api/v1/namespaces/a/pods/p"
BINDING = f"{POD}/binding"
numbers = itertools.count()


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as made:
        made.put(POD, {"kind": "Pod"})
        yield made


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


async def until(proxy: FaultProxy, done: Callable[[], bool]) -> None:
    await asyncio.to_thread(proxy.wait_for, done)


async def bind(session: aiohttp.ClientSession, url: str) -> int:
    """A POST: aiohttp itself sends a PUT again when the connection breaks."""
    body: Any = {"metadata": {"name": f"x{next(numbers)}"}}
    headers = {"Authorization": "Bearer t"}
    async with session.post(f"{url}{BINDING}?timeout=1s", json=body, headers=headers) as answer:
        await answer.read()
        return answer.status


async def test_what_no_rule_takes_passes_unchanged(
    server: FakeServer, session: aiohttp.ClientSession
) -> None:
    with FaultProxy(server.url, rules=[Rule(Fault.REFUSE, method="PATCH")]) as proxy:
        assert await bind(session, proxy.url) == 201
        (seen,) = server.seen
        assert (seen.method, seen.path, seen.query) == ("POST", BINDING, {"timeout": "1s"})
        assert seen.headers["Authorization"] == "Bearer t"
        assert proxy.passed == {("POST", 201): 1}
        assert proxy.rules[0].matched == 0


async def test_a_request_that_is_held_back_arrives_when_its_client_has_long_given_up(
    server: FakeServer, session: aiohttp.ClientSession
) -> None:
    held = Rule(Fault.DELAY_REQUEST, method="POST", path=faultproxy.BINDING, seconds=None)
    with FaultProxy(server.url, rules=[held]) as proxy:
        client = asyncio.create_task(bind(session, proxy.url))
        await until(proxy, lambda: held.held == 1)
        client.cancel()
        await asyncio.wait({client})
        assert not server.seen
        proxy.release(held)
        await until(proxy, lambda: held.answers == {201: 1})
        assert any(path.startswith(f"{BINDING}/") for path in server.objects)


async def test_an_answer_that_is_held_back_is_given_in_the_end(
    server: FakeServer, session: aiohttp.ClientSession
) -> None:
    held = Rule(Fault.DELAY_ANSWER, seconds=None)
    with FaultProxy(server.url, rules=[held]) as proxy:
        client = asyncio.create_task(bind(session, proxy.url))
        await until(proxy, lambda: held.held == 1)
        assert server.seen
        assert not client.done()
        proxy.release(held)
        assert await client == 201


@pytest.mark.parametrize(("fault", "arrives"), [(Fault.LOSE_REQUEST, 0), (Fault.LOSE_ANSWER, 1)])
async def test_what_is_lost_breaks_the_connection(
    server: FakeServer, session: aiohttp.ClientSession, fault: Fault, arrives: int
) -> None:
    with FaultProxy(server.url, rules=[Rule(fault)]) as proxy:
        with pytest.raises(aiohttp.ClientError):
            await bind(session, proxy.url)
        assert len(server.seen) == arrives


async def test_a_refusal_is_a_status_with_retry_after(
    server: FakeServer, session: aiohttp.ClientSession
) -> None:
    refused = Rule(Fault.REFUSE, status=429, retry_after=3, times=1)
    with FaultProxy(server.url, rules=[refused]) as proxy:
        async with session.get(f"{proxy.url}{POD}") as answer:
            assert answer.status == 429
            assert answer.headers["Retry-After"] == "3"
            assert (await answer.json())["code"] == 429
        assert await bind(session, proxy.url) == 201  # once was all
        assert (refused.matched, refused.applied) == (1, 1)


async def test_a_watch_passes_event_by_event_and_can_be_cut(
    server: FakeServer, session: aiohttp.ClientSession
) -> None:
    cut = Rule(Fault.CUT, query="watch=true", seconds=None, times=1)
    url = "/api/v1/namespaces/a/pods?watch=true&resourceVersion=100"
    with FaultProxy(server.url, rules=[cut]) as proxy:
        async with session.get(f"{proxy.url}{url}") as answer:
            assert b'"ADDED"' in await answer.content.readany()
            proxy.release(cut)
            with pytest.raises(aiohttp.ClientError):
                await answer.content.readany()
        assert cut.answers == {200: 1}


async def test_a_paused_proxy_answers_nothing_until_it_goes_on(
    server: FakeServer, session: aiohttp.ClientSession
) -> None:
    with FaultProxy(server.url) as proxy:
        assert await bind(session, proxy.url) == 201
        proxy.pause()
        client = asyncio.create_task(bind(session, proxy.url))
        done, _ = await asyncio.wait({client}, timeout=0.1)
        assert not done
        proxy.resume()
        assert await client == 201


async def test_equal_seeds_choose_equally(
    server: FakeServer, session: aiohttp.ClientSession
) -> None:
    async def chosen(seed: int) -> list[int]:
        rule = Rule(Fault.REFUSE, status=503, probability=0.5)
        with FaultProxy(server.url, seed=seed, rules=[rule]) as proxy:
            return [await bind(session, proxy.url) for _ in range(20)]

    first = await chosen(1)
    assert set(first) == {201, 503}
    assert await chosen(1) == first
