"""``make defects`` on a repository of one module: what finds a defect, and what is left."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.defects.catalogue import Defect
from tests.defects.trial import Failure, Trial, TrialError, trial

MODULE = "def least(a, b):\n    return a if a < b else b\n"
TESTS = """
import pathlib, sys
sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from module import least
def test_least(): assert least(1, 2) == 1
"""
FIRST = "tests/unit/test_module.py"
LEAST = f"{FIRST}::test_least"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "tests" / "unit").mkdir(parents=True)
    (root / "module.py").write_text(MODULE)
    (root / FIRST).write_text(TESTS)
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def defect(slip: str) -> Defect:
    return Defect("turned", "module.py", "a < b", slip, "It is wrong.", (FIRST,))


@pytest.mark.long(always=True)
def test_a_test_that_fails_with_it_and_passes_without_has_found_it(repository: Path) -> None:
    with trial(repository, tests_from=None, workers=0, test_seconds=60.0) as copy:
        found = copy.of(defect("a > b"), [LEAST], whole=True)
        assert (found.found_by, found.seconds > 0) == (Failure(LEAST), True)
        folder = where(copy)
        assert (folder / "module.py").read_text() == MODULE
    assert not folder.exists() and (repository / "module.py").read_text() == MODULE


def test_a_test_that_fails_all_the_same_has_found_nothing(repository: Path) -> None:
    class Always(Trial):
        def _failing(self, tests: Sequence[str], *, workers: int) -> Failure | None:
            return Failure(LEAST)

    with pytest.raises(TrialError, match="test_least fails without it, too"):
        Always(repository, 0, 60.0).of(defect("a > b"), [LEAST], whole=True)
    assert (repository / "module.py").read_text() == MODULE


def test_where_the_first_tests_find_nothing_the_whole_tier_is_tried(repository: Path) -> None:
    asked: list[str] = []

    class Never(Trial):
        def _failing(self, tests: Sequence[str], *, workers: int) -> Failure | None:
            assert (repository / "module.py").read_text() != MODULE
            asked.extend(tests)
            return None

    assert Never(repository, 0, 60.0).of(defect("a > b"), [LEAST], whole=True).found_by is None
    assert asked == [LEAST, "tests/unit"]


def where(copy: Trial) -> Path:
    return copy._root
