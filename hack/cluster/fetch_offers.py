"""Where each program could be taken from, in order, and which files would be accepted.

Nothing is asked here. An `Offer` is one place and the digests that a file from there may
have: those that are pinned, or that were remembered when the file was fetched before, or else
that which its publisher lists (`fetch_listed.py`); a place without any is no offer but a sentence
that says so. The mirror that a user names comes first, then the place where the program is
published.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec.structs import replace

from cluster.errors import ClusterError
from cluster.fetch_pins import Digest, Pins, Published

VARIABLE = "GPU_SCHEDULER_MIRROR"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Mirror:
    """A folder, or a URL of one, laid out as `path_in_mirror` says."""

    place: Path | SplitResult

    @property
    def shown(self) -> str:
        """Where it is, without what may be a secret in its URL."""
        return str(self.place) if isinstance(self.place, Path) else without_secrets(self.place)


class DigestFrom(StrEnum):
    """Who says which digest a file has to have."""

    PINNED = auto()
    REMEMBERED = auto()
    LISTED = auto()


@dataclass(frozen=True, slots=True)
class Offer:
    """One place that may have a program.

    `way` names it in sentences; what is learnt of it (that it is away) counts for every
    offer with the same `way`. With a `member` the file is an archive, and `member_digest`
    is that of the program in it, if it is known. `known` says who says what is `accepted`;
    with a `list` that is to be read there first.
    """

    way: str
    place: Path | SplitResult
    accepted: tuple[Digest, ...]
    member: str = ""
    member_digest: Digest | None = None
    known: DigestFrom = DigestFrom.PINNED
    list: SplitResult | None = None


@dataclass(frozen=True, slots=True)
class Here:
    """What is the same for every program: this machine, and what its user said.

    Attributes:
        pins: files that are accepted.
        mirror: that which the user names.
        origins: whether programs may be taken from where they are published.
        machine: the platform, such as linux-amd64.
        libc: the version of its glibc, such as 2.36.
        remembered: published files that came without being pinned, by URL.
    """

    pins: Pins
    mirror: Mirror | None
    origins: bool
    machine: str
    libc: str
    remembered: Mapping[str, Digest] = field(default_factory=dict)

    def published(self, name: str, version: str) -> tuple[Published | None, DigestFrom]:
        """Where the program is published, with its file as far as it is known, and by whom."""
        found = self.pins.published_of(name, version)
        if found is None or self.machine in found.files:
            return found, DigestFrom.PINNED
        file = self.remembered.get(found.fill(found.url, self.machine))
        if file is None:
            return found, DigestFrom.LISTED
        return replace(found, files={**found.files, self.machine: file}), DigestFrom.REMEMBERED


# In the order in which they are tried; a sentence stands for a place that offers nothing.
Ways = tuple[Offer | str, ...]


def without_secrets(url: SplitResult) -> str:
    """`url` without user, password, query and fragment."""
    host = url.netloc.rpartition("@")[2]
    return f"{url.scheme}://{host}{url.path}"


def is_loopback(url: SplitResult) -> bool:
    """Whether `url` leads to this machine by a name that always does."""
    return url.hostname in _LOOPBACK


def mirror_from(value: str | None) -> Mirror | None:
    """The mirror that the variable names; None when it is unset or `off`.

    Raises:
        ClusterError: it is neither a URL that is understood nor a folder's path.
    """
    if not value or value == "off":
        return None
    if "://" not in value:
        return Mirror(Path(value).absolute())
    try:
        url = urlsplit(value)
        port_is_wrong = url.port == 0
    except ValueError:
        url, port_is_wrong = urlsplit(""), True
    if not port_is_wrong and url.scheme in ("http", "https") and url.hostname:
        return Mirror(url)
    if not port_is_wrong and url.scheme == "file" and url.netloc in ("", "localhost") and url.path:
        return Mirror(Path(unquote(url.path)))
    raise ClusterError(
        f"{VARIABLE} has to be an http, https or file URL, the path of a folder, or off"
    )


def origins_allowed(value: str | None) -> bool:
    """Whether programs may be taken from where they are published."""
    return value != "off"


def path_in_mirror(machine: str, module: str, key: str, name: str) -> str:
    """Where a mirror has a program: the platform, then as in the cache's own folder."""
    return f"{machine}/{module}-{key}/{name}"


def ways_to(name: str, module: str, key: str, version: str, here: Here) -> Ways:
    """Where one program may be taken from, in order."""
    ways: list[Offer | str] = []
    machine, mirror = here.machine, here.mirror
    published, known = here.published(name, version)
    file = published.files.get(machine) if published else None
    if mirror is not None:
        accepted = here.pins.built_of(name, key, machine, here.libc)
        accepted += published.program(machine) if published else ()
        if accepted:
            path = path_in_mirror(machine, module, key, name)
            ways.append(Offer("the mirror", _below(mirror.place, path), accepted))
        else:
            ways.append(f"no digest is pinned for it as it is built here on {machine}")
    if not here.origins:
        ways.append(f"{VARIABLE} is off")
    elif published:
        url = urlsplit(published.fill(published.url, machine))
        host = str(url.hostname)
        if file is None:
            ways.append(f"no digest is pinned of the file for {machine} at {host}")
        if file or published.checksums:
            ways.append(
                Offer(
                    host,
                    url,
                    (file,) if file else (),
                    published.fill(published.member, machine),
                    published.members.get(machine),
                    known,
                    None if file else urlsplit(published.fill(published.checksums, machine)),
                )
            )
    elif mirror is None:
        ways.append(f"no mirror is named ({VARIABLE})")
    return tuple(ways)


def _below(place: Path | SplitResult, path: str) -> Path | SplitResult:
    if isinstance(place, Path):
        return place / path
    return place._replace(path=f"{place.path.rstrip('/')}/{quote(path)}", fragment="")
