"""A copy of the working tree in which one defect after the other is put and looked for.

Nothing of it is left: the folder goes, and so do the processes that tests started. A test counts
as finding a defect only if it passes without it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from tests.defects.catalogue import Defect

_OF_TESTS = ("tests/", "pyproject.toml")  # with the marks that tests use
_FAILED = (1, 2)  # exit codes of pytest; 2: at collection


class TrialError(Exception):
    """It cannot be told whether a defect is found; the message says why."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that fails, or (``endless``) has no end."""

    test: str
    endless: bool = False

    def __str__(self) -> str:
        return f"{self.test} (which has no end)" if self.endless else self.test


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a defect. ``found_by``: None: nothing fails."""

    defect: Defect
    found_by: Failure | None
    seconds: float  # of processors


class Trial:
    """The copy."""

    def __init__(self, root: Path, workers: int, test_seconds: float) -> None:
        """``workers``: for whole tiers; ``test_seconds``: a test that takes longer has no end."""
        self._root, self._workers, self._test_seconds = root, workers, test_seconds

    def of(self, defect: Defect, tests: Sequence[str], *, whole: bool) -> Verdict:
        """Put a defect in and look for it: in some tests, and (``whole``) then in its tier.

        Raises:
            TrialError: it cannot be told.
        """
        before, began = (self._root / defect.file).read_text(), _processor_seconds()
        defect.put_into(self._root)
        try:
            found = self._failing(tests, workers=0)
            if found is None and whole:
                found = self._failing((defect.tier,), workers=self._workers)
        finally:
            (self._root / defect.file).write_text(before)
        if found is not None:
            self._passes(found)
        return Verdict(defect, found, _processor_seconds() - began)

    def _passes(self, found: Failure) -> None:
        """Without the defect the test passes, and at once if it had no end with it."""
        began = time.monotonic()
        if self._failing((found.test,), workers=0) is not None:
            raise TrialError(f"{found.test} fails without it, too")
        seconds = time.monotonic() - began
        if found.endless and seconds > self._test_seconds / 5:
            raise TrialError(f"{found.test} takes {seconds:.0f} s without it, too: more time")

    def _failing(self, tests: Sequence[str], *, workers: int) -> Failure | None:
        """The first test that fails, or has no end."""
        there = [test for test in tests if (self._root / test.partition("::")[0]).exists()]
        if not there:
            return None
        for name in (".hypothesis", ".pytest_cache"):
            shutil.rmtree(self._root / name, ignore_errors=True)
        command = [sys.executable, "-m", "pytest", "-x", "-v", "-m", "", "-n", str(workers)]
        code, output = self._run([*command, *there])
        if code == 0:
            return None
        if code is None:
            last = output.rpartition("\n")[2].strip()  # with workers there is none
            if "::" not in last:
                raise TrialError(f"no end, and no test to blame:\n{output[-1000:]}")
            return Failure(last, endless=True)
        known = self._root / ".pytest_cache" / "v" / "cache" / "lastfailed"
        if code not in _FAILED or not known.exists():
            raise TrialError(f"pytest ended with {code}:\n{output[-4000:]}")
        return Failure(next(iter(json.loads(known.read_text()))))

    def _run(self, command: Sequence[str]) -> tuple[int | None, str]:
        """Exit code (None: nothing was said for too long, so it was ended) and output."""
        paths = (self._root / name for name in ("operator", "hack", "tools"))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",  # a slip within a second of the file before it
        }
        environment.pop("NATIVE_BUILD", None)
        with TemporaryFile() as output:
            process = subprocess.Popen(
                command,
                cwd=self._root,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = self._ended(process, output)
            finally:
                _end(process)
            output.seek(0)
            return code, output.read().decode(errors="replace")

    def _ended(self, process: "subprocess.Popen[bytes]", output: IO[bytes]) -> int | None:
        """The exit code, None if it has been silent for longer than a test may take."""
        said, since = 0, time.monotonic()
        while time.monotonic() - since < self._test_seconds:
            try:
                return process.wait(1.0)
            except subprocess.TimeoutExpired:
                size = os.fstat(output.fileno()).st_size
                if size != said:
                    said, since = size, time.monotonic()
        return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process: it may clean up first; then all of its session goes."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


@contextmanager
def trial(
    root: Path, *, tests_from: Path | None, workers: int, test_seconds: float
) -> Iterator[Trial]:
    """A copy of a working tree; ``tests_from``: with the tests of another one."""
    with TemporaryDirectory(prefix="defects-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder)
        _copy(root, copy, lambda name: tests_from is None or not name.startswith(_OF_TESTS))
        if tests_from is not None:
            _copy(tests_from, copy, lambda name: name.startswith(_OF_TESTS))
        if (root / ".venv").exists():
            (copy / ".venv").symlink_to(root / ".venv")
        for command in (["git", "init", "-q"], ["git", "add", "--all"]):  # tests list its files
            subprocess.run(command, cwd=copy, check=True, capture_output=True)
        yield Trial(copy, workers, test_seconds)


def _copy(source: Path, target: Path, takes: Callable[[str], bool]) -> None:
    """Copy what git knows, and what it does not ignore, as it is in the working tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if takes(name) and os.path.lexists(source / name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name, follow_symlinks=False)


def _processor_seconds() -> float:
    """Of the processes that were waited for."""
    spent = os.times()
    return spent.children_user + spent.children_system
