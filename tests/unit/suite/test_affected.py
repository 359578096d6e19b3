import subprocess
from pathlib import Path

import pytest
from tests.suite.affected import affected, differing


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path / "cache"))
    files = {
        "operator/ours/a.py": "",
        "operator/ours/b.py": "import ours.a",
        "operator/ours/c.py": "",
        "crds/jobs.yaml": "kind: A",
        "tests/unit/test_b.py": "import ours.b",
        "tests/unit/test_c.py": "import ours.c",
        "tests/unit/test_crds.py": "CRDS = ROOT / 'crds'",
    }
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


TESTS = [Path("tests/unit") / name for name in ("test_b.py", "test_c.py", "test_crds.py")]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ("operator/ours/a.py", ["test_b.py"]),
        ("operator/ours/c.py", ["test_c.py"]),
        ("tests/unit/test_c.py", ["test_c.py"]),
        ("crds/jobs.yaml", ["test_crds.py"]),
        ("docs/index.md", []),
        ("pyproject.toml", ["test_b.py", "test_c.py", "test_crds.py"]),
    ],
)
def test_who_is_affected(tree: Path, changed: str, found: list[str]) -> None:
    assert [path.name for path in affected(TESTS, [Path(changed)], tree)] == found


def test_a_module_that_is_gone_affects_who_imports_it(tree: Path) -> None:
    (tree / "operator/ours/a.py").unlink()
    assert [p.name for p in affected(TESTS, [Path("operator/ours/a.py")], tree)] == ["test_b.py"]


def test_a_conftest_affects_the_tests_below_it(tree: Path) -> None:
    (tree / "tests/unit/conftest.py").write_text("")
    assert affected(TESTS, [Path("tests/unit/conftest.py")], tree) == TESTS
    (tree / "tests/unit/conftest.py").unlink()
    assert affected(TESTS, [Path("tests/unit/conftest.py")], tree) == TESTS, "nor without it"


def test_what_differs_is_committed_or_not_or_new(tree: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        subprocess.run(["git", *who, *arguments], cwd=tree, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "one")
    assert differing("main", tree) == []
    git("checkout", "-qb", "mine")
    (tree / "operator/ours/a.py").write_text("x = 1")
    git("commit", "-qam", "two")
    (tree / "operator/ours/c.py").unlink()
    (tree / "operator/ours/d.py").write_text("")
    ours = Path("operator/ours")
    assert differing("main", tree) == [ours / "a.py", ours / "c.py", ours / "d.py"]
