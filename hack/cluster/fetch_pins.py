"""Which files are taken for a program instead of building it: `pins.json`, read.

A file is known by its SHA-256. There are two kinds of them: what the project that makes
the program publishes (`Published`, bound to the version in go.mod), and what building it
here gives (`Built`, bound to the program's key, so a changed module unpins it). `pin.py`
writes the file; `fetch_offers.py` asks what of it applies to this checkout and machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.images import native_architecture

PINS_FILE = Path(__file__).with_name("pins.json")


@dataclass(frozen=True, slots=True)
class Digest:
    """A file, by its content. `size` is in bytes, None where it is not known."""

    sha256: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """Where a program is published, and what it is there.

    `url`, `checksums` and `member` are patterns with {version}, {os} and {arch}. Without
    `checksums` there is no file of digests beside it; with a `member` the file is a
    .tar.gz and the program is that member. `files` and `members` are by platform.
    """

    version: str
    url: str
    checksums: str = ""
    member: str = ""
    files: Mapping[str, Digest] = field(default_factory=dict)
    members: Mapping[str, Digest] = field(default_factory=dict)

    def fill(self, pattern: str, machine: str) -> str:
        """`pattern` (one of the three) for the platform `machine`, such as linux-amd64."""
        system, _, architecture = machine.partition("-")
        return pattern.format(version=self.version, os=system, arch=architecture)


@dataclass(frozen=True, slots=True)
class Built:
    """What building a program gives, on one platform with one release of Go.

    `libc` is the glibc that it needs, as "2.34"; empty for a static program.
    """

    platform: str
    go: str
    key: str
    digest: Digest
    libc: str = ""


@dataclass(frozen=True, slots=True)
class Pins:
    """All of pins.json, by the program's name."""

    published: Mapping[str, Published] = field(default_factory=dict)
    built: Mapping[str, tuple[Built, ...]] = field(default_factory=dict)

    def built_of(self, name: str, key: str, machine: str, libc: str) -> tuple[Digest, ...]:
        """Files built from this very module and flags that run on this machine."""
        return tuple(
            built.digest
            for built in self.built.get(name, ())
            if built.key == key and built.platform == machine and _runs_on(built.libc, libc)
        )

    def published_of(self, name: str, version: str) -> Published | None:
        """Where `version` of the program is published, if that is known."""
        published = self.published.get(name)
        return published if published is not None and published.version == version else None


def this_platform() -> str:
    """This machine in the words of Go's releases, such as linux-amd64."""
    return f"{sys.platform}-{native_architecture()}"


def this_libc() -> str:
    """The version of this machine's glibc, such as 2.36; empty where there is none."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return ""
    return version if name == "glibc" else ""


def _runs_on(needed: str, present: str) -> bool:
    def numbers(version: str) -> list[int]:
        return [int(part) for part in version.split(".")]

    return not needed or (bool(present) and numbers(present) >= numbers(needed))


def read(path: Path = PINS_FILE) -> Pins:
    """The pins of the repository."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return Pins(
        {name: _published(entry) for name, entry in content["published"].items()},
        {name: tuple(map(_built, entries)) for name, entries in content["built"].items()},
    )


def write(pins: Pins, path: Path = PINS_FILE) -> None:
    """Writes `pins` so that `read` gives them back; the same pins give the same bytes."""
    content = {
        "published": {
            name: {
                "version": entry.version,
                "url": entry.url,
                **({"checksums": entry.checksums} if entry.checksums else {}),
                **({"member": entry.member} if entry.member else {}),
                "files": _plain(entry.files),
                **({"members": _plain(entry.members)} if entry.member else {}),
            }
            for name, entry in sorted(pins.published.items())
        },
        "built": {
            name: [
                {
                    "platform": entry.platform,
                    "go": entry.go,
                    "key": entry.key,
                    **({"libc": entry.libc} if entry.libc else {}),
                    **_plain_digest(entry.digest),
                }
                for entry in sorted(entries, key=lambda entry: (entry.platform, entry.go))
            ]
            for name, entries in sorted(pins.built.items())
        },
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _published(entry: Mapping[str, Any]) -> Published:
    return Published(
        version=entry["version"],
        url=entry["url"],
        checksums=entry.get("checksums", ""),
        member=entry.get("member", ""),
        files=_digests(entry.get("files", {})),
        members=_digests(entry.get("members", {})),
    )


def _built(entry: Mapping[str, Any]) -> Built:
    return Built(
        entry["platform"], entry["go"], entry["key"], _digest(entry), entry.get("libc", "")
    )


def _digest(entry: Mapping[str, Any]) -> Digest:
    return Digest(entry["sha256"], entry.get("size"))


def _digests(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Digest]:
    return {machine: _digest(entry) for machine, entry in entries.items()}


def _plain_digest(digest: Digest) -> dict[str, Any]:
    size = {} if digest.size is None else {"size": digest.size}
    return {**size, "sha256": digest.sha256}


def _plain(digests: Mapping[str, Digest]) -> dict[str, dict[str, Any]]:
    return {machine: _plain_digest(digest) for machine, digest in sorted(digests.items())}


def known(digests: Iterable[Digest], sha256: str) -> bool:
    """Whether one of `digests` is of that content."""
    return any(digest.sha256 == sha256 for digest in digests)
