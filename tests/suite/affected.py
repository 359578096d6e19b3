"""Which test files can be affected by what differs from a commit.

``python -m tests.suite.affected --since main tests/unit`` prints them.

A file of tests is affected by what it imports, directly or by others, and by what its code names: a
file of the repository, or the folder of the first level that it lies in, whose name stands in a
string. What differs is told by git: the commits since, and what is not committed.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.suite.imports import ALWAYS, ROOT, Imports


def differing(since: str, root: Path = ROOT) -> list[Path]:
    """Paths that differ between the commit where this branch left ``since`` and the disk."""
    base = _git(root, "merge-base", since, "HEAD")[0]
    changed = _git(root, "diff", "--name-only", "--no-renames", base)
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    return sorted({Path(line) for line in (*changed, *new)})


def affected(tests: Iterable[Path], changed: Iterable[Path], root: Path = ROOT) -> list[Path]:
    """Those of the test files that can come out otherwise; all paths relative to the root."""
    imports, changed = Imports(root), list(changed)
    if any(str(path) in ALWAYS for path in changed):
        return sorted(tests)
    code = {path for path in changed if path.suffix == ".py"}
    named = {name for path in changed if path.suffix != ".py" for name in _names(path)}
    gone = {path.stem for path in code if not (root / path).exists()}

    configured = {
        path.parent for path in code if path.name == "conftest.py"
    }  # also one that is gone

    def is_affected(test: Path) -> bool:
        files = imports.of_tests(test)
        return bool(files & code or configured & {*test.parents}) or any(
            _strings(root / path) & (named | gone) for path in files
        )

    return sorted(test for test in tests if is_affected(test))


def _names(path: Path) -> tuple[str, ...]:
    """By which code finds a file that it does not import; in tests, by any of its folders."""
    return path.parts[1:] if path.parts[0] == "tests" else (path.parts[0], path.name)


@cache
def _strings(path: Path) -> frozenset[str]:
    """The parts of each path that a string of the file could be, and names that it imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            found.update(node.value.split("/"))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = (getattr(node, "module", None) or "", *(name.name for name in node.names))
            found.update(part for name in names for part in name.split("."))
    return frozenset(found)


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.suite.affected")
    parser.add_argument("--since", default="main", help="a commit or a branch")
    parser.add_argument("folder", type=Path, help="of tests, for example tests/unit")
    chosen = parser.parse_args(arguments)
    changed = differing(chosen.since)
    tests = [path.relative_to(ROOT) for path in (ROOT / chosen.folder).rglob("test_*.py")]
    found = affected(tests, changed)
    sys.stderr.write(
        f"{len(changed)} files differ from {chosen.since}; "
        f"they can affect {len(found)} of the {len(tests)} files of {chosen.folder}\n"
    )
    sys.stdout.writelines(f"{path}\n" for path in found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
