"""Where the dashboard listens: inside its pod, and with a certificate to all as well.

A port-forward ends inside the pod, so it reaches 127.0.0.1 there, and the API server has
encrypted the way; nothing else reaches that. Tokens never cross the network in clear: without a
certificate nobody else is listened to. Its files are read again meanwhile, for whoever issued it
replaces them.

Behind an Ingress everybody comes from its one address, so no address is kept to a part of the
connections here, or turned away for what some of its users bring; who asks is bounded by their
token (``identities``) and their user (``stream``).
"""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import NoReturn

from aiohttp import web

from gpu_scheduler.web.bounded import ConnectionLimits, Listener

log = logging.getLogger(__name__)

CERTIFICATE, KEY = "tls.crt", "tls.key"  # as a Secret of type kubernetes.io/tls has them
LOOPBACK, ALL = "127.0.0.1", "0.0.0.0"
LIMITS = ConnectionLimits(
    connections=768,
    connections_of_one=768,
    seconds=120.0,
    failures_per_second=200.0,
    failures_burst=10_000.0,
    long_seconds=1860.0,  # a stream's half hour, and its end
    gives_notice=True,
)
_LOOK_SECONDS = 30.0


class DashboardListener:
    """Listens until ``cleanup``."""

    def __init__(
        self,
        application: web.Application,
        tls_folder: str = "",
        limits: ConnectionLimits = LIMITS,
    ) -> None:
        """``tls_folder``: with certificate and key; empty: there is none.

        Raises:
            OSError: the files cannot be read, or are none.
        """
        self._folder = Path(tls_folder) if tls_folder else None
        self._tls = _context(self._folder) if self._folder is not None else None
        self._seen = _stamp(self._folder)
        self._listener = Listener(application, limits)
        self._looking: asyncio.Task[NoReturn] | None = None

    async def start(self, port: int, tls_port: int = 0, host: str = ALL) -> tuple[int, int]:
        """Begin to listen: the ports, also where 0 was asked for; the second 0 without one.

        Args:
            port: inside the pod.
            tls_port: at ``host``, where there is a certificate.
            host: an address of the pod.

        Raises:
            OSError: somebody else listens there.
        """
        inside = await self._listener.start(LOOPBACK, port)
        if self._tls is None:
            return inside, 0
        outside = await self._listener.start(host, tls_port, self._tls)
        self._looking = asyncio.create_task(self._look(), name="certificate")
        return inside, outside

    async def cleanup(self) -> None:
        """Listen no more."""
        if self._looking is not None:
            self._looking.cancel()
        await self._listener.cleanup()

    async def _look(self) -> NoReturn:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Read the files again if they have changed; what cannot be used changes nothing."""
        stamp = _stamp(self._folder)
        if self._folder is None or self._tls is None or stamp == self._seen:
            return
        try:
            # Tried on another context first: half of a pair must not stay in this one.
            _context(self._folder)
            _load(self._tls, self._folder)
        except (OSError, ssl.SSLError) as error:
            log.warning("the dashboard's certificate was not read again: %s", error)
            return
        self._seen = stamp
        log.info("the dashboard's certificate was read again: the files have changed")


def _context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _load(context, folder)
    return context


def _load(context: ssl.SSLContext, folder: Path) -> None:
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)


def _stamp(folder: Path | None) -> tuple[int, ...]:
    if folder is None:
        return ()
    try:
        files = [(folder / name).stat() for name in (CERTIFICATE, KEY)]
    except OSError:
        return ()
    return tuple(stamp for each in files for stamp in (each.st_mtime_ns, each.st_ino))
