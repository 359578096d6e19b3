"""The demo goes on without its dashboard, says what it lacks, and is not held up by it."""

import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cluster import ClusterError
from demo import dashboard, front_end, install
from demo.dashboard import Dashboard


class Cluster:
    """A cluster with a folder."""

    folder = Path("/run/demo")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is built and installed."""
    found: list[Any] = []

    def build(*, dashboard: bool = False) -> tuple[Path, ...]:
        found.append("with" if dashboard else "without")
        return (Path(found[-1]),)

    def chart(_: object, *, image: str, more: tuple[str, ...] = ()) -> bool:
        found.append((image, "dashboard.enabled=true" in " ".join(more)))
        return True

    monkeypatch.setattr(install, "build_images", build)
    monkeypatch.setattr(install, "give_images", lambda _, archives: str(archives[0]))
    monkeypatch.setattr(install, "chart", chart)
    monkeypatch.setattr(front_end, "give_way", lambda: None)
    return found


def front(monkeypatch: pytest.MonkeyPatch, *, why: str = "", there: bool) -> None:
    monkeypatch.setattr(front_end, "build", lambda: why)
    monkeypatch.setattr(front_end, "is_there", lambda _: there)


def told() -> str:
    """The story, as far as the dashboard goes."""
    cluster: Any = Cluster()
    with ThreadPoolExecutor() as beside:
        found = Dashboard(beside)
        found.install(cluster, found.images.result())
        return found.add(cluster)


def test_where_it_is_built_already_it_is_installed_at_once(
    monkeypatch: pytest.MonkeyPatch, made: list[Any]
) -> None:
    front(monkeypatch, there=True)
    assert told() == ""
    assert made == ["with", ("with", True)]


def test_where_it_takes_time_all_else_comes_first(
    monkeypatch: pytest.MonkeyPatch, made: list[Any]
) -> None:
    front(monkeypatch, there=False)
    assert told() == ""
    assert made == ["without", ("without", False), "with", ("with", True)]


def test_where_it_cannot_be_built_all_is_as_without_and_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch, made: list[Any]
) -> None:
    front(monkeypatch, why="Node.js is needed", there=False)
    assert told() == "Node.js is needed"
    assert made == ["without", ("without", False)]


def test_an_image_that_cannot_be_built_is_a_reason_too(
    monkeypatch: pytest.MonkeyPatch, made: list[Any]
) -> None:
    front(monkeypatch, there=False)
    build = install.build_images

    def failing(*, dashboard: bool = False) -> tuple[Path, ...]:
        if dashboard:
            raise ClusterError("buildah failed")
        return build()

    monkeypatch.setattr(install, "build_images", failing)
    assert told() == "buildah failed"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("dashboard: npm ci\ndashboard: Node.js is needed.\n", "Node.js is needed."),
        ("", "its build ended without a word"),
    ],
)
def test_the_last_line_of_the_build_is_what_is_said(output: str, said: str) -> None:
    assert front_end.last_words(output) == said


def test_a_front_end_that_was_never_built_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(front_end, "ROOT", tmp_path)
    assert not front_end.is_there(Future())
    (tmp_path / "dashboard" / "dist").mkdir(parents=True)
    built: Future[str] = Future()
    built.set_result("")
    assert front_end.is_there(built)


def test_its_address_is_loopback_and_says_no_token() -> None:
    class Ports:
        state = type("State", (), {"first_port": 21_000})

    running: Any = Ports()
    assert dashboard.address(running) == "http://127.0.0.1:21009"


@pytest.mark.parametrize(
    ("ports", "served"), [("admin reports dashboard", True), ("admin", False), ("", False)]
)
def test_whether_it_is_served_says_the_release(ports: str, served: bool) -> None:
    class Release:
        def kubectl(self, *args: str) -> Any:
            return subprocess.CompletedProcess(args, 0, ports, "")

    running: Any = Release()
    assert dashboard.is_served(running) is served


def test_a_story_that_ends_early_builds_nothing_more(
    monkeypatch: pytest.MonkeyPatch, made: list[Any]
) -> None:
    front(monkeypatch, there=False)
    with ThreadPoolExecutor() as beside:
        found = Dashboard(beside)
        found.images.result()
        found.give_up()
    assert made == ["without"]
