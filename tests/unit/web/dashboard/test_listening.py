"""Where it listens: inside the pod, and with a certificate to all."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientConnectorError, ClientError, ClientSession
from tests.unit.kube.issued import FIRST, SECOND, Issued
from tests.unit.web.dashboard.fakes import Scene, bearer

from gpu_scheduler.web.dashboard.app import app
from gpu_scheduler.web.dashboard.listening import DashboardListener

ELSEWHERE = "127.0.0.2"  # in the place of the pod's own address


def put(folder: Path, issued: Issued) -> None:
    (folder / "tls.crt").write_text(issued.certificate)
    (folder / "tls.key").write_text(issued.key)


def trusting(issued: Issued) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=issued.authority)
    context.check_hostname = False
    return context


async def status(session: ClientSession, url: str, **more: Any) -> int:
    async with session.get(f"{url}/api/v1/queue", **more) as answer:
        return answer.status


async def test_without_a_certificate_nobody_outside_is_listened_to() -> None:
    scene = Scene()
    headers = bearer(scene.api.user("anna", "team-a"))
    listener = DashboardListener(app(scene.parts))
    port, outside = await listener.start(0, 0, ELSEWHERE)
    async with ClientSession() as session:
        assert outside == 0
        assert await status(session, f"http://127.0.0.1:{port}", headers=headers) == 200
        with pytest.raises(ClientConnectorError):
            await status(session, f"http://{ELSEWHERE}:{port}", headers=headers)
    await listener.cleanup()


async def test_with_a_certificate_all_are_listened_to_and_a_new_one_is_used(tmp_path: Path) -> None:
    scene = Scene()
    headers = bearer(scene.api.user("anna", "team-a"))
    put(tmp_path, FIRST)
    listener = DashboardListener(app(scene.parts), str(tmp_path))
    port, outside = await listener.start(0, 0, ELSEWHERE)

    async def seen(issued: Issued) -> int:
        async with ClientSession() as session:
            url = f"https://{ELSEWHERE}:{outside}"
            return await status(session, url, headers=headers, ssl=trusting(issued))

    assert await seen(FIRST) == 200
    put(tmp_path, SECOND)
    (tmp_path / "tls.key").write_text("half written")
    listener.look()
    assert await seen(FIRST) == 200
    put(tmp_path, SECOND)
    listener.look()
    assert await seen(SECOND) == 200
    async with ClientSession() as session:  # plain HTTP ends at the handshake, inside it is taken
        with pytest.raises(ClientError):
            await status(session, f"http://{ELSEWHERE}:{outside}", headers=headers)
        assert await status(session, f"http://127.0.0.1:{port}", headers=headers) == 200
    await listener.cleanup()


def test_a_certificate_that_cannot_be_read_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        DashboardListener(app(Scene().parts), str(tmp_path))
