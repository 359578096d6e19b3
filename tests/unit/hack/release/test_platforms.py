"""What this machine can build is found by trying."""

import os

import pytest

from release import platforms

NATIVE = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def test_a_program_of_this_machines_own_kind_runs() -> None:
    assert platforms.runs(NATIVE)


def test_a_program_that_does_not_run_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = platforms.probe(NATIVE).replace(b"\x7fELF", b"\x7fXXX")
    monkeypatch.setattr(platforms, "probe", lambda architecture: broken)
    assert not platforms.runs(NATIVE)


def test_one_that_ends_otherwise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "probe", lambda architecture: b"#!/bin/sh\nexit 3\n")
    assert not platforms.runs(NATIVE)


def test_what_cannot_be_built_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "runs", lambda architecture: architecture == "amd64")
    can, cannot = platforms.buildable()
    assert can == ("amd64",)
    assert list(cannot) == ["arm64"] and "qemu-user-static" in cannot["arm64"]


def test_what_was_not_asked_for_is_not_built_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platforms, "runs", lambda architecture: True)
    assert platforms.buildable("arm64") == (("arm64",), {"amd64": "not among ARCHITECTURES=arm64"})
