from collections.abc import Callable
from pathlib import Path

import pytest
from tests.suite.imports import Imports

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a file of a checkout in the temporary folder."""
    monkeypatch.setenv("GPU_SCHEDULER_CACHE", str(tmp_path / "cache"))

    def file(name: str, text: str = "") -> Path:
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return file


def of(tmp_path: Path, name: str) -> set[str]:
    return {str(path) for path in Imports(tmp_path / "tree").of(Path(name))}


@pytest.mark.parametrize(
    "text",
    [
        "import ours.far.leaf",
        "from ours.far import leaf",
        "from ours.far.leaf import name",
        "def late():\n    from ours.far.leaf import name",
        "PROGRAM = 'ours.far.leaf'",
        "def one(name):\n    return f'ours.far.{name}'",
    ],
)
def test_a_module_is_found_however_it_is_named(tmp_path: Path, write: Write, text: str) -> None:
    write("operator/ours/__init__.py", "")
    write("operator/ours/far/__init__.py", "from ours import beside")
    write("operator/ours/far/leaf.py", "import json")
    write("operator/ours/beside.py", "")
    write("operator/ours/unused.py", "")
    write("tests/test_a.py", text)
    package = {"operator/ours/__init__.py", "operator/ours/far/__init__.py"}
    others = {"operator/ours/far/leaf.py", "operator/ours/beside.py", "tests/test_a.py"}
    assert of(tmp_path, "tests/test_a.py") == package | others


def test_relative_imports_begin_in_their_own_package(tmp_path: Path, write: Write) -> None:
    for name in ("a", "b"):
        write(f"operator/ours/{name}/__init__.py", "from .leaf import x")
        write(f"operator/ours/{name}/leaf.py", "x = 1")
    write("tests/test_a.py", "import ours.b")
    assert of(tmp_path, "tests/test_a.py") == {
        "tests/test_a.py",
        "operator/ours/b/__init__.py",
        "operator/ours/b/leaf.py",
    }


def test_circles_end(tmp_path: Path, write: Write) -> None:
    write("operator/ours/a.py", "import ours.b")
    write("operator/ours/b.py", "import ours.a")
    assert of(tmp_path, "operator/ours/a.py") == {"operator/ours/a.py", "operator/ours/b.py"}


def test_what_is_kept_follows_the_text(tmp_path: Path, write: Write) -> None:
    write("operator/ours/a.py", "")
    write("operator/ours/b.py", "")
    write("tests/test_a.py", "import ours.a")
    assert "operator/ours/a.py" in of(tmp_path, "tests/test_a.py")
    write("tests/test_a.py", "import ours.b")
    assert of(tmp_path, "tests/test_a.py") == {"operator/ours/b.py", "tests/test_a.py"}
