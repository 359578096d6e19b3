"""Figures of the code's structure, and what is past its bound.

    python hack/structure.py [--root DIR] [--check]

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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
class Figure:
    """One number: what it counts, at most how many there may be, and which they are."""

    name: str
    value: float
    bound: float | None
    items: tuple[str, ...] = ()

    @property
    def past(self) -> bool:
        """Whether it is more than it may be."""
        return self.bound is not None and self.value > self.bound


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
    found = []
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
        lines = [
            (number, text)
            for number, line in enumerate(module.text.split("\n"), 1)
            if (text := " ".join(line.split()))
            and re.search(r"\w", text)
            and not text.startswith(("import ", "from ", "#"))
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


def figures(root: Path) -> list[Figure]:
    """All that is counted, in the order in which it is printed."""
    code = modules(root, OPERATOR, "operator")
    tests = modules(root, "tests")
    tools = [*modules(root, "hack", "hack"), *modules(root, "tools", "tools")]
    scripts = [*(root / "hack").rglob("*.sh"), *(root / "tools").rglob("*.sh")]
    sizes = [module.lines for module in code if module.path.name != "__init__.py"]
    long = [str(each.path) for each in code if each.lines > LONGEST]
    cycles = [*circles(code), *circles(modules(root, "native/fakegpu", "native")), *circles(tools)]

    def listed(name: str, bound: int | None, items: list[str]) -> Figure:
        return Figure(name, len(items), bound, tuple(items))

    houses = [f"{OPERATOR}/{each}" for each in ("core", "runtime", "state")]
    return [
        Figure("lines of operator/", sum(module.lines for module in code), 50_000),
        Figure(
            "lines of hack/ and tools/",
            sum(module.lines for module in tools)
            + sum(path.read_text().count("\n") for path in scripts),
            10_500,
        ),
        Figure("modules of operator/", len(sizes), None),
        Figure("lines of its median module", statistics.median(sizes), 150),
        listed(
            f"modules above {LONGEST} lines without a reason",
            0,
            [each for each in long if each not in LONG_WITH_REASON],
        ),
        listed(
            f"folders of core, runtime, state with more than {CROWDED} modules",
            0,
            [each for each in crowded(code) if each.startswith(tuple(houses))],
        ),
        listed(f"all folders with more than {CROWDED} modules", None, crowded(code)),
        listed("public class names with two definitions", 5, same_names(code)),
        listed(f"functions with more than {ARGUMENTS} arguments", 5, long_signatures(code)),
        listed(
            f"constructors that set more than {ATTRIBUTES} attributes", 0, large_constructors(code)
        ),
        listed("import circles", 0, cycles),
        listed("arrows that run up", 0, directions(root)),
        listed(f"pairs of files of operator/ that share {SHARED_LINES} lines", 15, repeated(code)),
        listed(f"pairs of files of tests/ that share {SHARED_LINES} lines", 60, repeated(tests)),
        listed("packed assignments of operator/", 0, packed(code)),
    ]


def main() -> int:
    """Print the figures, or with ``--check`` what is past its bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--check", action="store_true", help="only what is past its bound; 1 then")
    parser.add_argument("--items", action="store_true", help="name what is counted")
    options = parser.parse_args()
    counted = figures(options.root.resolve())
    for figure in counted:
        if not options.check or figure.past:
            bound = "" if figure.bound is None else f"  (at most {figure.bound:g})"
            print(f"{figure.value:>8g}  {figure.name}{bound}{'  PAST' if figure.past else ''}")
            if options.items or options.check:
                print("".join(f"          {item}\n" for item in figure.items), end="")
    return 1 if options.check and any(figure.past for figure in counted) else 0


if __name__ == "__main__":
    sys.exit(main())
