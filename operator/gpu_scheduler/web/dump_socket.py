"""The leader's dumps, on a Unix socket that its own user alone may open: no port answers one.

Whoever may run a program in the operator's pod reads it (``read_dump``), nobody else. The copy is
made between two planning cycles, the file in another thread.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.dump import Dump, written

_SECONDS = 60.0  # for one dump
_SLICES = 20  # handed on at once


class DumpSocket:
    """Answers until ``cleanup``, one reader after the other."""

    def __init__(self, path: str, dump: Callable[[], Dump | None]) -> None:
        """``dump`` makes one now; None = nothing is planned here."""
        self._path = Path(path)
        self._dump = dump
        self._turn = asyncio.Lock()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to answer.

        Raises:
            OSError: there can be no such socket.
        """
        self._path.unlink(missing_ok=True)
        mask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._answer, self._path)
        finally:
            os.umask(mask)

    async def cleanup(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
        self._path.unlink(missing_ok=True)

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_SECONDS), self._turn:
                dump = self._dump()
                slices = written(dump) if dump is not None else iter(())
                while piece := await asyncio.to_thread(_next, slices):
                    writer.write(piece)
                    await writer.drain()
        except (TimeoutError, OSError):
            pass  # whoever read it has gone
        except Exception:
            unexpected("dump", "a dump")
        finally:
            writer.close()


def _next(slices: Iterator[bytes]) -> bytes:
    return b"".join(islice(slices, _SLICES))
