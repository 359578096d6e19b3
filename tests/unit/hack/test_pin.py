import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.unit.hack import file_server as serve

from cluster import build, pin
from cluster.errors import ClusterError
from cluster.fetch_pins import Built, Digest, Pins, Published, this_platform
from cluster.programs import in_groups, key, version

(PROGRAM,) = in_groups(["check"])[:1]
CONTENT = b"released" * 100
RELEASED = Digest(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
MACHINE = "linux-amd64"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[serve.Server]:
    monkeypatch.setattr(pin, "PLATFORMS", (MACHINE,))
    with serve.Server() as running:
        yield running


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the cache, and a Go that says what built it."""
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path / "cache"))
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\necho "$2: go1.30.0"\n')
    go.chmod(0o755)
    monkeypatch.setattr(pin, "find_go", lambda: go)
    path = build.path_of(PROGRAM)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"built")
    return path


def entry(content: bytes, go: str = "go1.30.0", program_key: str = "") -> Built:
    digest = Digest(hashlib.sha256(content).hexdigest(), len(content))
    return Built(this_platform(), go, program_key or key(PROGRAM), digest)


def test_what_was_built_here_is_pinned() -> None:
    assert pin.with_built(Pins(), [PROGRAM]).built == {PROGRAM.name: (entry(b"built"),)}


def test_another_release_of_go_has_another_pin_and_an_old_module_none() -> None:
    other, old = entry(b"other", "go1.29.0"), entry(b"old", "go1.30.0", "0" * 16)
    pins = pin.with_built(Pins(built={PROGRAM.name: (other, old)}), [PROGRAM])
    assert pins.built[PROGRAM.name] == (other, entry(b"built"))


def test_a_released_program_in_the_cache_is_not_pinned_as_built(built: Path) -> None:
    built.write_bytes(CONTENT)
    published = Published(version(PROGRAM), "", files={this_platform(): RELEASED})
    assert pin.with_built(Pins({PROGRAM.name: published}), [PROGRAM]).built == {}


def test_the_libc_of_a_program_is_the_newest_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.9\0")
    assert pin.libc_of(path) == "2.34"
    path.write_bytes(b"static")
    assert pin.libc_of(path) == ""


def pins_of(server: serve.Server, **changed: object) -> Pins:
    published = Published(
        version(PROGRAM), server.url + "/{version}/{arch}", server.url + "/{version}/SUMS"
    )
    return Pins({PROGRAM.name: replace(published, **changed)})  # type: ignore[arg-type]


def asked(pins: Pins) -> tuple[Published, list[str]]:
    after, problems = pin.with_published(pins, [PROGRAM])
    return after.published[PROGRAM.name], problems


def publish(server: serve.Server, content: bytes = CONTENT, listed: str = RELEASED.sha256) -> None:
    server.answers = {
        f"/{version(PROGRAM)}/amd64": serve.right(content),
        f"/{version(PROGRAM)}/SUMS": serve.right(f"{listed}  amd64\n".encode()),
    }


def test_a_published_program_is_pinned_after_both_its_digests_agree(server: serve.Server) -> None:
    publish(server)
    published, problems = asked(pins_of(server))
    assert (published.files, problems) == ({MACHINE: RELEASED}, [])


def test_a_new_version_replaces_the_pins_of_the_old_one(server: serve.Server) -> None:
    publish(server)
    published, _ = asked(pins_of(server, version="0.0.1", files={"linux-x": RELEASED}))
    assert (published.version, published.files) == (version(PROGRAM), {MACHINE: RELEASED})


def test_a_pin_without_a_size_gets_it(server: serve.Server) -> None:
    publish(server)
    published, _ = asked(pins_of(server, files={MACHINE: Digest(RELEASED.sha256)}))
    assert published.files == {MACHINE: RELEASED}


def test_a_complete_pin_is_compared_without_reading_the_program(server: serve.Server) -> None:
    publish(server)
    asked(pins_of(server, files={MACHINE: RELEASED}))
    assert server.asked == [f"/{version(PROGRAM)}/SUMS"]


def test_another_file_than_the_pinned_one_is_never_pinned(server: serve.Server) -> None:
    publish(server, listed="0" * 64)
    with pytest.raises(ClusterError, match="is not the file that it was"):
        asked(pins_of(server, files={MACHINE: RELEASED}))
    with pytest.raises(ClusterError, match="is not the file that it was"):
        asked(pins_of(server))
    publish(server, content=b"x")
    with pytest.raises(ClusterError, match="is not the file that it was"):
        asked(pins_of(server, files={MACHINE: Digest(RELEASED.sha256)}, checksums=""))


def test_a_publisher_that_lacks_it_is_named(server: serve.Server) -> None:
    server.answers = {f"/{version(PROGRAM)}/SUMS": serve.right(b"nothing")}
    _, problems = asked(pins_of(server))
    assert problems == [
        f"{PROGRAM.name} for {MACHINE}: 127.0.0.1 has no digest of amd64 in its file of digests"
    ]


def test_a_publisher_that_is_away_is_asked_once(
    server: serve.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pin, "PLATFORMS", (MACHINE, "linux-arm64"))
    server.answers = {f"/{version(PROGRAM)}/SUMS": serve.garbage}
    _, problems = asked(pins_of(server))
    assert len(problems) == 2
    assert len(server.asked) == 1


def test_a_program_in_an_archive_is_pinned_with_the_archive(server: serve.Server) -> None:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w:gz") as tar:
        member = tarfile.TarInfo("linux/x")
        member.size = len(CONTENT)
        tar.addfile(member, io.BytesIO(CONTENT))
    archive = output.getvalue()
    sha256 = hashlib.sha256(archive).hexdigest()
    publish(server, archive, sha256)
    published, _ = asked(pins_of(server, member="{os}/x"))
    assert published.files == {MACHINE: Digest(sha256, len(archive))}
    assert published.members == {MACHINE: RELEASED}
