import gzip
import hashlib
import io
import re
import tarfile
from pathlib import Path

import pytest

from cluster.fetch import Outcome, Wanted, fetch
from cluster.fetch_offers import Offer
from cluster.fetch_pins import Digest
from cluster.fetch_url import Limits

PROGRAM = bytes(range(256)) * 400
PROGRAM_DIGEST = Digest(hashlib.sha256(PROGRAM).hexdigest(), len(PROGRAM))


def member(name: str, content: bytes = PROGRAM) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    return entry, content


def link(name: str, kind: bytes, to: str) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, to
    return entry, b""


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w:gz") as tar:
        for entry, content in entries:
            tar.addfile(entry, io.BytesIO(content))
    return output.getvalue()


def claims(name: str, size: int) -> bytes:
    """An archive whose only member says that it has `size` bytes."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    return gzip.compress(entry.tobuf() + bytes(1024))


def get(folder: Path, content: bytes, digest: Digest | None = PROGRAM_DIGEST) -> Outcome:
    file = folder / "published.tar.gz"
    file.write_bytes(content)
    pin = Digest(hashlib.sha256(content).hexdigest(), len(content))
    offer = Offer("origin", file, (pin,), "linux/etcd", digest)
    target = folder / "cache" / "etcd"
    (outcome,) = fetch([Wanted("etcd", target, (offer,))], {}, Limits(connect_seconds=20))
    assert sorted(folder.rglob("*")) == sorted(
        [file, target.parent, *([target] if outcome.way else [])]
    )
    return outcome


@pytest.mark.parametrize("digest", [PROGRAM_DIGEST, Digest(PROGRAM_DIGEST.sha256), None])
def test_a_program_is_taken_out_of_its_archive(tmp_path: Path, digest: Digest | None) -> None:
    content = archive(member("linux/README", b"read me"), member("linux/etcd"), member("other"))
    outcome = get(tmp_path, content, digest)
    assert outcome.way == "origin"
    assert outcome.wanted.target.read_bytes() == PROGRAM
    assert outcome.wanted.target.stat().st_mode & 0o111


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


WRONG = [
    (archive(member("etcd")), "an archive without linux/etcd"),
    (archive(member("../linux/etcd"), member("/linux/etcd")), "an archive without linux/etcd"),
    (archive(link("linux/etcd", tarfile.SYMTYPE, "/etc/passwd")), "in which .* is no file"),
    (archive(link("linux/etcd", tarfile.LNKTYPE, "/etc/passwd")), "in which .* is no file"),
    (archive(link("linux/etcd", tarfile.FIFOTYPE, "")), "in which .* is no file"),
    (archive(link("linux/etcd", tarfile.DIRTYPE, "")), "in which .* is no file"),
    (archive(member("linux/etcd", PROGRAM + b"x")), "in which linux/etcd is too large"),
    (claims("linux/etcd", 1 << 40), "in which linux/etcd is too large"),
    (archive(member("linux/etcd", PROGRAM[:-1] + b"x")), "whose linux/etcd is not the pinned"),
    (archive(member("linux/etcd", PROGRAM[:-1])), "whose linux/etcd is not the pinned one"),
    (cut(archive(member("linux/etcd"))), "an archive that is broken"),
    (b"no archive", "an archive that is broken"),
    (b"", "an archive that is broken"),
]


@pytest.mark.parametrize(("content", "why"), WRONG, ids=range(len(WRONG)))
def test_an_archive_gives_nothing_else(tmp_path: Path, content: bytes, why: str) -> None:
    outcome = get(tmp_path, content)
    assert outcome.way == ""
    assert re.search(why, outcome.reasons[0]), outcome.reasons


def test_what_comes_before_the_program_may_be_large_but_is_not_kept(tmp_path: Path) -> None:
    content = archive(member("zeros", bytes(5_000_000)), member("linux/etcd"))
    assert len(content) < 100_000
    assert get(tmp_path, content).way == "origin"
