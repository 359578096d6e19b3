"""An HTTP proxy that opens tunnels (CONNECT), on 127.0.0.1."""

import asyncio
import threading
from contextlib import suppress
from typing import Self


class ConnectProxy:
    """A context manager; ``tunnels`` are the addresses that it was asked for."""

    def __init__(self) -> None:
        self.tunnels: list[str] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, near: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        method, address, _ = (await near.readuntil(b"\r\n\r\n")).decode().split(" ", 2)
        assert method == "CONNECT", method
        self.tunnels.append(address)
        host, _, port = address.rpartition(":")
        far, into = await asyncio.open_connection(host, int(port))
        out.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_carry(near, into), _carry(far, out))


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await source.read(65536):
            target.write(piece)
            await target.drain()
    target.close()
