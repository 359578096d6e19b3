"""Long tests are run again after a change of anything that they read, and else not."""

import linecache
import os
import re
import shutil
import subprocess
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis.internal.constants_ast import constants_from_module
from tests.suite import reads
from tests.suite.imports import ROOT, Imports
from tests.suite.reads import Read
from tests.suite.unchanged import Unchanged

TEST = Path("tests/unit/test_a.py")
FILES = {
    "pyproject.toml": """
[tool.pytest.ini_options]
markers = ["long: x"]
pythonpath = ["operator", "hack", "."]
""",
    "requirements/dev.txt": "",
    "operator/ours/a.py": """
import subprocess

def start():
    subprocess.run(["true"], check=True)
""",
    "operator/ours/other.py": "x = 1",
    "data/plans.txt": "1",
    "data/secret.txt": "1",
    str(TEST): "import ours.a",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path / "cache"))
    for name, text in FILES.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


def digest(tree: Path, *reads: str) -> str:
    return Unchanged(tree).digest(TEST, reads)


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("operator/ours/a.py", True),
        ("operator/ours/other.py", False),
        ("data/plans.txt", True),
        ("data/secret.txt", False),
        ("requirements/dev.txt", True),
        ("pyproject.toml", True),
        ("tests/conftest.py", True),
        (str(TEST), True),
    ],
)
def test_the_digest_is_that_of_all_that_is_read(tree: Path, path: str, counts: bool) -> None:
    before = digest(tree, "data/plans.txt")
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_text("# changed")
    assert (digest(tree, "data/plans.txt") != before) == counts


def test_a_variable_that_chooses_the_examples_counts(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest(tree)
    monkeypatch.setenv("HISTORIES_SEED", "7")
    assert digest(tree) != before


def test_a_folder_counts_with_all_that_is_in_it(tree: Path) -> None:
    before = digest(tree, "data")
    (tree / "data" / "more.txt").write_text("")
    assert digest(tree, "data") != before


def test_a_mark_that_another_run_forgets_meanwhile_is_no_error(tree: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "gone").symlink_to("nowhere")  # as one that is listed, and then is not there
    assert not Unchanged(tree, kept).passed("a", "b")


def test_only_what_passed_with_this_digest_has_passed(tree: Path) -> None:
    found = Unchanged(tree)
    found.keep("a", "1")
    assert found.passed("a", "1")
    assert not found.passed("a", "2")
    assert not found.passed("b", "1")


def test_what_is_read_and_not_covered_is_told(tree: Path) -> None:
    mine, others = Path("operator/ours/a.py"), Path("operator/ours/other.py")
    seen = [
        Read(mine, Path("data/plans.txt")),
        Read(mine, Path("data/secret.txt")),
        Read(others, Path("data/secret.txt")),
        Read(TEST, mine),
        Read(TEST, others),
        Read(mine, None),
    ]
    more = Unchanged(tree).uncovered(TEST, ("data/plans.txt",), seen)
    assert more == [seen[1], seen[4], seen[5]]


LONG = """
from pathlib import Path
import ours.a
import pytest
DATA = Path(__file__).parents[2] / "data"

@pytest.mark.long(reads=("data/plans.txt",))
def test_named():
    assert (DATA / "plans.txt").read_text() == "1"
"""
ALWAYS = """
import ours.a
import pytest

@pytest.mark.long(always=True)
def test_always():
    ours.a.start()
"""
UNNAMED = """
@pytest.mark.long
def test_unnamed():
    assert (DATA / "secret.txt").read_text() == "1"
"""


def test_the_lines_of_a_traceback_are_not_what_is_read() -> None:
    reads.watch()
    shown = ROOT / "tests" / "unit" / "suite" / "test_summary.py"
    linecache.checkcache(str(shown))
    assert linecache.updatecache(str(shown))
    here = Path(__file__).relative_to(ROOT)
    assert Read(here, shown.relative_to(ROOT)) not in reads.seen()


def test_of_what_hypothesis_makes_examples_is_not_what_is_read() -> None:
    reads.watch()
    module = types.ModuleType("shown")
    module.__file__ = str(ROOT / "operator" / "gpu_scheduler" / "kube" / "backoff.py")
    assert list(constants_from_module(module))
    here, other = Path(__file__), Path(module.__file__)
    assert Read(here.relative_to(ROOT), other.relative_to(ROOT)) not in reads.seen()


def test_where_packages_are_looked_for_is_not_what_is_read() -> None:
    reads.watch()
    folder = ROOT / "crds"
    read = Read(Path(__file__).relative_to(ROOT), folder.relative_to(ROOT))
    assert list(metadata.distributions(path=[str(folder)])) == []
    assert read not in reads.seen()
    assert list(folder.iterdir())
    assert read in reads.seen()


@pytest.mark.long(always=True)
def test_a_run_skips_what_is_unchanged_and_catches_what_reads_more(tree: Path) -> None:
    """By pytest itself, on a copy of what the tiers share."""
    (tree / TEST).write_text(ALWAYS + LONG)
    shutil.copy(ROOT / "tests/conftest.py", tree / "tests/conftest.py")
    shutil.copytree(ROOT / "tests/suite", tree / "tests/suite")
    shutil.copytree(
        ROOT / "hack/cluster", tree / "hack/cluster", ignore=shutil.ignore_patterns("tools")
    )

    def run() -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-ra", "--import-mode=importlib", "tests"]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        environment.pop("EXPLORE_SEED", None)
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        return done.stdout

    assert "2 passed" in run()
    again = run()
    assert "1 passed, 1 skipped" in again
    said = "test_a.py passed here, and nothing that it reads has changed: [0-9a-f]{16}"
    assert re.search(said, again)
    (tree / "data/plans.txt").write_text("2")
    assert "1 failed, 1 passed" in run()
    (tree / "data/plans.txt").write_text("1")
    (tree / TEST).write_text(LONG + UNNAMED)
    caught = run()
    assert "1 failed, 1 passed" in caught
    assert re.search(r"has to name these in `reads`.*data/secret\.txt", caught, re.DOTALL)
    (tree / TEST).write_text(f"{ALWAYS}    raise AssertionError\n{LONG}")
    assert "1 failed, 1 passed" in run(), "one that fails refuses no other"


def test_what_has_been_of_no_use_for_a_month_is_forgotten(tree: Path) -> None:
    found = Unchanged(tree)
    for nodeid in ("used", "unused"):
        found.keep(nodeid, "1")
    for mark in (tree.parent / "cache" / "tests" / "passed").iterdir():
        os.utime(mark, (1.0, 1.0))
    assert found.passed("used", "1")
    later = Unchanged(tree)
    assert later.passed("used", "1")
    assert not later.passed("unused", "1")


@pytest.mark.long(always=True)
def test_the_local_cluster_decides_about_none_of_the_planners_long_tests() -> None:
    """A change of it would have them run anew, which is half an hour."""
    files = sorted((ROOT / "tests/unit/core/properties").glob("test_*.py"))
    assert files
    for file in files:
        code = Imports(ROOT).of_tests(file.relative_to(ROOT))
        assert not [path for path in code if path.is_relative_to("hack/cluster")], file.name
