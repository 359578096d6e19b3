"""Long tests that would come out as they did: nothing that they read has changed since they passed.

A test marked ``long`` is dear and deterministic: its examples follow from a fixed seed, and it asks
neither the clock nor another process. So its outcome follows from what it reads: the files that it
imports (imports.py), those that its mark names (``@pytest.mark.long(reads=("tests/…/a.txt",))``),
the pinned requirements, Python, and the variables that choose its examples. A digest of these is
kept on the machine once the test has passed. That nothing else is read is not believed but watched
(reads.py): a test that opens more than its digest covers fails, and says what to name.

``@pytest.mark.long(always=True)`` is for dear tests that ask a clock or a process: each run of the
tier has them.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.suite.imports import ALWAYS, ROOT, Imports, digest_of
from tests.suite.reads import Read
from tests.suite.store import folder

_CHOSEN_BY = ("ADVICE", "EXPLORE", "HISTORIES", "KILLS", "PLANS")  # variables begin with one
_KEPT_SECONDS = 30 * 24 * 3600.0


class Unchanged:
    """The digests of a checkout's long tests, and those of runs that passed."""

    def __init__(self, root: Path = ROOT, kept: Path | None = None) -> None:
        self._root = root
        self._imports = Imports(root)
        self._kept = kept or folder() / "passed"
        self._kept.mkdir(exist_ok=True)
        self._forget()
        self._digests: dict[tuple[Path, tuple[str, ...]], str] = {}

    def digest(self, file: Path, reads: Iterable[str] = ()) -> str:
        """Of all that decides about the tests of a file, which is relative to the root."""
        key = (file, tuple(reads))
        if key not in self._digests:
            self._digests[key] = self._digest(*key)
        return self._digests[key]

    def _digest(self, file: Path, reads: tuple[str, ...]) -> str:
        code = {path: self._imports.digest(path) for path in self._imports.of_tests(file)}
        data = {Path(name): digest_of(self._root / name) for name in (*ALWAYS, *reads)}
        lines = [f"{path} {digest}" for path, digest in sorted({**code, **data}.items())]
        lines += [f"{name}={os.environ[name]}" for name in sorted(os.environ) if _chooses(name)]
        return hashlib.sha256("\n".join([sys.version, *lines]).encode()).hexdigest()

    def passed(self, nodeid: str, digest: str) -> bool:
        """Whether the test has passed on this machine with this digest."""
        mark = self._mark(nodeid, digest)
        if found := mark.exists():
            mark.touch()  # it is of use
        return found

    def keep(self, nodeid: str, digest: str) -> None:
        """The test has passed."""
        self._mark(nodeid, digest).touch()

    def _forget(self) -> None:
        """What has not been of use for a month goes."""
        too_old = time.time() - _KEPT_SECONDS
        for mark in self._kept.iterdir():
            with suppress(FileNotFoundError):  # another run was faster
                if mark.stat().st_mtime < too_old:
                    mark.unlink()

    def uncovered(self, file: Path, reads: Iterable[str], seen: Iterable[Read]) -> list[Read]:
        """What the code of a test file was seen to read and its digest does not cover."""
        code, named = self._imports.of_tests(file), [Path(name) for name in (*ALWAYS, *reads)]

        def covered(what: Path | None) -> bool:
            return what is not None and (
                what in code or any(what.is_relative_to(name) for name in named)
            )

        return [read for read in seen if read.module in code and not covered(read.what)]

    def _mark(self, nodeid: str, digest: str) -> Path:
        return self._kept / hashlib.sha256(f"{digest} {nodeid}".encode()).hexdigest()


@cache
def here() -> Unchanged:
    """Of this checkout."""
    return Unchanged()


def _chooses(variable: str) -> bool:
    return variable.startswith(_CHOSEN_BY)
