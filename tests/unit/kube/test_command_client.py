"""One request after the other, by the kubernetes package."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.unit.kube.fake_server import DROP, Answer, FakeServer, refuse
from tests.unit.kube.issued import FIRST, SECOND

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.command_client import CommandClient
from gpu_scheduler.kube.connection import Connection

PODS = "/api/v1/namespaces/a/pods"
T = TypeVar("T")


async def ask(
    server: FakeServer, question: Callable[[CommandClient], T], /, **connection: Any
) -> T:
    """What a command would get, which waits for its answer; ``connection``: what is said of it."""

    def run() -> T:
        with CommandClient(replace(server.connection, **connection)) as client:
            return question(client)

    return await asyncio.to_thread(run)


def pod(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "a"}, **more}


async def test_a_collection_is_read_to_its_end() -> None:
    async with FakeServer() as server:
        for number in range(7):
            server.put(f"{PODS}/p{number}", pod(f"p{number}"))
        found = await ask(server, lambda c: list(c.items(PODS, "a=b", page=3)))
    assert [each["metadata"]["name"] for each in found] == [f"p{n}" for n in range(7)]
    assert len([s for s in server.seen if s.query["labelSelector"] == "a=b"]) == 3
    assert {s.headers["Authorization"] for s in server.seen} == {"Bearer secret-token"}


async def test_objects_are_made_changed_and_deleted() -> None:
    async with FakeServer() as server:
        await ask(server, lambda c: c.create(PODS, pod("p")))
        patch = {"spec": {"suspend": True}}
        await ask(server, lambda c: c.merge_patch(f"{PODS}/p", patch))
        assert server.seen[-1].body == patch
        assert server.seen[-1].headers["Content-Type"] == "application/merge-patch+json"
        await ask(server, lambda c: c.delete(f"{PODS}/p"))
        with pytest.raises(errors.NotFound):
            await ask(server, lambda c: c.get(f"{PODS}/p"))
    assert server.seen[-2].query["propagationPolicy"] == "Background"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refuse(401), errors.Unauthorized),
        (refuse(403, "Forbidden"), errors.Forbidden),
        (refuse(429), errors.TooManyRequests),
        (refuse(503), errors.ServerError),
        (DROP, errors.Unavailable),
        (Answer(200, body="no object"), errors.ApiError),
    ],
)
async def test_what_is_no_answer_is_an_error(answer: Answer, kind: type[errors.ApiError]) -> None:
    async with FakeServer() as server:
        server.answers.append(answer)
        with pytest.raises(kind) as caught:
            await ask(server, lambda c: c.get(f"{PODS}/p"))
    assert len(server.seen) == 1, "a person is watching: nothing is tried again"
    assert "secret-token" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_in_plain_words() -> None:
    with CommandClient(Connection("http://127.0.0.1:1")) as client:
        with pytest.raises(errors.Unavailable) as caught:
            client.get(PODS)
    assert caught.value.message == "Connection refused"


async def test_both_sides_show_a_certificate_that_the_other_trusts(tmp_path: Path) -> None:
    pair, authority = tmp_path / "pair", tmp_path / "authority"
    pair.write_text(FIRST.certificate + FIRST.key)
    authority.write_text(FIRST.authority)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair)
    tls.load_verify_locations(authority)
    tls.verify_mode = ssl.CERT_REQUIRED
    own = {"certificate_pem": FIRST.certificate, "key_pem": FIRST.key}
    files = {"certificate_file": pair, "key_file": pair, "ca_file": authority}
    async with FakeServer(tls) as server:
        server.put(f"{PODS}/p", pod("p"))

        def get(client: CommandClient) -> str:
            return str(client.get(f"{PODS}/p")["metadata"]["name"])

        assert await ask(server, get, ca_pem=FIRST.authority, **own) == "p"
        assert await ask(server, get, **files, server_name="localhost") == "p"
        assert await ask(server, get, verify=False, **own) == "p"
        for wrong in (
            {"ca_pem": SECOND.authority, **own},
            {"ca_pem": FIRST.authority, **own, "server_name": "elsewhere"},
            {"ca_pem": FIRST.authority},
        ):
            with pytest.raises(errors.Unavailable):
                await ask(server, get, **wrong)


async def test_a_proxy_is_asked_in_place_of_the_server() -> None:
    async with FakeServer() as proxy:
        proxy.put(f"{PODS}/p", pod("p"))
        there = {"server": "http://10.0.0.1", "proxy": proxy.url}
        found = await ask(proxy, lambda c: c.get(f"{PODS}/p"), **there)
    assert found["metadata"]["name"] == "p"


async def test_a_watch_tells_what_happens_until_it_ends() -> None:
    def two(client: CommandClient) -> list[str]:
        return [
            f"{event['type']} {event['object']['metadata']['name']}"
            for event, _ in zip(client.watch(PODS, resourceVersion="100"), range(2), strict=False)
        ]

    async with FakeServer() as server:
        told = asyncio.create_task(ask(server, two))
        server.put(f"{PODS}/p", pod("p"))
        server.put(f"{PODS}/q", pod("q"))
        server.put(f"{PODS}/r", pod("r"))
        assert await told == ["ADDED p", "ADDED q"]


async def test_a_watch_that_is_too_old_says_so() -> None:
    async with FakeServer() as server:
        server.oldest = server.version = 500
        with pytest.raises(errors.Gone):
            await ask(server, lambda c: list(c.watch(PODS, resourceVersion="100")))
