"""Files that nobody pinned, by what their publisher lists: right, wrong, changed since."""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.hack import file_server as serve
from tests.unit.hack.test_build_fetched import CHECK, PATIENT, content_of, digest_of, never, pretend

from cluster import build, mirror
from cluster.errors import ClusterError
from cluster.fetch_listed import ListedDigests, listed_digest
from cluster.fetch_offers import path_in_mirror
from cluster.fetch_pins import Pins, Published, this_platform
from cluster.fetch_url import NotTaken
from cluster.programs import key, version

PROGRAM = CHECK[0]
FILE, SUMS = "/1/x", "/1/SUMS"
RIGHT = digest_of(PROGRAM)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GPU_SCHEDULER_MIRROR", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[serve.Server]:
    """A publisher behind TLS, whose certificate this machine trusts."""
    tls, authority = serve.behind_tls(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with serve.Server(tls) as running:
        publish(running)
        yield running


def publish(server: serve.Server, content: bytes = content_of(PROGRAM), listed: str = "") -> None:
    listed = listed or hashlib.sha256(content).hexdigest()
    server.answers = {
        FILE: serve.right(content),
        SUMS: serve.right(f"{listed}  x\n".encode()),
    }


def pins_of(server: serve.Server, member: str = "") -> Pins:
    found = Published(version(PROGRAM), server.url + FILE, server.url + SUMS, member)
    return Pins({PROGRAM.name: found})


def get(server: serve.Server, compile_some: build.Compile = never) -> bytes:
    build.path_of(PROGRAM).unlink(missing_ok=True)
    build.obtain([PROGRAM], pins_of(server), {}, limits=PATIENT, compile_some=compile_some)
    return build.path_of(PROGRAM).read_bytes()


def test_the_publishers_list_counts_where_nothing_is_pinned_and_this_is_said(
    server: serve.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert get(server) == content_of(PROGRAM)
    assert server.asked == [SUMS, FILE]
    (line,) = (x for x in capsys.readouterr().err.splitlines() if x.startswith(PROGRAM.name))
    assert line.endswith(
        f"no digest is pinned of the file for {this_platform()} at 127.0.0.1; "
        "it has the digest that 127.0.0.1 lists, and has to have it from now on"
    )


def test_a_second_download_has_to_match_and_the_list_is_not_asked_again(
    server: serve.Server,
) -> None:
    get(server)
    server.asked.clear()
    assert get(server) == content_of(PROGRAM)
    assert server.asked == [FILE]
    assert ListedDigests().known == {server.url + FILE: RIGHT}


def test_a_file_that_changed_since_is_refused_though_its_list_changed_with_it(
    server: serve.Server, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    get(server)
    publish(server, b"x" * len(content_of(PROGRAM)))
    assert get(server, pretend) == f"{PROGRAM.name} from source".encode()
    shown = capsys.readouterr().err
    assert "127.0.0.1 has a file that is not the remembered one (sha256 " in shown
    assert f"; where that is meant, delete {cache / 'published.json'}\n" in shown
    (cache / "published.json").unlink()
    assert get(server) == b"x" * len(content_of(PROGRAM))


def test_a_file_that_is_not_the_listed_one_is_refused_and_not_remembered(
    server: serve.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(server, listed="0" * 64)
    assert get(server, pretend) == f"{PROGRAM.name} from source".encode()
    assert "is not the listed one (sha256 " in capsys.readouterr().err
    assert ListedDigests().known == {}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (serve.right(b"<html>log in first</html>"), "has no digest of x in its file of digests"),
        (serve.status(404), "has no such file (404)"),
        (
            serve.redirect("http://127.0.0.1/x"),
            "redirects to http://127.0.0.1/x, which is not http",
        ),
        (serve.endless, "has a file of more than 1,048,576 bytes"),
    ],
)
def test_a_list_that_says_nothing_leaves_the_source(
    server: serve.Server, answer: serve.Answer, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers[SUMS] = answer
    assert get(server, pretend) == f"{PROGRAM.name} from source".encode()
    assert f"127.0.0.1 {why}" in capsys.readouterr().err
    assert FILE not in server.asked


def test_a_list_that_is_not_behind_tls_counts_for_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serve.Server() as plain:
        publish(plain)
        assert get(plain, pretend) == f"{PROGRAM.name} from source".encode()
        assert plain.asked == []
    assert "has its list of digests at a URL that is not https" in capsys.readouterr().err


def test_a_server_that_nobody_vouches_for_is_not_believed(
    server: serve.Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    assert get(server, pretend) == f"{PROGRAM.name} from source".encode()
    assert "has a certificate that is not trusted" in capsys.readouterr().err


def test_a_list_is_of_the_archive_that_a_program_is_in(server: serve.Server) -> None:
    content, output = content_of(PROGRAM), io.BytesIO()
    with tarfile.open(fileobj=output, mode="w:gz") as tar:
        member = tarfile.TarInfo("in/x")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    publish(server, output.getvalue())
    pins = pins_of(server, member="in/x")
    build.obtain([PROGRAM], pins, {}, limits=PATIENT, compile_some=never)
    assert build.path_of(PROGRAM).read_bytes() == content


def test_a_mirror_that_has_it_is_asked_first_and_needs_no_list(
    server: serve.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get(server)
    there = tmp_path / path_in_mirror(this_platform(), PROGRAM.module, key(PROGRAM), PROGRAM.name)
    there.parent.mkdir(parents=True)
    there.write_bytes(content_of(PROGRAM))
    monkeypatch.setenv("GPU_SCHEDULER_MIRROR", str(tmp_path))
    server.asked.clear()
    assert get(server) == content_of(PROGRAM)
    assert server.asked == []


def test_what_one_user_remembers_goes_into_no_mirror(server: serve.Server, tmp_path: Path) -> None:
    get(server)
    (left_out,) = mirror.fill(tmp_path / "mirror", pins_of(server), [PROGRAM])
    assert "is no pinned file" in left_out


def test_a_memory_that_cannot_be_read_is_said_with_the_way_out(cache: Path) -> None:
    cache.mkdir()
    (cache / "published.json").write_text("[")
    with pytest.raises(ClusterError, match=r"published\.json does not say .*; delete it to trust"):
        ListedDigests()


@pytest.mark.parametrize(
    "text", ["{d}", "{d}\n", "{d}  x\n", "{d} *x\n", f"{'0' * 64}  y\n{{d}}  x\n"]
)
def test_files_of_digests_are_read(text: str) -> None:
    assert listed_digest(text.format(d=RIGHT.sha256), "x") == RIGHT.sha256


@pytest.mark.parametrize("text", ["", "<html>", "{d}  y", "abc  x", "{d} x y"])
def test_a_file_without_the_digest_is_refused(text: str) -> None:
    with pytest.raises(NotTaken, match="has no digest of x"):
        listed_digest(text.format(d=RIGHT.sha256), "x")
