"""A Chromium without a window, driven by its DevTools protocol.

Whatever it asks of another host than this machine goes to a proxy of ours, which writes it down and
refuses it: also what workers, style sheets and preconnects ask for.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")
_LISTENS = re.compile(rb"DevTools listening on (ws://\S+)")
_SECONDS = 30.0


class Browser:
    """One page of a browser.

    Attributes:
        refused: what the browser asked other hosts for, a line of HTTP each.
        errors: what scripts of the pages complained of.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """``socket``: of the DevTools of the browser."""
        self.refused: list[str] = []
        self.errors: list[str] = []
        self._socket, self._session = socket, ""
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._idle: set[str] = set()  # loads of which nothing is fetched any more
        self._news = asyncio.Event()

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command to the page, and wait for its answer.

        Raises:
            RuntimeError: the browser refused it.
        """
        number = len(self._answers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        message: dict[str, object] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send_json(message)
        answer = await self._answers[number]
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    async def open_page(self) -> None:
        """Make the page that all commands go to from now on."""
        target = await self.ask("Target.createTarget", url="about:blank")
        attached = await self.ask(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.ask(f"{domain}.enable")
        await self.ask("Page.setLifecycleEventsEnabled", enabled=True)

    async def go(self, url: str) -> None:
        """Open an address, and wait until nothing is fetched any more.

        Raises:
            TimeoutError: that takes too long.
        """
        self._idle.clear()
        loader = (await self.ask("Page.navigate", url=url))["loaderId"]
        async with asyncio.timeout(_SECONDS):
            while loader not in self._idle:  # it may have been told before the answer
                self._news.clear()
                await self._news.wait()

    async def value(self, expression: str) -> Any:
        """What an expression in JavaScript comes to; a promise is waited for.

        Raises:
            RuntimeError: it threw.
        """
        answer = await self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["result"].get("description", "a script failed"))
        return answer["result"].get("value")

    async def listen(self) -> None:
        """Take what the browser says, until it ends."""
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                self._answers[said["id"]].set_result(said)
                continue
            params = said.get("params", {})
            if said["method"] == "Page.lifecycleEvent" and params["name"] == "networkIdle":
                self._idle.add(params["loaderId"])
                self._news.set()
            elif said["method"] == "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"].get("text")))
            elif said["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A browser with a page, that reaches nothing but this machine.

    Raises:
        FileNotFoundError: there is no Chromium on this machine.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise FileNotFoundError(f"none of {', '.join(PROGRAMS)} is on the PATH")
    refused: list[str] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        refused.append((await reader.readline()).decode(errors="replace").strip())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program,
            "--headless",
            "--no-sandbox",
            "--disable-background-networking",
            "--remote-debugging-port=0",
            f"--proxy-server=http://127.0.0.1:{port}",
            "--proxy-bypass-list=127.0.0.1",
            f"--user-data-dir={profile}",
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            address = await asyncio.wait_for(_address(process), _SECONDS)
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(address, max_msg_size=0) as socket,
                asyncio.TaskGroup() as group,
            ):
                made = Browser(socket)
                made.refused = refused
                listening = group.create_task(made.listen())
                await made.open_page()
                yield made
                listening.cancel()
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # its own processes hold the pipe open, too
            await process.wait()
            proxy.close()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if found := _LISTENS.search(line):
            return found[1].decode()
    raise RuntimeError("the browser ended at its start")
