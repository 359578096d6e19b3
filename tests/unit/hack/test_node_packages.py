import os

import pytest

from cluster.node_packages import Package, PackagesMissing, ensure_packages, program

HERE = Package("coreutils", ("/no/such/file", "ls"))
GONE = Package("package-of-nobody", ("program-of-nobody",))


def test_a_program_counts_wherever_it_is() -> None:
    assert program(HERE).name == "ls"


def test_nothing_is_done_when_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", _never)
    ensure_packages([HERE])


def test_without_root_the_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", _never)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PackagesMissing, match=r"missing: package-of-nobody\. Install"):
        ensure_packages([HERE, GONE])


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PackagesMissing, match="package-of-nobody"):
        program(GONE)


def _never(*_: object, **__: object) -> None:
    raise AssertionError("no command may run")
