"""Archives whose bytes depend on names and contents alone: sorted, owned by nobody, of one time."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class File:
    """A file of an archive."""

    data: bytes
    runs: bool = False


def tar(files: Mapping[str, File], epoch: int) -> bytes:
    """A tar with these files and no folders, in the order of their names."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, file in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(file.data), epoch
            entry.mode = 0o755 if file.runs else 0o644
            archive.addfile(entry, io.BytesIO(file.data))
    return buffer.getvalue()


def tar_gz(files: Mapping[str, File], epoch: int) -> bytes:
    """As `tar`, compressed."""
    return gzip.compress(tar(files, epoch), compresslevel=9, mtime=0)


def folder_files(folder: Path, prefix: str = "") -> dict[str, File]:
    """All files below a folder, without links, as some unpackers know none."""
    return {
        f"{prefix}{path.relative_to(folder)}": File(
            path.read_bytes(), bool(path.stat().st_mode & 0o100)
        )
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def unpacked(archive: bytes) -> dict[str, File]:
    """The files of a tar, compressed or not."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for entry in opened:
            if (data := opened.extractfile(entry)) is not None:
                files[entry.name] = File(data.read(), bool(entry.mode & 0o100))
    return files
