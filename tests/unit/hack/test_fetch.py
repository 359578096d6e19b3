import hashlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.unit.hack import file_server as serve
from tests.unit.ports import reserved_port

import cluster
from cluster.errors import ClusterError
from cluster.fetch import Outcome, Wanted, fetch
from cluster.fetch_offers import Offer
from cluster.fetch_pins import Digest
from cluster.fetch_url import Limits

PROGRAM = bytes(range(256)) * 4000
PINNED = Digest(hashlib.sha256(PROGRAM).hexdigest(), len(PROGRAM))
UNSIZED = Digest(PINNED.sha256)
PATIENT = Limits(
    connect_seconds=20, answer_seconds=20, stall_seconds=20, slow_seconds=60, report_seconds=60
)


@pytest.fixture
def server() -> Iterator[serve.Server]:
    with serve.Server() as running:
        yield running


def at(server: serve.Server, path: str = "/program", *pins: Digest, way: str = "mirror") -> Offer:
    return Offer(way, urlsplit(server.url + path), pins or (PINNED,))


def wanted(folder: Path, *ways: Offer | str, name: str = "program") -> Wanted:
    return Wanted(name, folder / name / name, ways)


def get(
    folder: Path, *ways: Offer | str, limits: Limits = PATIENT, away: dict[str, str] | None = None
) -> Outcome:
    (outcome,) = fetch([wanted(folder, *ways)], {} if away is None else away, limits)
    return outcome


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("answer", [serve.right(PROGRAM), serve.without_length(PROGRAM)])
@pytest.mark.parametrize("pin", [PINNED, UNSIZED])
def test_a_pinned_file_becomes_the_program(
    tmp_path: Path,
    server: serve.Server,
    answer: serve.Answer,
    pin: Digest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.answers["/program"] = answer
    outcome = get(tmp_path, at(server, "/program", pin))
    assert outcome.way == "mirror"
    assert outcome.size == len(PROGRAM)
    assert outcome.wanted.target.read_bytes() == PROGRAM
    assert os.access(outcome.wanted.target, os.X_OK)
    assert files_in(tmp_path) == ["program"]
    assert re.fullmatch(r"program: from mirror \(1\.0 MB in \d+\.\d s\)\n", capsys.readouterr().err)


WRONG = {
    "cut": (serve.says_length(PROGRAM[:70_000], len(PROGRAM)), "sent only 70,000 of 1,024,000 b"),
    "cut, no length": (serve.without_length(PROGRAM[:70_000]), "70,000 bytes, pinned: 1,024,000"),
    # Which of the two it is depends on whether what is too much comes with the header in one piece.
    "length too short": (
        serve.says_length(PROGRAM, 70_000),
        "gives no answer .Bad status line|70,000 bytes, pinned: 1,024,000",
    ),
    "changed": (serve.right(b"x" + PROGRAM[1:]), r"is not the pinned one \(sha256 [0-9a-f]{12}…"),
    "too large": (serve.right(PROGRAM + b"x"), "1,024,001 bytes, pinned: 1,024,000"),
    "too large, no length": (serve.without_length(PROGRAM + b"x"), "more than the 1,024,000 bytes"),
    "endless": (serve.endless, "more than the 1,024,000 bytes"),
    "empty": (serve.right(b""), "0 bytes, pinned: 1,024,000"),
    "missing": (serve.status(404), r"has no such file \(404\)"),
    "defect": (serve.status(500), "answers 500 Internal Server Error"),
    "refused": (serve.status(403), "answers 403 Forbidden"),
    "page": (serve.page(), "25 bytes, pinned: 1,024,000"),
    "compressed": (serve.compressed(PROGRAM), "sends the file as gzip"),
    "moved away": (serve.redirect("http://mirror.invalid/x"), "redirects to http://mirror.invalid"),
    "to a file": (serve.redirect("file:///etc/passwd"), "redirects to file:///etc/passwd"),
    "to nothing": (serve.redirect(""), "redirects to"),
    "in a circle": (serve.redirect("/program"), "redirects more than 5 times"),
}


@pytest.mark.parametrize(("answer", "why"), WRONG.values(), ids=WRONG.keys())
def test_any_other_file_is_refused_and_the_next_way_is_taken(
    tmp_path: Path,
    server: serve.Server,
    answer: serve.Answer,
    why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.answers |= {"/program": answer, "/origin": serve.right(PROGRAM)}
    outcome = get(tmp_path, at(server), at(server, "/origin", way="origin"))
    assert outcome.way == "origin"
    assert outcome.wanted.target.read_bytes() == PROGRAM
    assert files_in(tmp_path) == ["program"]
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(rf"^program: from origin \(.*\), since mirror .*{why}", line), line


@pytest.mark.parametrize(("answer", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_refused_file_leaves_nothing_behind(
    tmp_path: Path, server: serve.Server, answer: serve.Answer, why: str
) -> None:
    server.answers["/program"] = answer
    outcome = get(tmp_path, at(server), "nobody publishes it")
    assert outcome.way == ""
    assert outcome.reasons[1:] == ("nobody publishes it",)
    assert re.search(why, outcome.reasons[0])
    assert files_in(tmp_path) == []


AWAY = {
    "silent": (serve.silent, Limits(answer_seconds=0.3), "gives no answer within 0.3 s"),
    "stalled": (
        serve.stalled(PROGRAM[:1000], len(PROGRAM)),
        Limits(stall_seconds=0.3),
        "stopped sending",
    ),
    "slow": (
        serve.dripping(PROGRAM, 0.01),
        Limits(slow_seconds=0.5, slow_bytes_per_second=1e6),
        "sends less than 1 MB a second",
    ),
    "an endless head of a chunk": (
        serve.dripping_chunk_header,
        Limits(stall_seconds=0.3),
        "stopped sending for 0.3 s",
    ),
    "no HTTP": (serve.garbage, PATIENT, "gives no answer"),
}


@pytest.mark.parametrize(("answer", "limits", "why"), AWAY.values(), ids=AWAY.keys())
def test_a_place_that_keeps_one_waiting_is_asked_once(
    tmp_path: Path, server: serve.Server, answer: serve.Answer, limits: Limits, why: str
) -> None:
    names = [f"program-{number}" for number in range(8)]
    server.answers = {f"/{name}": answer for name in names}
    programs = [wanted(tmp_path, at(server, f"/{name}", way="mirror"), name=name) for name in names]
    one_by_one = Limits(
        limits.connect_seconds,
        limits.answer_seconds,
        limits.stall_seconds,
        limits.slow_seconds,
        limits.slow_bytes_per_second,
        at_once=1,
    )
    away: dict[str, str] = {}
    outcomes = fetch(programs, away, one_by_one)
    assert server.first.wait(60)  # whoever asked may have left before it was heard
    assert len(server.asked) == 1
    assert [outcome.way for outcome in outcomes] == [""] * 8
    assert all(why in outcome.reasons[0] for outcome in outcomes)
    assert files_in(tmp_path) == []
    fetch(programs, away, one_by_one)
    assert len(server.asked) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "mirror.invalid"])
def test_a_place_that_is_not_there_is_asked_once_for_all(tmp_path: Path, host: str) -> None:
    away: dict[str, str] = {}
    with reserved_port() as port:
        offer = Offer("mirror", urlsplit(f"http://{host}:{port}/x"), (PINNED,))
        programs = [wanted(tmp_path, offer, name=f"program-{number}") for number in range(8)]
        outcomes = fetch(programs, away, PATIENT)
    assert all("mirror does not answer (" in outcome.reasons[0] for outcome in outcomes)
    assert list(away) == ["mirror"]


def test_a_place_that_does_not_take_connections_is_away(tmp_path: Path) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        others = [socket.socket() for _ in range(4)]
        for other in others:
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        url = urlsplit(f"http://127.0.0.1:{full.getsockname()[1]}/")
        outcome = get(tmp_path, Offer("mirror", url, (PINNED,)), limits=Limits(connect_seconds=0.3))
        for other in others:
            other.close()
    assert outcome.reasons == ("mirror does not answer (no connection within 0.3 s)",)


def test_files_that_are_wrong_for_too_long_end_the_asking(
    tmp_path: Path, server: serve.Server
) -> None:
    names = [f"program-{number}" for number in range(8)]
    server.answers = {f"/{name}": serve.right(b"x" + PROGRAM[1:]) for name in names}
    programs = [wanted(tmp_path, at(server, f"/{name}"), name=name) for name in names]
    outcomes = fetch(programs, {}, Limits(wasted_seconds=0.0, at_once=1))
    assert len(server.asked) == 1
    assert "given no right file" in outcomes[-1].reasons[0]


def test_one_wrong_file_is_not_held_against_the_others(
    tmp_path: Path, server: serve.Server
) -> None:
    names = [f"program-{number}" for number in range(8)]
    server.answers = {f"/{name}": serve.right(PROGRAM) for name in names}
    server.answers["/program-3"] = serve.says_length(PROGRAM[:10], len(PROGRAM))
    programs = [wanted(tmp_path, at(server, f"/{name}"), name=name) for name in names]
    outcomes = fetch(programs, {}, PATIENT)
    assert {each.wanted.name for each in outcomes if not each.way} == {"program-3"}


def test_redirects_within_the_place_are_followed(tmp_path: Path, server: serve.Server) -> None:
    server.answers |= {
        "/program": serve.redirect("/a%20b/?c=d", 307),
        "/a%20b/?c=d": serve.right(PROGRAM),
    }
    assert get(tmp_path, at(server)).way == "mirror"


def test_a_size_is_shown_while_it_comes(
    tmp_path: Path, server: serve.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "1 of 1 MB" in line:
            server.over.set()  # the file is cut off

    monkeypatch.setattr("cluster.fetch.say", say)
    server.answers["/program"] = serve.stalled(PROGRAM[:700_000], len(PROGRAM))
    get(tmp_path, at(server), limits=replace(PATIENT, report_seconds=0.1))
    assert "program: 1 of 1 MB" in said


def test_leftovers_of_a_killed_run_are_deleted(tmp_path: Path, server: serve.Server) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / ".program.partial").write_bytes(PROGRAM[:500])
    server.answers["/program"] = serve.right(PROGRAM)
    assert get(tmp_path, at(server)).way == "mirror"
    assert files_in(tmp_path) == ["program"]


RUN = """
import sys
from pathlib import Path
from urllib.parse import urlsplit
from cluster.fetch import Wanted, fetch
from cluster.fetch_offers import Offer
from cluster.fetch_pins import Digest
folder, url, sha256, size = sys.argv[1:]
offer = Offer("mirror", urlsplit(url), (Digest(sha256, int(size)),))
fetch([Wanted("program", Path(folder, "program", "program"), (offer,))], {})
"""


def start(folder: Path, server: serve.Server, script: str = RUN) -> subprocess.Popen[str]:
    source = Path(cluster.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", script]
        + [str(folder), f"{server.url}/program", PINNED.sha256, str(PINNED.size)],
        env={**os.environ, "PYTHONPATH": str(source)},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_run_that_is_killed_in_the_middle_shows_no_program(
    tmp_path: Path, server: serve.Server
) -> None:
    server.answers["/program"] = serve.stalled(PROGRAM[:1000], len(PROGRAM))
    with start(tmp_path, server) as run:
        assert server.first.wait(60)
        run.kill()
    assert files_in(tmp_path) == [".program.partial"]
    server.answers["/program"] = serve.right(PROGRAM)
    assert get(tmp_path, at(server)).way == "mirror"
    assert files_in(tmp_path) == ["program"]


def test_a_full_disk_is_said_and_is_no_reason_to_build(
    tmp_path: Path, server: serve.Server
) -> None:
    server.answers["/program"] = serve.right(PROGRAM)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    with start(tmp_path, server, limited + RUN) as run:
        _, shown = run.communicate()
    assert run.returncode != 0
    assert "cluster.errors.ClusterError" in shown
    assert "cannot be written (File too large)" in shown
    assert files_in(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, server: serve.Server) -> None:
    (tmp_path / "program").write_text("in the way")
    server.answers["/program"] = serve.right(PROGRAM)
    with pytest.raises(ClusterError, match="cannot be written"):
        get(tmp_path, at(server))


def test_an_interrupted_run_deletes_what_has_arrived(
    tmp_path: Path, server: serve.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_line: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cluster.fetch.say", interrupt)
    server.answers["/program"] = serve.stalled(PROGRAM[:1000], len(PROGRAM))
    with pytest.raises(KeyboardInterrupt):
        get(tmp_path, at(server), limits=Limits(report_seconds=0.2))
    assert files_in(tmp_path) == []


def test_a_folder_is_a_mirror(tmp_path: Path) -> None:
    file = tmp_path / "mirror"
    file.write_bytes(PROGRAM)
    outcome = get(tmp_path / "cache", Offer("mirror", file, (PINNED,)))
    assert outcome.wanted.target.read_bytes() == PROGRAM
    file.write_bytes(PROGRAM[:-1])
    assert outcome.wanted.target.read_bytes() == PROGRAM
    outcome = get(tmp_path / "other", Offer("mirror", file, (PINNED,)))
    assert "1,023,999 bytes, pinned: 1,024,000" in outcome.reasons[0]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "nothing"])
def test_what_is_no_file_in_a_folder_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif kind == "device":
        place.symlink_to("/dev/zero")
    outcome = get(tmp_path / "cache", Offer("mirror", place, (PINNED,)))
    assert re.search("no file|no such file|cannot be read", outcome.reasons[0])
    assert files_in(tmp_path / "cache") == []
