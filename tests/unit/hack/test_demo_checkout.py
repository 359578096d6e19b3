"""A second checkout leaves a running demo as it is, its operator and its ``kubectl gpu``."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cluster import ClusterError
from demo import checkout, environment, install


class Demo:
    """One that runs, in a folder."""

    def __init__(self, folder: Path, *, healthy: bool = True) -> None:
        self.folder, self.healthy = folder, healthy

    def is_healthy(self) -> bool:
        return self.healthy


@pytest.fixture
def demo(tmp_path: Path) -> Any:
    folder = tmp_path / "run"
    folder.mkdir()
    return Demo(folder)


@pytest.fixture
def first(tmp_path: Path, demo: Any) -> Path:
    """The checkout that started it."""
    folder = tmp_path / "first"
    folder.mkdir()
    checkout.keep(demo, folder)
    return folder


def test_a_second_checkout_is_refused_with_the_first_and_both_ways_out(
    demo: Any, first: Path, tmp_path: Path
) -> None:
    with pytest.raises(ClusterError) as refused:
        checkout.refuse_another(demo, tmp_path / "second")
    for word in (str(first), "`make demo` there", "`make down` there or here"):
        assert word in str(refused.value)


def test_the_first_goes_on_and_who_starts_one_is_not_refused(demo: Any, first: Path) -> None:
    checkout.refuse_another(demo, first)
    checkout.refuse_another(None, first)


def test_what_does_not_run_whole_is_anybodys(demo: Any, first: Path, tmp_path: Path) -> None:
    demo.healthy = False
    checkout.refuse_another(demo, tmp_path / "second")


def test_a_checkout_that_is_gone_holds_nobody_up_and_is_named(
    demo: Any, first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first.rmdir()
    checkout.refuse_another(demo, tmp_path / "second")
    said = capsys.readouterr()
    assert str(first) in said.out + said.err


def test_the_demo_of_a_second_checkout_ends_before_anything_is_changed(
    demo: Any, first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[str] = []
    monkeypatch.setattr(environment, "connect", lambda name: demo)
    monkeypatch.setattr(environment, "up", lambda *_, **__: changed.append("up"))
    monkeypatch.setattr(environment, "Dashboard", lambda beside: changed.append("images"))
    monkeypatch.setattr(install, "command", lambda running: changed.append("kubectl gpu"))
    with ThreadPoolExecutor(1) as beside, pytest.raises(ClusterError, match=str(first)):
        environment.prepare(beside)
    assert changed == []
