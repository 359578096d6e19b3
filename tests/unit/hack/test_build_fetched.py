import hashlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.hack import file_server as serve

import cluster
from cluster import build
from cluster.errors import ClusterError
from cluster.fetch_offers import path_in_mirror
from cluster.fetch_pins import Built, Digest, Pins, Published, this_platform
from cluster.fetch_url import Limits
from cluster.programs import Program, in_groups, key, version
from cluster.source import Batch

CHECK = in_groups(["check"])
PATIENT = Limits(
    connect_seconds=20, answer_seconds=20, stall_seconds=20, slow_seconds=60, report_seconds=60
)


def content_of(program: Program) -> bytes:
    return program.name.encode() * 1000


def digest_of(program: Program) -> Digest:
    content = content_of(program)
    return Digest(hashlib.sha256(content).hexdigest(), len(content))


def pinned(*programs: Program) -> Pins:
    return Pins(
        built={
            program.name: (Built(this_platform(), "go1.30.0", key(program), digest_of(program)),)
            for program in programs
        }
    )


def path_of(program: Program) -> str:
    return path_in_mirror(this_platform(), program.module, key(program), program.name)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[serve.Server]:
    """A mirror below a path, with both programs of the group `check`."""
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path))
    with serve.Server() as running:
        monkeypatch.setenv("GPU_SCHEDULER_MIRROR", f"{running.url}/some/where")
        running.answers = {
            f"/some/where/{path_of(program)}": serve.right(content_of(program)) for program in CHECK
        }
        yield running


def never(batch: Batch, _title: str) -> None:
    raise AssertionError(f"{batch.names}: not to be built")


def pretend(batch: Batch, _title: str) -> None:
    for program, target in zip(batch.programs, batch.targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{program.name} from source")


def test_with_a_full_mirror_nothing_is_built(
    server: serve.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    build.obtain(CHECK, pinned(*CHECK), {}, limits=PATIENT, compile_some=never)
    assert [build.binary(each.name).read_bytes() for each in CHECK] == list(map(content_of, CHECK))
    shown = capsys.readouterr().err.splitlines()
    assert shown[1] == f"the mirror is {server.url}/some/where"
    assert re.fullmatch(r"2 programs in \d+ s: 2 from the mirror \(0 MB\)", shown[-1])
    assert len(shown) == 5


def test_what_the_mirror_gets_wrong_is_built(
    server: serve.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = CHECK
    server.answers[f"/some/where/{path_of(second)}"] = serve.right(b"x" * len(content_of(second)))
    build.obtain(CHECK, pinned(*CHECK), {}, limits=PATIENT, compile_some=pretend)
    assert build.path_of(first).read_bytes() == content_of(first)
    assert build.path_of(second).read_text() == f"{second.name} from source"
    shown = capsys.readouterr().err
    lines = [line for line in shown.splitlines() if second.name in line]
    assert len(lines) == 1
    assert re.fullmatch(
        rf"{second.name}: from source, since the mirror has a file that is not the "
        r"pinned one \(sha256 \w{12}…, pinned \w{12}…\)",
        lines[0],
    )
    assert re.search(r"2 programs in \d+ s: 1 from the mirror \(0 MB\), 1 from source\n$", shown)


def test_a_changed_module_is_not_asked_for(server: serve.Server) -> None:
    other = Built(this_platform(), "go1.30.0", "0" * 16, digest_of(CHECK[0]))
    build.obtain(
        CHECK[:1], Pins(built={CHECK[0].name: (other,)}), {}, limits=PATIENT, compile_some=pretend
    )
    assert server.asked == []


def test_a_released_program_comes_from_its_publisher(
    server: serve.Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GPU_SCHEDULER_MIRROR")
    program = CHECK[0]
    published = Published(
        version(program),
        server.url + "/v{version}/{os}/{arch}/x",
        files={this_platform(): digest_of(program)},
    )
    pins = Pins(published={program.name: published})
    system, architecture = this_platform().split("-")
    path = f"/v{version(program)}/{system}/{architecture}/x"
    server.answers[path] = serve.right(content_of(program))
    build.obtain([program], pins, {}, limits=PATIENT, compile_some=never)
    assert server.asked == [path]
    assert f"{program.name}: from 127.0.0.1 (" in capsys.readouterr().err


def test_a_mirror_that_is_off_means_source_alone(
    server: serve.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_SCHEDULER_MIRROR", "off")
    published = Published("1", server.url, files={this_platform(): digest_of(CHECK[0])})
    pins = Pins({CHECK[0].name: published}, pinned(*CHECK).built)
    build.obtain(CHECK, pins, {}, compile_some=pretend)
    assert server.asked == []


def test_a_folder_that_is_not_there_is_said_for_each_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GPU_SCHEDULER_MIRROR", str(tmp_path / "mirror"))
    build.obtain(CHECK, pinned(*CHECK), {}, compile_some=pretend)
    assert capsys.readouterr().err.count("from source, since the mirror is not there\n") == 2


def test_no_password_is_shown(
    server: serve.Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers = {}
    monkeypatch.setenv("GPU_SCHEDULER_MIRROR", f"http://me:secret@{server.host}/x?token=secret")
    build.obtain(CHECK, pinned(*CHECK), {}, limits=PATIENT, compile_some=pretend)
    shown = capsys.readouterr().err
    assert "secret" not in shown
    assert f"the mirror is http://{server.host}/x\n" in shown
    assert server.asked[0].endswith("?token=secret")


@pytest.mark.parametrize("value", ["ftp://me:secret@x/", "http://", "https://x:port/", "file://x/"])
def test_a_wrong_mirror_is_said_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path))
    monkeypatch.setenv("GPU_SCHEDULER_MIRROR", value)
    with pytest.raises(ClusterError, match="GPU_SCHEDULER_MIRROR has to be") as caught:
        build.obtain(CHECK, pinned(*CHECK), {}, compile_some=never)
    assert "secret" not in str(caught.value)


def test_a_cache_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ClusterError, match="cannot be written .*GPU_SCHEDULER_CACHE moves it"):
        build.ensure(["check"])


RUN = """
import sys
from cluster import build
from tests.unit.hack.test_build_fetched import CHECK, pinned
build.fetch_pins.read = lambda: pinned(*CHECK)
build.ensure(["check"])
"""


def start() -> subprocess.Popen[str]:
    folders = [Path(cluster.__file__).parents[1], Path(__file__).parents[3]]
    return subprocess.Popen(
        [sys.executable, "-c", RUN],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long(always=True)
def test_the_second_of_two_runs_finds_the_work_done(server: serve.Server) -> None:
    both_run = threading.Event()
    path = f"/some/where/{path_of(CHECK[0])}"
    at_last = server.answers[path]

    def late(handler: serve.Handler) -> None:
        both_run.wait(60)
        at_last(handler)

    server.answers[path] = late
    with start() as one:
        assert server.first.wait(60)
        with start() as two:
            assert two.stderr is not None
            assert two.stderr.readline() == "waiting for another build to finish\n"
            both_run.set()
            assert two.stderr.read() == ""
        assert one.stderr is not None
        assert "2 from the mirror" in one.stderr.read()
    assert (one.returncode, two.returncode) == (0, 0)
    assert len(server.asked) == 2
