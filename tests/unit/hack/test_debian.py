import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cluster import debian
from cluster.errors import ClusterError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path))
    return tmp_path


def apt(monkeypatch: pytest.MonkeyPatch, code: int = 0) -> list[Sequence[str]]:
    """apt-get and dpkg-deb of a machine whose package ``tool`` has usr/bin/tool."""
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str], *, cwd: Path, **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        if code == 0 and "download" in command:
            (cwd / "tool_1_amd64.deb").touch()
        if command[0] == "dpkg-deb":
            (cwd / "usr/bin").mkdir(parents=True)
            (cwd / "usr/bin/tool").touch()
        return subprocess.CompletedProcess(command, code, "", "no such package")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/apt-get" * (name == "apt-get"))
    return ran


def test_a_package_is_fetched_once_and_never_installed(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = apt(monkeypatch)
    found = {debian.program("tool", "tool") for _ in range(2)}
    assert found == {cache / "tool/usr/bin/tool"}
    assert [command[0] for command in ran] == ["apt-get", "dpkg-deb"]
    assert not any("install" in command for command in ran)
    assert not list(cache.rglob("*.deb"))


def test_a_program_of_the_machine_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = apt(monkeypatch)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert debian.program("tool", "tool") == Path("/usr/bin/tool")
    assert ran == []


def test_who_cannot_fetch_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    apt(monkeypatch, code=100)
    with pytest.raises(ClusterError, match=r"(?s)no such package.*install tool \(as Debian"):
        debian.program("tool", "tool")


def test_so_is_who_has_no_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    apt(monkeypatch)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ClusterError, match="there is no apt-get here"):
        debian.program("tool", "tool")


def test_a_package_without_the_program_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    apt(monkeypatch)
    with pytest.raises(ClusterError, match="package tool has no usr/bin/other"):
        debian.program("other", "tool")
