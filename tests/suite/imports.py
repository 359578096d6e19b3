"""What a Python file of the repository imports, with all that those files import.

Read from the sources, without running them: import statements anywhere in a file, and strings that
name a module of ours (``"gpu_scheduler.main"``) or a package of which one is chosen by name
(``f"gpu_scheduler.cli.commands.{name}"``). What a file imports is kept by the digest of its text.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.suite.store import folder, replace

ROOT = Path(__file__).parents[2]
SOURCES = ("operator", "hack", "tools", "")  # where modules lie: pythonpath of pyproject.toml
ALWAYS = ("pyproject.toml", "requirements/dev.txt")  # what every test depends on
_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)*\.?")
_FORM = 2  # of what is kept


def python_files(root: Path = ROOT) -> list[Path]:
    """The Python files that the graph may lead to, relative to the root."""
    tops = [root / source for source in SOURCES if source] + [root / "tests"]
    found = (path for top in tops if top.is_dir() for path in top.rglob("*.py"))
    return sorted(path.relative_to(root) for path in found)


class Imports:
    """The files and their imports, as they are on the disk when this is made."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        files = python_files(root)
        self._modules = {name: path for path in files for name in module_names(path)}
        self._packages: dict[str, list[Path]] = {}
        for name, path in self._modules.items():
            self._packages.setdefault(name.rpartition(".")[0], []).append(path)
        self._tops = {name.partition(".")[0] for name in self._modules}
        self._digests = {path: digest_of(root / path) for path in files}
        self._named = self._all_named(files)
        self._closures: dict[Path, frozenset[Path]] = {}

    def of(self, path: Path) -> frozenset[Path]:
        """The file itself and all that it imports, directly or by others; relative to the root."""
        if path not in self._closures:
            found, coming = set(), [path]
            while coming:
                if (here := coming.pop()) not in found:
                    found.add(here)
                    coming += self._direct(here)
            self._closures[path] = frozenset(found)
        return self._closures[path]

    def of_tests(self, file: Path) -> frozenset[Path]:
        """The files whose code a file of tests runs: its imports, and the conftests above it."""
        above = (folder / "conftest.py" for folder in file.parents)
        files = [file, *(path for path in above if path in self._digests)]
        return frozenset().union(*(self.of(path) for path in files))

    def digest(self, path: Path) -> str:
        """Of one Python file's text."""
        return self._digests[path]

    def _direct(self, path: Path) -> Iterator[Path]:
        for name in self._named.get(path, ()):
            if name.endswith("."):
                yield from self._packages.get(name[:-1], ())
            parts = name.rstrip(".").split(".")
            for length in range(1, len(parts) + 1):  # a package's own file runs too
                if found := self._modules.get(".".join(parts[:length])):
                    yield found

    def _all_named(self, files: list[Path]) -> dict[Path, list[str]]:
        kept_in = folder() / f"imports-{_FORM}.json"
        try:
            kept: dict[str, list[str]] = json.loads(kept_in.read_text())
        except (OSError, ValueError):
            kept = {}
        # Of equal texts in different folders, relative imports differ.
        keys = {path: f"{path.parent}:{self._digests[path]}" for path in files}
        named = {
            path: kept[key] if key in kept else sorted(self._read(path))
            for path, key in keys.items()
        }
        if any(key not in kept for key in keys.values()):
            replace(kept_in, json.dumps({keys[path]: names for path, names in named.items()}))
        return named

    def _read(self, path: Path) -> set[str]:
        """Names of modules of ours, and of packages with a dot at the end."""
        tree = ast.parse((self.root / path).read_bytes(), str(path))
        found = set(_names(tree, package_of(path)))
        return {name for name in found if name.split(".")[0] in self._tops}


def _names(tree: ast.AST, package: list[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                start = package[: len(package) + 1 - level] if level else []
                base = ".".join([*start, *([module] if module else [])])
                yield base
                yield from (f"{base}.{name.name}" for name in names)
            case ast.Constant(value=str(text)) if "." in text and _NAME.fullmatch(text):
                yield text


def module_names(path: Path) -> list[str]:
    """What a file is imported as."""
    for source in SOURCES:
        if not source or path.parts[0] == source:
            parts = path.relative_to(source).with_suffix("").parts
            return [".".join(parts[:-1] if parts[-1] == "__init__" else parts)]
    return []


def package_of(path: Path) -> list[str]:
    """The package in which a file's relative imports begin."""
    name = module_names(path)[0].split(".")
    return name if path.name == "__init__.py" else name[:-1]


def digest_of(path: Path) -> str:
    """Of a file, or of a folder with the names and texts of all files in it."""
    text = path.read_bytes() if path.is_file() else "".join(_lines(path)).encode()
    return hashlib.sha256(text).hexdigest()


def _lines(folder: Path) -> Iterator[str]:
    for path in sorted(_files_below(folder)):
        yield f"{path.relative_to(folder)} {digest_of(path)}\n"


def _files_below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
