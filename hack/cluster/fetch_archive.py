"""Takes one program out of a .tar.gz whose digest has been checked.

Only a regular file of exactly the wanted name is read, never more than a limit of bytes,
and nothing is written under a name that the archive gives.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from cluster.fetch_url import NotTaken

_PIECE = 1 << 20


def unpack(
    archive: Path, member: str, output: BinaryIO, largest: int, on_bytes: Callable[[bytes], None]
) -> None:
    """Writes `member` of `archive` to `output`; `on_bytes` gets each piece, to hash it.

    Raises:
        NotTaken: there is no such file in it, it is larger than `largest` bytes, or the
            archive is broken.
        OSError: `output` could not be written.
    """
    try:
        with tarfile.open(archive, "r|gz") as tar:
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
