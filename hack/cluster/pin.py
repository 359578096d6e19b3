"""Writes pins.json: digests of what is published, and of what was built here.

Published ones are asked of the publisher (the file of digests beside the program, or the
program itself) and need a network that reaches it; a digest that is pinned already is
never replaced by another one of the same version.
"""

import asyncio
import hashlib
import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from cluster.build import path_of
from cluster.commands import run
from cluster.errors import ClusterError
from cluster.fetch_file import LARGEST_BYTES, unpack
from cluster.fetch_listed import SUMS_BYTES, listed_digest
from cluster.fetch_pins import Built, Digest, Pins, Published, this_platform
from cluster.fetch_url import Away, Limits, NotTaken, read
from cluster.files import sha256_of
from cluster.mirror import is_pinned
from cluster.programs import PROGRAMS, Program, key, version
from cluster.progress import say
from cluster.toolchain import find_go

PLATFORMS = ("linux-amd64", "linux-arm64")
_PATIENT = Limits(connect_seconds=30, answer_seconds=30, stall_seconds=30)
_LIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)\b")


def with_built(pins: Pins, programs: Iterable[Program] = PROGRAMS) -> Pins:
    """`pins` with what the cache has; pins of modules that have changed since are dropped.

    A program of the cache that was published, and not built here, is left as it is.
    """
    machine = this_platform()
    built = dict(pins.built)
    for program in programs:
        entries = [each for each in built.get(program.name, ()) if each.key == key(program)]
        path = path_of(program)
        if path.exists():
            sha256 = sha256_of(path)
            if not is_pinned(program, pins, machine, sha256):
                new = Built(
                    machine,
                    _go_of(path),
                    key(program),
                    Digest(sha256, path.stat().st_size),
                    libc_of(path) if program.cgo else "",
                )
                same = (new.platform, new.go)
                entries = [each for each in entries if (each.platform, each.go) != same]
                entries.append(new)
                say(f"{program.name}: pinned as built by {new.go} for {machine}")
        built[program.name] = tuple(sorted(entries, key=lambda each: (each.platform, each.go)))
    return replace(pins, built={name: entries for name, entries in built.items() if entries})


def libc_of(path: Path) -> str:
    """The newest glibc that a program asks for, such as 2.34; empty for a static one."""
    versions = {(int(found[1]), int(found[2])) for found in _LIBC.finditer(path.read_bytes())}
    return ".".join(map(str, max(versions))) if versions else ""


def _go_of(path: Path) -> str:
    answer = run([find_go(), "version", path], check=False)
    found = re.search(r": (go\S+)$", answer.stdout.strip())
    if not found:
        raise ClusterError(f"{path} was not built by Go: {answer.stderr.strip()}")
    return found[1]


def with_published(pins: Pins, programs: Iterable[Program] = PROGRAMS) -> tuple[Pins, list[str]]:
    """`pins` with digests of what is published, and what could not be had, a sentence each.

    Raises:
        ClusterError: a publisher has another file than the one that is pinned.
    """
    problems: list[str] = []
    away: dict[str, Away] = {}
    published = dict(pins.published)
    for program in programs:
        entry = published.get(program.name)
        if entry is None:
            continue
        wanted = version(program)
        if entry.version != wanted:
            entry = replace(entry, version=wanted, files={}, members={})
        for machine in PLATFORMS:
            host = str(urlsplit(entry.url).hostname)
            try:
                if host in away:
                    raise away[host]
                entry = _asked(entry, machine, program.name)
            except NotTaken as error:
                if isinstance(error, Away):
                    away[host] = error
                problems.append(f"{program.name} for {machine}: {host} {error}")
        published[program.name] = entry
    return replace(pins, published=published), problems


def _asked(entry: Published, machine: str, name: str) -> Published:
    before = entry.files.get(machine)
    url = entry.fill(entry.url, machine)
    listed = ""
    if entry.checksums:
        listed = listed_digest(
            _read(entry.fill(entry.checksums, machine), SUMS_BYTES).decode("utf-8", "replace"),
            url.rpartition("/")[2],
        )
    member_before = entry.members.get(machine)
    complete = before and before.size is not None and (member_before or not entry.member)
    if before and listed and listed != before.sha256:
        raise _other(name, machine, before.sha256, listed)
    if complete and before and (listed == before.sha256 or not entry.checksums):
        return entry
    say(f"{name} for {machine}: reading {url}")
    content = _read(url, LARGEST_BYTES)
    sha256 = hashlib.sha256(content).hexdigest()
    for expected in (listed, before.sha256 if before else ""):
        if expected and expected != sha256:
            raise _other(name, machine, expected, sha256)
    members: Mapping[str, Digest] = entry.members
    if entry.member:
        members = {**members, machine: _member(content, entry.fill(entry.member, machine))}
    files = {**entry.files, machine: Digest(sha256, len(content))}
    return replace(entry, files=files, members=members)


def _other(name: str, machine: str, expected: str, found: str) -> ClusterError:
    return ClusterError(
        f"{name} for {machine} is not the file that it was: sha256 {found}, expected {expected}; "
        "nothing was written"
    )


def _member(archive: bytes, member: str) -> Digest:
    program, digest = io.BytesIO(), hashlib.sha256()
    unpack(io.BytesIO(archive), member, program, LARGEST_BYTES, digest.update)
    return Digest(digest.hexdigest(), len(program.getvalue()))


def _read(url: str, most: int) -> bytes:
    return asyncio.run(read(urlsplit(url), most, _PATIENT))
