"""What docstrings name is there: fields and arguments, classes, and modules of ours."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache

import pytest
from tests.unit.docs.pages import ROOT

pytestmark = pytest.mark.long(always=True)  # it reads all sources

CODE = ("operator", "hack", "tools")
SOURCE = ROOT / "operator/gpu_scheduler"
OTHERS = {
    "basic",  # a policy of a PodGroup
    "Formatter",  # of logging
    "GPUJobStatusPlacement",  # in the types of the plugin for Headlamp
    "OutOfcpu",  # a reason of the kubelet's
    "sweeps.tpe",  # a value of the chart
}
"""Names that nothing of ours has."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> list[tuple[str, str, ast.Module]]:
    """Path, text and tree of each module."""
    paths = [path for top in CODE for path in sorted((ROOT / top).rglob("*.py"))]
    texts = [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in paths]
    return [(path, text, ast.parse(text)) for path, text in texts]


@cache
def documented() -> list[tuple[str, ast.AST, str]]:
    """Whatever has a docstring, where it is, and what that says."""
    return [
        (path, node, docstring)
        for path, _, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | Function)
        if (docstring := ast.get_docstring(node))
    ]


def entries(docstring: str, head: str) -> list[str]:
    """The names that a section of a docstring explains."""
    found = re.search(rf"^{head}:\n((?: +.*(?:\n|$)|\n)*)", docstring, re.MULTILINE)
    lines = [line for line in found[1].split("\n") if line.strip()] if found else []
    least = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    named = (re.match(r"\s*(\w+(?:, \w+)*):", line) for line in lines if line[least] != " ")
    return [name for each in named if each is not None for name in each[1].split(", ")]


def fields(node: ast.ClassDef) -> set[str]:
    """What a class sets, declares and answers."""
    return {
        name
        for each in ast.walk(node)
        for name in (
            getattr(each, "id", None)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            else getattr(each, "attr", None)
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
            else getattr(each, "name", None)
            if isinstance(each, Function)
            else None,
        )
        if name
    }


def arguments(node: Function) -> set[str]:
    return {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}


def test_fields_and_arguments_that_are_explained_are_there() -> None:
    found = 0
    wrong = []
    for path, node, docstring in documented():
        if isinstance(node, ast.ClassDef):
            named, there = entries(docstring, "Attributes"), fields(node)
        elif isinstance(node, Function):
            named, there = entries(docstring, "Args"), arguments(node)
        else:
            continue
        found += len(named)
        wrong += [
            f"{path}:{node.lineno} {node.name}: {each}" for each in named if each not in there
        ]
    assert found > 1_000
    assert wrong == []


def said_and_named(text: str) -> Iterator[str]:
    """Names of the code, and words of its strings, but for docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.string
        elif token.type == tokenize.STRING and not token.string.startswith('"""'):
            yield from re.findall(r"\w+", token.string)


def test_what_is_quoted_is_there() -> None:
    there = {word for _, text, _ in trees() for word in said_and_named(text)}
    there |= {part for path, _, _ in trees() for part in path.removesuffix(".py").split("/")}
    named = {
        name
        for _, _, docstring in documented()
        for name in re.findall(r"``([a-z_]{4,}|[A-Z]+[a-z]\w*)``", docstring)
    }
    assert len(named) > 200
    assert named - there - OTHERS == set()


def is_of_ours(dotted: str) -> bool:
    """Whether there is a module, a package, or a name in one."""
    *above, last = dotted.split(".")
    at = SOURCE.joinpath(*above)
    named = (path for path in (at.with_suffix(".py"), at / "__init__.py") if path.is_file())
    return (
        at.joinpath(last).is_dir()
        or at.joinpath(f"{last}.py").is_file()
        or any(re.search(rf"\b{last}\b", path.read_text(encoding="utf-8")) for path in named)
    )


def test_modules_that_are_named_are_there() -> None:
    folders = "|".join(path.name for path in SOURCE.iterdir() if path.is_dir())
    named = {
        name
        for _, _, docstring in documented()
        for name in re.findall(rf"``((?:{folders})(?:\.\w+)+)``", docstring)
    }
    assert len(named) > 30
    assert [name for name in sorted(named - OTHERS) if not is_of_ours(name)] == []
