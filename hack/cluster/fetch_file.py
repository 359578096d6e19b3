"""One file on its way from one offer into a partial file, in a thread of its own.

The thread only reads, hashes and writes; it decides nothing about time. `fetch.py` looks
at `phase`, `since` and `received`, and gives up a transfer that takes too long. Whatever
arrives counts only after its size and SHA-256 were found among the offer's digests.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cluster.fetch_archive import unpack
from cluster.fetch_offers import Offer
from cluster.fetch_pins import Digest
from cluster.fetch_url import Body, NotTaken, opened

# No program of the cluster is larger; it bounds a file whose size is not pinned.
LARGEST_BYTES = 400_000_000
_PIECE = 1 << 18

CONNECTING, ASKING, RECEIVING, CHECKING = "connecting", "asking", "receiving", "checking"


class Transfer(threading.Thread):
    """Fetches `offer` into `partial`, which is the program itself once `error` is None.

    Attributes:
        phase: One of the four above; the last one is work on this machine.
        since: Time (by `clock`, seconds) at which the phase began or bytes came last.
        received: Bytes so far.
        total: Bytes that the whole file has, 0 while that is not known.
        error: None only after the file was found to be the pinned one. Else why it was not
            taken (NotTaken), what this machine refused (OSError), or a defect.
    """

    def __init__(
        self,
        offer: Offer,
        partial: Path,
        *,
        timeout_seconds: float,
        on_change: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__(daemon=True, name=f"fetch {partial.name}")
        self.offer, self.partial = offer, partial
        self.phase, self.since, self.received = CONNECTING, clock(), 0
        sizes = {digest.size for digest in offer.accepted}
        self.total = (sizes.pop() or 0) if len(sizes) == 1 else 0
        self.error: Exception | None = NotTaken("is not done")
        self.ended = threading.Event()
        self._timeout_seconds, self._on_change, self._clock = timeout_seconds, on_change, clock
        self._given_up = threading.Event()
        self._socket: socket.socket | None = None
        # Opened here and not in the thread, so that giving up leaves no file behind.
        self._output: BinaryIO = partial.open("wb")

    def run(self) -> None:
        """Fetches; the outcome is in `error`, and `ended` is set at the end."""
        try:
            with self._output:
                self._fetch()
            self.error = None
        except Exception as error:
            self.error = error
        finally:
            self.ended.set()
            self._on_change()

    def give_up(self) -> None:
        """Closes the connection and deletes what has arrived; the thread ends by itself."""
        self._given_up.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self.partial.unlink(missing_ok=True)

    def _enter(self, phase: str) -> None:
        self.phase, self.since = phase, self._clock()

    def _fetch(self) -> None:
        with self._source() as body:
            self._refuse_length(body.length)
            self.total = body.length or self.total
            self._enter(RECEIVING)
            digest = self._receive(body)
        self._enter(CHECKING)
        self._refuse_content(body.length, digest)
        if self.offer.member:
            self._output.flush()
            self._unpack()

    @contextmanager
    def _source(self) -> Iterator[Body]:
        place = self.offer.place
        if isinstance(place, Path):
            with _opened_file(place) as body:
                yield body
            return
        with opened(
            place, timeout_seconds=self._timeout_seconds, on_connection=self._connected
        ) as body:
            yield body

    def _connected(self, connection: http.client.HTTPConnection) -> None:
        """Has `connection` say when it is open: from then on it is the server's turn."""
        self._enter(CONNECTING)
        connect = connection.connect

        def and_tell() -> None:
            connect()
            if self._given_up.is_set():
                raise OSError("given up")
            self._socket = connection.sock
            self._enter(ASKING)

        connection.connect = and_tell  # type: ignore[method-assign]

    def _receive(self, body: Body) -> str:
        sizes = [digest.size for digest in self.offer.accepted]
        largest = max(LARGEST_BYTES if size is None else size for size in sizes)
        content = hashlib.sha256()
        while piece := body.read(_PIECE):
            if self._given_up.is_set():
                raise NotTaken("was given up")
            self.received += len(piece)
            self.since = self._clock()
            if self.received > largest:
                raise NotTaken(f"sends more than the {largest:,} bytes of the pinned file")
            content.update(piece)
            self._output.write(piece)
        return content.hexdigest()

    def _refuse_length(self, length: int | None) -> None:
        """Spares reading a file that says by its length alone that it is another one."""
        sizes = [digest.size for digest in self.offer.accepted]
        if length is None or length in sizes or (None in sizes and length <= LARGEST_BYTES):
            return
        pinned = " or ".join(f"{size:,}" for size in sizes if size is not None)
        wanted = f"pinned: {pinned}" if pinned else f"at most {LARGEST_BYTES:,}"
        raise NotTaken(f"has a file that is not the pinned one ({length:,} bytes, {wanted})")

    def _refuse_content(self, length: int | None, sha256: str) -> None:
        if length is not None and self.received < length:
            raise NotTaken(f"sent only {self.received:,} of {length:,} bytes")
        if Digest(sha256, self.received) in self.offer.accepted:
            return
        if Digest(sha256) in self.offer.accepted:
            return
        sizes = {digest.size: digest.sha256 for digest in self.offer.accepted}
        if None not in sizes and self.received not in sizes:
            pinned = " or ".join(f"{size:,}" for size in sizes)
            raise NotTaken(
                f"has a file that is not the pinned one ({self.received:,} bytes, pinned: {pinned})"
            )
        pinned = sizes.get(self.received) or sizes[None]
        raise NotTaken(
            f"has a file that is not the pinned one (sha256 {sha256[:12]}…, pinned {pinned[:12]}…)"
        )

    def _unpack(self) -> None:
        """Replaces the archive in `partial` by the program in it."""
        digest = self.offer.member_digest
        program = self.partial.with_name(f"{self.partial.name}-member")
        content = hashlib.sha256()
        largest = digest.size if digest and digest.size else LARGEST_BYTES
        try:
            with program.open("wb") as output:
                unpack(self.partial, self.offer.member, output, largest, content.update)
            if digest and content.hexdigest() != digest.sha256:
                raise NotTaken(
                    f"has an archive whose {self.offer.member} is not the pinned one "
                    f"(sha256 {content.hexdigest()[:12]}…, pinned {digest.sha256[:12]}…)"
                )
            program.rename(self.partial)
        finally:
            program.unlink(missing_ok=True)


@contextmanager
def _opened_file(path: Path) -> Iterator[Body]:
    """A file of a mirror that is a folder; a pipe or a device is refused, not waited for."""
    try:
        file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    except FileNotFoundError:
        raise NotTaken("has no such file") from None
    except OSError as error:
        raise NotTaken(f"has a file that cannot be read ({error.strerror})") from None
    with file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotTaken("has something there that is no file")

        def read(size: int) -> bytes:
            try:
                return file.read(size)
            except OSError as error:
                raise NotTaken(f"has a file that cannot be read ({error.strerror})") from None

        yield Body(status.st_size, read)
