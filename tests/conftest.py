"""For all tiers: long tests start first, and those that cannot come out otherwise are skipped."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.suite import durations, reads, unchanged

SPREAD = ("unit", "native", "chart")  # tiers whose tests may run in any order, on any worker
LONG_SECONDS = 0.5
_LONG_TESTS = "long_tests"
_LONG = pytest.StashKey[tuple[str, tuple[str, ...]]]()

reads.watch()


@pytest.hookimpl(trylast=True)  # a tier without the long ones need not know their digests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("long")
        if mark and not _runs_each_time(item):
            _skip_unless_changed(item, tuple(mark.kwargs.get("reads", ())))
    if hasattr(config, "workerinput"):
        long_tests = config.workerinput[_LONG_TESTS]
        items.sort(key=lambda item: -long_tests.get(item.nodeid, 0.0))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Long ones first, all others in their order, which keeps a file's fixtures together.

    All workers go by what was read once: another run may record its own while they start.
    """
    node.workerinput[_LONG_TESTS] = durations.at_least(LONG_SECONDS, SPREAD)


def _runs_each_time(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("long")
    return mark is not None and bool(mark.kwargs.get("always"))


def _skip_unless_changed(item: pytest.Item, named: tuple[str, ...]) -> None:
    if "EXPLORE_SEED" in os.environ:  # other examples each time
        return
    file = item.path.relative_to(item.config.rootpath)
    digest = unchanged.here().digest(file, named)
    item.stash[_LONG] = (digest, named)
    if unchanged.here().passed(item.nodeid, digest):
        reason = f"{file} passed here, and nothing that it reads has changed: {digest[:16]}"
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A long test that has passed is remembered, if its digest covers what was read."""
    if _runs_each_time(item):
        with reads.processes_forgotten():
            return (yield)
    result = yield
    if found := item.stash.get(_LONG, None):
        digest, named = found
        file = item.path.relative_to(item.config.rootpath)
        more = unchanged.here().uncovered(file, named, reads.seen())
        assert not more, f"the mark `long` of {file} has to name these in `reads`: {more}"
        unchanged.here().keep(item.nodeid, digest)
    return result


class Times:
    """What each test took, and how it ended: kept for the next run and for the summary."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._skipped: dict[str, str] = {}
        self._expected: set[str] = set()  # to fail: xfail

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.skipped and hasattr(report, "wasxfail"):
            self._expected.add(report.nodeid)
        elif report.skipped:
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._skipped[report.nodeid] = why.removeprefix("Skipped: ")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        others = {*self._failed, *self._skipped, *self._expected}
        ran = {n: s for n, s in self._seconds.items() if n not in others}
        durations.record(ran)
        if into := os.environ.get("TEST_TIMES"):
            told: dict[str, Any] = {
                "seconds": round(time.monotonic() - self._began, 1),
                "passed": len(ran),
                "failed": len(self._failed),
                "expected": len(self._expected),
                "skipped": sorted(self._skipped.values()),
                "tests": {n: round(s, 2) for n, s in self._seconds.items()},
            }
            Path(into).write_text(json.dumps(told))


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times())
