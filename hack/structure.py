"""Figures of the code's structure, and what is past its bound.

    python hack/structure.py [--root DIR] [--check] [--only PATTERN]

Counts what stands in the files, and runs nothing of them: lines, modules, folders, classes that
share a name, long signatures, large constructors, import circles, lines that stand twice, packed
assignments. With ``--check`` it prints only what is past its bound and ends with 1 where something
is. ``--root`` is another checkout, to compare with; bounds are those of this file.
"""

import argparse
import ast
import graphlib
import itertools
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
OPERATOR = "operator/gpu_scheduler"
SHARED_LINES = 6
"""So many equal lines one after the other make a pair of places."""
CROWDED = 20
"""Modules in one folder, beyond which nobody finds one by looking."""
ARGUMENTS = 6
ATTRIBUTES = 20
LONGEST = 500
"""Lines of a module that needs no reason."""
LONG_WITH_REASON: Mapping[str, str] = {}
"""Modules above ``LONGEST``, and why each is one thought."""


@dataclass(frozen=True)
class Module:
    """A Python file, read."""

    path: Path
    name: str
    """Dotted."""
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.text.count("\n")


def modules(root: Path, folder: str, source: str = "") -> list[Module]:
    """The Python files below a folder, ``source`` being where its packages begin."""
    return [
        Module(
            path.relative_to(root),
            ".".join(path.relative_to(root / source).with_suffix("").parts).removesuffix(
                ".__init__"
            ),
            text,
            ast.parse(text),
        )
        for path in sorted((root / folder).rglob("*.py"))
        if "__pycache__" not in path.parts
        for text in [path.read_text(encoding="utf-8")]
    ]


def crowded(sources: Iterable[Module]) -> list[str]:
    """Folders with more than ``CROWDED`` modules of their own."""
    counted: dict[Path, int] = defaultdict(int)
    for module in sources:
        counted[module.path.parent] += module.path.name != "__init__.py"
    return [f"{folder}: {count}" for folder, count in sorted(counted.items()) if count > CROWDED]


def same_names(sources: Iterable[Module]) -> list[str]:
    """Public classes whose name another one has too."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in sources:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(module.path))
    return [f"{name}: {', '.join(at)}" for name, at in sorted(places.items()) if len(at) > 1]


def long_signatures(sources: Iterable[Module]) -> list[str]:
    """Functions that take more than ``ARGUMENTS``, ``self`` not counted."""
    found = []
    for module in sources:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if len([each for each in taken if each.arg not in ("self", "cls")]) > ARGUMENTS:
                    found.append(f"{module.path}:{node.lineno} {node.name}")
    return found


def large_constructors(sources: Iterable[Module]) -> list[str]:
    """Constructors that set more than ``ATTRIBUTES``."""
    found = []
    for module in sources:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                names = set(_set_on_self(node))
                if len(names) > ATTRIBUTES:
                    found.append(f"{module.path}:{node.lineno}: {len(names)}")
    return found


def _set_on_self(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                yield node.attr


def packed(sources: Iterable[Module]) -> list[str]:
    """Assignments that set several attributes in one statement."""
    return [
        f"{module.path}:{node.lineno}"
        for module in sources
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
        and all(isinstance(each, ast.Attribute) for each in node.targets[0].elts)
    ]


def circles(sources: list[Module]) -> list[str]:
    """Modules that import each other, directly or through others; each is cut once it is found."""
    known = {module.name for module in sources}
    arrows = {module.name: set(_imported(module, known)) - {module.name} for module in sources}
    found: list[str] = []
    while True:
        try:
            graphlib.TopologicalSorter(arrows).prepare()
            return found
        except graphlib.CycleError as error:
            imported, importer, *_ = error.args[1]
            found.append(" <- ".join(error.args[1]))
            arrows[importer].remove(imported)


def _imported(module: Module, known: set[str]) -> Iterator[str]:
    """Of ``known`` modules; what ``from package import module`` imports is the module alone."""
    package = module.path.name == "__init__.py"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.name.split(".")[
                    : (1 if package else 0) + len(module.name.split(".")) - node.level
                ]
                base = ".".join([*up, *([node.module] if node.module else [])])
            for each in node.names:
                name = f"{base}.{each.name}"
                yield from [name] if name in known else [base] if base in known else []


def repeated(sources: Iterable[Module]) -> list[str]:
    """Pairs of places that share ``SHARED_LINES`` lines; imports, comments and blank ones pass."""
    windows: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for module in sources:
        imports = {
            number
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        lines = [
            (number, text)
            for number, line in enumerate(module.text.split("\n"), 1)
            if (text := " ".join(line.split()))
            and re.search(r"\w", text)
            and number not in imports
            and not text.startswith("#")
        ]
        for at in range(len(lines) - SHARED_LINES + 1):
            window = tuple(text for _, text in lines[at : at + SHARED_LINES])
            windows[window].append((str(module.path), lines[at][0]))
    pairs: dict[tuple[str, str], tuple[int, int]] = {}
    for places in windows.values():
        for (one, at), (other, there) in itertools.combinations(places, 2):
            if one != other or abs(at - there) >= SHARED_LINES:
                pairs.setdefault((one, other), (at, there))
    return [f"{one}:{at} ~ {other}:{there}" for (one, other), (at, there) in sorted(pairs.items())]


def directions(root: Path) -> list[str]:
    """What import-linter says of imports that run up."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in done.stdout.splitlines() if " BROKEN" in line] + (
        [done.stderr] if done.returncode and not done.stdout else []
    )


