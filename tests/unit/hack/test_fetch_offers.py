from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cluster.errors import ClusterError
from cluster.fetch_offers import (
    DigestFrom,
    Here,
    Mirror,
    Offer,
    Ways,
    mirror_from,
    origins_allowed,
    ways_to,
)
from cluster.fetch_pins import Built, Digest, Pins, Published

KEY = "0123456789abcdef"
BUILT = Digest("b" * 64, 10)
LATE = Digest("c" * 64, 11)
RELEASED = Digest("d" * 64)
ARCHIVE = Digest("e" * 64, 5)
PINS = Pins(
    published={
        "kubectl": Published(
            "1.2.3",
            "https://dl.example.org/v{version}/{os}/{arch}/k",
            files={"linux-amd64": RELEASED},
        ),
        "helm": Published(
            "4.0.0",
            "https://get.example.org/helm-v{version}-{os}-{arch}.tar.gz",
            member="{os}-{arch}/helm",
            files={"linux-amd64": ARCHIVE},
            members={"linux-amd64": RELEASED},
        ),
        "kubelet": Published("1.2.3", "https://dl.example.org/kubelet"),
        "etcd": Published(
            "3.6.0",
            "https://dl.example.org/{version}/etcd",
            "https://dl.example.org/{version}/sums",
        ),
    },
    built={
        "kubectl": (
            Built("linux-amd64", "go1.30.0", KEY, BUILT),
            Built("linux-amd64", "go1.30.1", KEY, LATE, libc="2.34"),
        )
    },
)
MIRROR = mirror_from("https://me:secret@mirror.example.org/a%20b/?token=secret")


def ways(
    name: str,
    *,
    key: str = KEY,
    version: str = "1.2.3",
    pins: Pins = PINS,
    mirror: Mirror | None = MIRROR,
    origins: bool = True,
    machine: str = "linux-amd64",
    libc: str = "2.36",
    remembered: dict[str, Digest] | None = None,
) -> Ways:
    here = Here(pins, mirror, origins, machine, libc, remembered or {})
    return ways_to(name, "module", key, version, here)


def test_the_mirror_comes_first_and_may_have_the_built_or_the_released_file() -> None:
    mirror, origin = ways("kubectl")
    assert mirror == Offer(
        "the mirror",
        urlsplit(
            "https://me:secret@mirror.example.org/a%20b/linux-amd64/"
            f"module-{KEY}/kubectl?token=secret"
        ),
        (BUILT, LATE, RELEASED),
    )
    assert origin == Offer(
        "dl.example.org", urlsplit("https://dl.example.org/v1.2.3/linux/amd64/k"), (RELEASED,)
    )


def test_an_archive_is_taken_from_its_publisher_and_its_program_from_a_mirror() -> None:
    mirror, origin = ways("helm", version="4.0.0", mirror=Mirror(Path("/m")))
    assert mirror == Offer("the mirror", Path(f"/m/linux-amd64/module-{KEY}/helm"), (RELEASED,))
    assert origin == Offer(
        "get.example.org",
        urlsplit("https://get.example.org/helm-v4.0.0-linux-amd64.tar.gz"),
        (ARCHIVE,),
        "linux-amd64/helm",
        RELEASED,
    )


def accepted(found: Ways) -> list[tuple[Digest, ...]]:
    return [way.accepted for way in found if isinstance(way, Offer)]


def test_a_changed_module_takes_no_file_that_was_built_before() -> None:
    assert accepted(ways("kubectl", key="f" * 16)) == [(RELEASED,), (RELEASED,)]


def test_a_changed_version_takes_no_file_that_was_released_before() -> None:
    assert accepted(ways("kubectl", version="1.2.4")) == [(BUILT, LATE)]


@pytest.mark.parametrize("libc", ["2.33", "", "2.4"])
def test_a_program_for_a_newer_libc_is_not_taken(libc: str) -> None:
    assert accepted(ways("kubectl", libc=libc))[0] == (BUILT, RELEASED)


def test_another_platform_takes_nothing() -> None:
    assert ways("kubectl", machine="linux-riscv64") == (
        "no digest is pinned for it as it is built here on linux-riscv64",
        "no digest is pinned of the file for linux-riscv64 at dl.example.org",
    )


def test_what_is_neither_pinned_nor_listed_is_never_asked_for() -> None:
    assert ways("kubelet", mirror=None) == (
        "no digest is pinned of the file for linux-amd64 at dl.example.org",
    )
    assert ways("certs", mirror=None) == ("no mirror is named (GPU_SCHEDULER_MIRROR)",)


LISTED = Offer(
    "dl.example.org",
    urlsplit("https://dl.example.org/3.6.1/etcd"),
    (),
    known=DigestFrom.LISTED,
    list=urlsplit("https://dl.example.org/3.6.1/sums"),
)


def test_what_is_not_pinned_counts_by_its_publishers_list_whatever_its_version() -> None:
    assert ways("etcd", version="3.6.1", mirror=None) == (
        "no digest is pinned of the file for linux-amd64 at dl.example.org",
        LISTED,
    )


def test_what_was_listed_once_is_remembered_and_may_come_from_a_mirror_too() -> None:
    remembered = {"https://dl.example.org/3.6.1/etcd": RELEASED}
    mirror, origin = ways("etcd", version="3.6.1", remembered=remembered)
    assert isinstance(mirror, Offer) and mirror.accepted == (RELEASED,)
    assert origin == replace(LISTED, accepted=(RELEASED,), known=DigestFrom.REMEMBERED, list=None)


def test_a_pin_counts_before_what_is_remembered() -> None:
    url = "https://dl.example.org/v1.2.3/linux/amd64/k"
    (origin,) = ways("kubectl", mirror=None, remembered={url: LATE})
    assert isinstance(origin, Offer) and (origin.accepted, origin.known) == (
        (RELEASED,),
        DigestFrom.PINNED,
    )


def test_off_allows_no_place_at_all() -> None:
    assert mirror_from("off") is None
    assert not origins_allowed("off")
    assert ways("kubectl", mirror=None, origins=False) == ("GPU_SCHEDULER_MIRROR is off",)


@pytest.mark.parametrize("value", [None, ""])
def test_no_mirror_leaves_the_publishers(value: str | None) -> None:
    assert mirror_from(value) is None
    assert origins_allowed(value)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("/srv/a b", Path("/srv/a b")),
        ("file:///srv/a%20b", Path("/srv/a b")),
        ("file://localhost/srv", Path("/srv")),
        ("relative", Path.cwd() / "relative"),
        ("https://x/y", urlsplit("https://x/y")),
        ("http://[::1]:8000", urlsplit("http://[::1]:8000")),
    ],
)
def test_a_mirror_is_a_folder_or_a_url(value: str, place: object) -> None:
    assert mirror_from(value) == Mirror(place)  # type: ignore[arg-type]


def test_a_mirror_is_shown_without_secrets() -> None:
    assert MIRROR is not None
    assert MIRROR.shown == "https://mirror.example.org/a%20b/"


@pytest.mark.parametrize(
    "value", ["ftp://x/", "http://", "http:///x", "https://x:port", "http://x:0/", "file://x/y"]
)
def test_anything_else_is_refused(value: str) -> None:
    with pytest.raises(ClusterError, match="GPU_SCHEDULER_MIRROR has to be"):
        mirror_from(value)
