"""One file on its way from one offer into a partial file.

Whatever arrives counts only after its size and SHA-256 were found among the offer's digests.
"""

import asyncio
import hashlib
import os
import stat
import tarfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cluster.fetch_offers import Offer
from cluster.fetch_pins import Digest
from cluster.fetch_url import Body, Limits, NotTaken, opened

# No program of the cluster is larger; it bounds a file whose size is not pinned.
LARGEST_BYTES = 400_000_000
_PIECE = 1 << 18


class OtherFile(NotTaken):
    """It is another file than the one that is known."""


@dataclass(slots=True)
class Transfer:
    """Fetches `offer` into `partial`, which is the program itself once `run` has returned.

    Attributes:
        received: Bytes so far.
        total: Bytes that the whole file has, 0 while that is not known.
        digest: The file that was taken.
    """

    offer: Offer
    partial: Path
    received: int = 0
    total: int = 0
    digest: Digest | None = None

    async def run(self, limits: Limits, on_bytes: Callable[[int], None]) -> None:
        """Fetches; `on_bytes` is told of the answer, with 0, and of each piece that comes.

        Raises:
            NotTaken: why the file was not taken.
            OSError: this machine cannot store it.
        """
        sizes = {digest.size for digest in self.offer.accepted}
        self.total = (sizes.pop() or 0) if len(sizes) == 1 else 0
        with self.partial.open("wb") as output:
            async with self._source(limits) as body:
                self._refuse_length(body.length)
                self.total = body.length or self.total
                on_bytes(0)
                self._refuse_content(await self._receive(body, output, on_bytes))
        if self.offer.member:
            await asyncio.to_thread(self._unpack)

    @property
    def _known(self) -> str:
        return self.offer.known

    def _source(self, limits: Limits) -> AbstractAsyncContextManager[Body]:
        place = self.offer.place
        return _opened_file(place) if isinstance(place, Path) else opened(place, limits)

    async def _receive(self, body: Body, output: BinaryIO, on_bytes: Callable[[int], None]) -> str:
        sizes = [digest.size for digest in self.offer.accepted]
        largest = max(LARGEST_BYTES if size is None else size for size in sizes)
        content = hashlib.sha256()
        async for piece in body.pieces:
            self.received += len(piece)
            on_bytes(len(piece))
            if self.received > largest:
                raise NotTaken(f"sends more than the {largest:,} bytes of the {self._known} file")
            content.update(piece)
            output.write(piece)
        return content.hexdigest()

    def _refuse_length(self, length: int | None) -> None:
        """Spares reading a file that says by its length alone that it is another one."""
        sizes = [digest.size for digest in self.offer.accepted]
        if length is None or length in sizes or (None in sizes and length <= LARGEST_BYTES):
            return
        pinned = " or ".join(f"{size:,}" for size in sizes if size is not None)
        wanted = f"{self._known}: {pinned}" if pinned else f"at most {LARGEST_BYTES:,}"
        raise OtherFile(
            f"has a file that is not the {self._known} one ({length:,} bytes, {wanted})"
        )

    def _refuse_content(self, sha256: str) -> None:
        accepted = self.offer.accepted
        self.digest = Digest(sha256, self.received)
        if self.digest in accepted or Digest(sha256) in accepted:
            return
        sizes = {digest.size: digest.sha256 for digest in accepted}
        if None not in sizes:
            self._refuse_length(self.received)
        pinned = sizes.get(self.received) or sizes[None]
        raise OtherFile(
            f"has a file that is not the {self._known} one "
            f"(sha256 {sha256[:12]}…, {self._known} {pinned[:12]}…)"
        )

    def _unpack(self) -> None:
        """Replaces the archive in `partial` by the program in it."""
        digest = self.offer.member_digest
        program = self.partial.with_name(f"{self.partial.name}-member")
        content = hashlib.sha256()
        largest = digest.size if digest and digest.size else LARGEST_BYTES
        try:
            with self.partial.open("rb") as archive, program.open("wb") as output:
                unpack(archive, self.offer.member, output, largest, content.update)
            if digest and content.hexdigest() != digest.sha256:
                raise NotTaken(
                    f"has an archive whose {self.offer.member} is not the pinned one "
                    f"(sha256 {content.hexdigest()[:12]}…, pinned {digest.sha256[:12]}…)"
                )
            program.rename(self.partial)
        finally:
            program.unlink(missing_ok=True)


def unpack(
    archive: BinaryIO,
    member: str,
    output: BinaryIO,
    largest: int,
    on_bytes: Callable[[bytes], None],
) -> None:
    """Writes `member` of `archive` to `output`; `on_bytes` gets each piece, to hash it.

    Only a regular file of exactly that name is read, and nothing is written under a name that
    the archive gives.

    Raises:
        NotTaken: there is no such file in it, it is larger than `largest` bytes, or the
            archive is broken.
        OSError: `output` could not be written.
    """
    try:
        with tarfile.open(fileobj=archive, mode="r|gz") as tar:
            for entry in tar:
                if entry.name == member:
                    break
            else:
                raise NotTaken(f"has an archive without {member}")
            if not entry.isreg():
                raise NotTaken(f"has an archive in which {member} is no file")
            if entry.size > largest:
                raise NotTaken(f"has an archive in which {member} is too large")
            content = tar.extractfile(entry)
            assert content is not None, "isreg() was true"
            while piece := content.read(_PIECE):
                on_bytes(piece)
                output.write(piece)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise NotTaken(f"has an archive that is broken ({error})") from None


@asynccontextmanager
async def _opened_file(path: Path) -> AsyncIterator[Body]:
    """A file of a mirror that is a folder; a pipe or a device is refused, not waited for."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    except FileNotFoundError:
        raise NotTaken("has no such file") from None
    except OSError as error:
        raise NotTaken(f"has a file that cannot be read ({error.strerror})") from None
    with file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotTaken("has something there that is no file")
        async with aclosing(_pieces(file)) as pieces:
            yield Body(status.st_size, pieces)


async def _pieces(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    try:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece
    except OSError as error:
        raise NotTaken(f"has a file that cannot be read ({error.strerror})") from None