class House:
    """A checkout, each part of which is read when it is asked for first."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def code(self) -> list[Module]:
        """The product."""
        return modules(self.root, OPERATOR, "operator")

    @cached_property
    def tests(self) -> list[Module]:
        """All tiers, and what they share."""
        return modules(self.root, "tests")

    @cached_property
    def tools(self) -> list[Module]:
        """What developers run."""
        return [*modules(self.root, "hack", "hack"), *modules(self.root, "tools", "tools")]

    def inner(self) -> list[str]:
        """Crowded folders of core, runtime and state."""
        houses = tuple(f"{OPERATOR}/{each}" for each in ("core", "runtime", "state"))
        return [each for each in crowded(self.code) if each.startswith(houses)]

    def tool_lines(self) -> int:
        """Lines of what developers run, shell scripts included."""
        scripts = [path for top in ("hack", "tools") for path in (self.root / top).rglob("*.sh")]
        return _lines(self.tools) + sum(path.read_text().count("\n") for path in scripts)

    def cycles(self) -> list[str]:
        """Import circles of all of it."""
        fake = modules(self.root, "native/fakegpu", "native")
        return [*circles(self.code), *circles(fake), *circles(self.tools)]


def _lines(sources: Iterable[Module]) -> int:
    return sum(module.lines for module in sources)


def _median(sources: Iterable[Module]) -> float:
    return statistics.median(each.lines for each in sources if each.path.name != "__init__.py")


def _long(sources: Iterable[Module]) -> list[str]:
    found = [str(each.path) for each in sources if each.lines > LONGEST]
    return [each for each in found if each not in LONG_WITH_REASON]


COUNTED: tuple[tuple[str, int | None, Callable[[House], float | list[str]]], ...] = (
    ("lines of operator/", 50_000, lambda house: _lines(house.code)),
    ("lines of hack/ and tools/", 10_500, House.tool_lines),
    (
        "modules of operator/",
        None,
        lambda house: sum(each.path.name != "__init__.py" for each in house.code),
    ),
    ("lines of its median module", 150, lambda house: _median(house.code)),
    ("lines of the median module of hack/ and tools/", 150, lambda house: _median(house.tools)),
    (
        f"modules above {LONGEST} lines without a reason",
        0,
        lambda house: _long([*house.code, *house.tools]),
    ),
    (f"folders of core, runtime, state with more than {CROWDED} modules", 0, House.inner),
    (f"all folders with more than {CROWDED} modules", None, lambda house: crowded(house.code)),
    ("public class names with two definitions", 5, lambda house: same_names(house.code)),
    (
        f"functions with more than {ARGUMENTS} arguments",
        5,
        lambda house: long_signatures(house.code),
    ),
    (
        f"constructors that set more than {ATTRIBUTES} attributes",
        0,
        lambda house: large_constructors(house.code),
    ),
    ("import circles", 0, House.cycles),
    ("arrows that run up", 0, lambda house: directions(house.root)),
    (
        f"pairs of files of operator/ that share {SHARED_LINES} lines",
        15,
        lambda house: repeated(house.code),
    ),
    (
        f"pairs of files of tests/ that share {SHARED_LINES} lines",
        60,
        lambda house: repeated(house.tests),
    ),
    ("packed assignments of operator/", 0, lambda house: packed(house.code)),
)
"""What is counted, at most how much of it there may be, and how; in the order of printing."""


def main() -> int:
    """Print the figures, or with ``--check`` what is past its bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--check", action="store_true", help="only what is past its bound; 1 then")
    parser.add_argument("--items", action="store_true", help="name what is counted")
    parser.add_argument("--only", default="", help="a pattern of the names of figures")
    options = parser.parse_args()
    house, wrong = House(options.root.resolve()), False
    for name, bound, count in COUNTED:
        if not re.search(options.only, name):
            continue
        found = count(house)
        value, items = (len(found), found) if isinstance(found, list) else (found, [])
        past = bound is not None and value > bound
        wrong |= past
        if not options.check or past:
            most = "" if bound is None else f"  (at most {bound:g})"
            print(f"{value:>8g}  {name}{most}{'  PAST' if past else ''}")
            if options.items or options.check:
                print("".join(f"          {item}\n" for item in items), end="")
    return 1 if options.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
