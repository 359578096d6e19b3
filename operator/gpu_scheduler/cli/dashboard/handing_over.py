"""Gives the token to the browser, and to nobody else on this machine.

A program's arguments can be read by every user of a machine, so the browser is started with an
address that holds no token: a page of this process on 127.0.0.1 that answers once, with a redirect
to the dashboard whose fragment is the token. A fragment is sent to no server. That the one who asks
is a process of this user says the kernel (/proc/net/tcp); where it does not say, nothing is handed
over and the token is pasted.
"""

import secrets
import struct
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socket import inet_aton

SECONDS = 60.0
_CONNECTIONS = Path("/proc/net/tcp")


def can_tell() -> bool:
    """Whether this machine says whose a connection is."""
    return _CONNECTIONS.is_file()


class HandOver:
    """One page, once."""

    def __init__(self, location: str, user: int, owner: Callable[..., int | None]) -> None:
        """Listening, and nobody has asked.

        Args:
            location: what the browser is sent to, with the token in its fragment.
            user: the id of who may ask.
            owner: whose the connection between two addresses is.
        """
        self._path = f"/{secrets.token_urlsafe(32)}"
        self.done = False
        self._server = HTTPServer(("127.0.0.1", 0), self._handler(location, user, owner))
        self._server.timeout = 1.0

    @property
    def address(self) -> str:
        """What the browser is started with."""
        return f"http://127.0.0.1:{self._server.server_port}{self._path}"

    def serve(self, seconds: float = SECONDS) -> bool:
        """Wait for the browser; whether it came."""
        end = time.monotonic() + seconds
        while not self.done and time.monotonic() < end:
            self._server.handle_request()
        return self.done

    def close(self) -> None:
        """Listen no more."""
        self._server.server_close()

    def _handler(
        self, location: str, user: int, owner: Callable[..., int | None]
    ) -> type[BaseHTTPRequestHandler]:
        hand_over = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5.0

            def do_GET(self) -> None:
                asked = secrets.compare_digest(self.path.encode(), hand_over._path.encode())
                theirs = owner(self.client_address, self.connection.getsockname())
                if not asked or hand_over.done or theirs != user:
                    self.send_error(404)
                    return
                hand_over.done = True
                self.send_response(303)
                self.send_header("Location", location)
                self.send_header("Cache-Control", "no-store")
                self.send_header("Referrer-Policy", "no-referrer")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing is told of it."""

        return Handler


def owner_of(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """The user id of the process at the other end of a connection; None: not known."""
    wanted = (_kernels(theirs), _kernels(ours))
    try:
        lines = _CONNECTIONS.read_text().splitlines()[1:]
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if (fields[1], fields[2]) == wanted:
            return int(fields[7])
    return None


def _kernels(address: tuple[str, int]) -> str:
    """An address as the kernel writes it: the bytes of a machine's integer."""
    (number,) = struct.unpack("=I", inet_aton(address[0]))
    return f"{number:08X}:{address[1]:04X}"
