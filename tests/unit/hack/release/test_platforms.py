"""What this machine can build is found by trying."""

from pathlib import Path

import pytest

from cluster.images import native_architecture
from cluster.node_packages import Package
from release import platforms

(FOREIGN,) = {*platforms.ARCHITECTURES} - {native_architecture()}


def arch_test(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "arch-test"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(platforms, "ARCH_TEST", Package("arch-test", (str(program),)))


def test_a_program_of_this_machines_own_kind_runs() -> None:
    assert not platforms.why_not(native_architecture())


def test_one_of_another_kind_runs_where_it_could_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arch_test(tmp_path, monkeypatch, f'[ "$*" = {FOREIGN} ]')
    assert not platforms.why_not(FOREIGN)


def test_a_program_that_does_not_run_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arch_test(tmp_path, monkeypatch, "exit 1")
    assert "qemu-user-static" in platforms.why_not(FOREIGN)


def test_who_cannot_try_it_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(platforms, "ARCH_TEST", Package("arch-test", ("/nowhere/arch-test",)))
    can, cannot = platforms.buildable()
    assert can == (native_architecture(),)
    assert "missing: arch-test" in cannot[FOREIGN]


def test_what_cannot_be_built_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "why_not", lambda each: "" if each == "amd64" else "no")
    assert platforms.buildable() == (("amd64",), {"arm64": "no"})


def test_what_was_not_asked_for_is_not_built_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "why_not", lambda architecture: "")
    assert platforms.buildable("arm64") == (("arm64",), {"amd64": "not among ARCHITECTURES=arm64"})
