"""Which files are taken for a program instead of building it: `pins.json`, read.

A file is known by its SHA-256. There are two kinds of them: what the project that makes
the program publishes (`Published`, bound to the version in go.mod), and what building it
here gives (`Built`, bound to the program's key, so a changed module unpins it). `pin.py`
writes the file; `fetch_offers.py` asks what of it applies to this checkout and machine.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cluster.images import native_architecture

PINS_FILE = Path(__file__).with_name("pins.json")


class Digest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file, by its content. `size` is in bytes, None where it is not known."""

    sha256: str
    size: int | None = None


class Published(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a program is published, and what it is there.

    `url`, `checksums` and `member` are patterns with {version}, {os} and {arch}. Without
    `checksums` there is no file of digests beside it; with a `member` the file is a
    .tar.gz and the program is that member. `files` and `members` are by platform; `others`
    are files of other versions, by version and platform.
    """

    version: str
    url: str
    checksums: str = ""
    member: str = ""
    files: Mapping[str, Digest] = {}
    members: Mapping[str, Digest] = {}
    others: Mapping[str, Mapping[str, Digest]] = {}

    def fill(self, pattern: str, machine: str) -> str:
        """`pattern` (one of the three) for the platform `machine`, such as linux-amd64."""
        system, _, architecture = machine.partition("-")
        return pattern.format(version=self.version, os=system, arch=architecture)

    def program(self, machine: str) -> tuple[Digest, ...]:
        """The program itself on that platform, not its archive; empty where it is not known."""
        ready = self.members if self.member else self.files
        return (ready[machine],) if machine in ready else ()


class Built(msgspec.Struct, frozen=True, omit_defaults=True):
    """What building a program gives, on one platform with one release of Go.

    `libc` is the glibc that it needs, as "2.34"; empty for a static program.
    """

    platform: str
    go: str
    key: str
    digest: Digest
    libc: str = ""


class Pins(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of pins.json, by the program's name."""

    published: Mapping[str, Published] = {}
    built: Mapping[str, tuple[Built, ...]] = {}

    def built_of(self, name: str, key: str, machine: str, libc: str) -> tuple[Digest, ...]:
        """Files built from this very module and flags that run on this machine."""
        return tuple(
            built.digest
            for built in self.built.get(name, ())
            if built.key == key and built.platform == machine and _runs_on(built.libc, libc)
        )

    def published_of(self, name: str, version: str) -> Published | None:
        """Where `version` of the program is published; files are of the version in pins.json."""
        published = self.published.get(name)
        if published is None or published.version == version:
            return published
        files = published.others.get(version, {})
        return msgspec.structs.replace(published, version=version, files=files, members={})


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
    return msgspec.json.decode(path.read_bytes(), type=Pins)


def write(pins: Pins, path: Path = PINS_FILE) -> None:
    """Writes `pins` so that `read` gives them back; the same pins give the same bytes."""
    content = msgspec.json.encode(pins, order="deterministic")
    path.write_bytes(msgspec.json.format(content, indent=2) + b"\n")
