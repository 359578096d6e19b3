import re
from pathlib import Path

import pytest

from cluster import build, source, toolchain
from cluster.errors import ClusterError
from cluster.fetch_pins import Pins
from cluster.programs import KUBERNETES, KUBERNETES_VERSION, PROGRAMS


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path))
    monkeypatch.setenv("GPU_SCHEDULER_MIRROR", "off")
    return tmp_path


def fake_go(folder: Path, script: str) -> Path:
    go = folder / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(0o755)
    return go


def use_go(monkeypatch: pytest.MonkeyPatch, go: Path) -> None:
    monkeypatch.setattr(source, "find_go", lambda: go)


BUILDS = 'while [ "$1" != -o ]; do shift; done; echo program > "$2"'


def test_a_group_is_built_once(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_go(monkeypatch, fake_go(empty_cache, BUILDS))
    build.ensure(["check"])
    assert build.binary("kubeconform").read_text() == "program\n"
    shown = capsys.readouterr().err
    assert "kubeconform: from source, since GPU_SCHEDULER_MIRROR is off\n" in shown
    assert re.search(r"\n\[1/2\] kubeconform: done in \d+ s\n", shown)
    assert re.search(r"\n2 programs in \d+ s: 2 from source\n$", shown)
    build.ensure(["check"])
    assert capsys.readouterr().err == ""


def test_the_programs_of_one_module_are_built_by_one_run_of_the_compiler(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    into = 'while [ "$1" != -o ]; do shift; done; into=$2; shift 2'
    each = 'for package; do echo "$package" > "$into/${package##*/}"; done'
    use_go(monkeypatch, fake_go(empty_cache, f"{into}; {each}; echo run >> {empty_cache}/runs"))
    some = [program for program in PROGRAMS if program.module == KUBERNETES[KUBERNETES_VERSION]]
    build.obtain(some, Pins(), {})
    assert (empty_cache / "runs").read_text() == "run\n"
    for program in some:
        assert build.binary(program.name).read_text() == f"{program.package}\n"
    names = ", ".join(program.name for program in some)
    assert f"[1/1] {names}: done in " in capsys.readouterr().err
    folders = {build.path_of(program).parent for program in some}
    assert set((empty_cache / "bin").iterdir()) == folders, "nothing else is left"


def test_programs_are_built_together_where_nothing_tells_them_apart_but_their_package() -> None:
    for batch in source.batches(PROGRAMS, build.path_of):
        assert len({(each.module, each.cgo, each.flags) for each in batch.programs}) == 1
        if len(batch.programs) > 1:  # which is what the compiler calls them
            assert all(each.package.endswith(f"/{each.name}") for each in batch.programs)


def test_a_failed_build_leaves_no_program(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(monkeypatch, fake_go(empty_cache, f"{BUILDS}; echo broken.go:1: what; exit 1"))
    with pytest.raises(ClusterError, match=r"(?s)kubeconform could not be built.*broken\.go:1"):
        build.ensure(["check"])
    with pytest.raises(ClusterError, match="build check"):
        build.binary("kubeconform")


def test_no_network_is_named_as_the_cause(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(monkeypatch, fake_go(empty_cache, "echo 'dial tcp: lookup x: no such host'; exit 1"))
    with pytest.raises(ClusterError, match="needs a network"):
        build.ensure(["check"])


def test_a_missing_compiler_is_named_with_its_package(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_go(monkeypatch, fake_go(empty_cache, BUILDS))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ClusterError, match="apt-get install gcc"):
        build.ensure(["node"])


def test_unknown_names_are_told_what_there_is() -> None:
    with pytest.raises(ClusterError, match="core, node, check"):
        build.ensure(["all"])
    with pytest.raises(ClusterError, match="kubectl"):
        build.binary("kubctl")


def test_programs_of_different_modules_never_share_a_path() -> None:
    assert len({build.path_of(program) for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("go1.26.8\n", (1, 26)), ("go1.27rc1", (1, 27)), ("devel +abc", (0, 0)), ("", (0, 0))],
)
def test_versions_of_go_are_read(text: str, expected: tuple[int, int]) -> None:
    assert toolchain.version(text) == expected


def test_a_go_on_the_path_that_is_new_enough_is_used(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = fake_go(empty_cache, "echo go1.30.0")
    monkeypatch.setenv("PATH", f"{empty_cache}:/usr/bin:/bin")
    assert toolchain.find_go() == go
