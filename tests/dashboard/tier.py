"""The tier ``dashboard``: the front end's own tests, as far as they could come out otherwise.

Vitest on its functions and Playwright on all its pages, on made-up clusters (``dashboard/tests``).
They ask neither a cluster nor the operator, so their outcome follows from the files of dashboard/,
from what its types are made of, and from the programs that run them. A digest of these is kept on
the machine once all tests have passed; with the same one they are skipped, and said to be.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.suite import store
from tests.suite.imports import ROOT

SCRIPT = "hack/dashboard.sh"
MADE_OF = (
    SCRIPT,
    "hack/npm.sh",
    "hack/dashboard_types",
    "operator/gpu_scheduler/dashboard/rows.py",
    "operator/gpu_scheduler/dashboard/views.py",
)
_BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
_KEPT_SECONDS = 30 * 24 * 3600.0
Times = dict[str, float]


def digest(
    front_end: str, browser: str, root: Path = ROOT, made_of: Sequence[str] = MADE_OF
) -> str:
    """Of all that decides; ``front_end``: that of its files, ``browser``: its version."""
    lines = [front_end, browser]
    for path in sorted(file for name in made_of for file in _files(root / name)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{path.relative_to(root)} {content}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return [path]
    return (each for each in path.rglob("*.py") if "__pycache__" not in each.parts)


class Passed:
    """How many tests passed here, by digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        for mark in folder.iterdir():  # what has not been of use for a month goes
            if mark.stat().st_mtime < time.time() - _KEPT_SECONDS:
                mark.unlink(missing_ok=True)

    def count(self, digest: str) -> int:
        """0: they did not pass."""
        mark = self._folder / digest
        if not mark.exists():
            return 0
        mark.touch()
        return int(mark.read_text())

    def keep(self, digest: str, count: int) -> None:
        """So many tests have passed, and none has failed."""
        store.replace(self._folder / digest, str(count))


def of_vitest(report: dict[str, Any]) -> tuple[Times, int]:
    """Seconds of each test that passed, and how many did not."""
    return _judged(
        (
            f"{Path(file['name']).name}::{each['fullName']}",
            (each.get("duration") or 0) / 1000,
            each["status"] == "passed",
        )
        for file in report["testResults"]
        for each in file["assertionResults"]
    )


def of_playwright(report: dict[str, Any]) -> tuple[Times, int]:
    """The same; a test that was skipped or had to be tried again did not pass."""
    return _judged(
        (
            f"{spec['file']}::{spec['title']}",
            sum(result["duration"] for test in spec["tests"] for result in test["results"]) / 1000,
            all(test["status"] == "expected" for test in spec["tests"]),
        )
        for suite in report["suites"]
        for spec in _specs(suite)
    )


def _judged(results: Iterable[tuple[str, float, bool]]) -> tuple[Times, int]:
    """Of name, seconds and whether it passed; several may have one name."""
    passed: Times = {}
    named, failed = Counter[str](), 0
    for name, seconds, well in results:
        named[name] += 1
        again = f" ({named[name]})" if named[name] > 1 else ""
        if well:
            passed[f"tests/dashboard/{name}{again}"] = seconds
        else:
            failed += 1
    return passed, failed


def _specs(suite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from suite.get("specs", ())
    for each in suite.get("suites", ()):
        yield from _specs(each)


def outcome(
    found: str, passed: Passed, run: Callable[[], tuple[int, Times, int]]
) -> tuple[int, dict[str, Any]]:
    """Run the tests unless they have passed with this digest: the exit code, and what is told.

    Args:
        found: the digest.
        passed: those of before.
        run: exit code, seconds of each test that passed, and how many did not.
    """
    began = time.monotonic()
    if before := passed.count(found):
        why = f"dashboard/ passed here, and nothing that decides about it has changed: {found[:16]}"
        return 0, _told(began, {}, 0, [why] * before)
    code, times, failed = run()
    if code == 0 and not failed and times:
        passed.keep(found, len(times))
    return code or (1 if failed or not times else 0), _told(began, times, failed, [])


def _told(began: float, times: Times, failed: int, skipped: list[str]) -> dict[str, Any]:
    """As tests/suite/summary.py reads it."""
    return {
        "seconds": round(time.monotonic() - began, 1),
        "passed": len(times),
        "failed": failed,
        "expected": 0,
        "skipped": skipped,
        "tests": {name: round(seconds, 2) for name, seconds in times.items()},
    }


def _run() -> tuple[int, Times, int]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "REPORTS": folder}
        code = subprocess.run([SCRIPT, "test"], cwd=ROOT, env=environment, check=False).returncode
        times, failed = {}, 0
        for name, read in (("vitest", of_vitest), ("playwright", of_playwright)):
            report = Path(folder, f"{name}.json")
            if report.exists():
                some, wrong = read(json.loads(report.read_text()))
                times |= some
                failed += wrong
            elif code == 0:
                raise RuntimeError(f"{name} has left no report")
    return code, times, failed


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> int:
    subprocess.run([SCRIPT, "ready"], cwd=ROOT, check=True)
    browser = next(filter(None, map(shutil.which, _BROWSERS)))
    found = digest(_output(SCRIPT, "digest"), _output(browser, "--version"))
    code, told = outcome(found, Passed(store.folder() / "dashboard"), _run)
    for why in dict.fromkeys(told["skipped"]):
        sys.stdout.write(f"{len(told['skipped'])} skipped: {why}\n")
    if into := os.environ.get("TEST_TIMES"):
        Path(into).write_text(json.dumps(told))
    return code


if __name__ == "__main__":
    sys.exit(main())
