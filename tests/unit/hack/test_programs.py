import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.programs import (
    GROUPS,
    KUBERNETES,
    PROGRAMS,
    TOOLS_FOLDER,
    VARIABLE,
    Program,
    in_groups,
    key,
)

ETCD = Program("etcd", "etcd", ".", "core")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    for module in ("etcd", "kwok"):
        (tmp_path / module).mkdir()
        (tmp_path / module / "go.mod").write_text(f"module {module}\nrequire x v1.0.0\n")
    return tmp_path


def test_key_is_stable(tools: Path) -> None:
    assert key(ETCD, tools) == key(ETCD, tools)


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go"])
def test_key_follows_the_files_of_the_module(tools: Path, file: str) -> None:
    before = key(ETCD, tools)
    (tools / "etcd" / file).write_text("module etcd\nrequire x v1.0.1\n")
    assert key(ETCD, tools) != before


def test_key_ignores_other_modules_and_other_files(tools: Path) -> None:
    before = key(ETCD, tools)
    (tools / "kwok" / "go.mod").write_text("module kwok\nrequire x v2.0.0\n")
    (tools / "etcd" / "notes.txt").write_text("notes")
    assert key(ETCD, tools) == before


@pytest.mark.parametrize(
    "changed",
    [
        replace(ETCD, cgo=True),
        replace(ETCD, linker_flags="-X version=2"),
        replace(ETCD, package="./cmd"),
    ],
)
def test_key_follows_the_way_of_building(tools: Path, changed: Program) -> None:
    assert key(changed, tools) != key(ETCD, tools)


def test_every_program_has_a_module_and_a_known_group() -> None:
    assert all((TOOLS_FOLDER / program.module / "go.mod").is_file() for program in PROGRAMS)
    assert {program.group for program in PROGRAMS} == set(GROUPS)
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("version", KUBERNETES)
def test_each_version_of_kubernetes_is_that_of_its_module(version: str) -> None:
    text = (TOOLS_FOLDER / KUBERNETES[version] / "go.mod").read_text()
    assert f"\nrequire k8s.io/kubernetes v{version}\n" in text
    assert f"\tk8s.io/api => k8s.io/api v0{version.removeprefix('1')}\n" in text


def test_a_version_that_nobody_builds_is_refused_with_those_that_are() -> None:
    command = [sys.executable, "-m", "cluster.programs"]
    there = {**os.environ, VARIABLE: "1.2.3"}
    answer = subprocess.run(command, env=there, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr == f"{VARIABLE}=1.2.3: it may be one of {', '.join(KUBERNETES)}\n"


def test_only_what_is_asked_for_is_built() -> None:
    assert {program.name for program in in_groups(["check"])} == {"kubeconform", "helm-unittest"}
    assert in_groups([]) == ()


def test_version_flags_say_what_go_mod_says() -> None:
    """A version that the linker is told must be the one that is compiled."""
    for program in PROGRAMS:
        module = (TOOLS_FOLDER / program.module / "go.mod").read_text()
        for flag in program.linker_flags.split():
            _, _, version = flag.partition("=")
            if version.startswith("v"):
                assert f" {version}\n" in module, program.name
