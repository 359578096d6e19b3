"""Only what is asked about with numbers is remembered by number; all else by bytes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "operator" / "gpu_scheduler"
NUMBERS = {"int", "float", "bool", "bool | None", "int | None", "tuple[int, ...]"}
# Of what no tenant chooses: the installation's own image; the nodes and the planner's mix.
OURS = {"jobs/share_form.py:_installer", "core/packing/load.py:load_of"}


def remembered_by_number() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions that ``functools`` remembers, and where ``functools`` is used otherwise."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        uses = {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Name | ast.Attribute)
        }
        if not uses & {"lru_cache", "cache"}:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any(map(_remembers, node.decorator_list)):
                yield f"{path.relative_to(SOURCE)}:{node.name}", node


def _remembers(decorator: ast.expr) -> bool:
    return any(word in ast.unparse(decorator) for word in ("lru_cache", "functools.cache"))


@pytest.mark.long(reads=("operator/gpu_scheduler",))
def test_what_functools_remembers_is_asked_about_with_numbers() -> None:
    found = dict(remembered_by_number())
    assert OURS <= found.keys(), "the list above has one that is no more"
    texts = {
        name: [ast.unparse(arg.annotation or ast.Constant(None)) for arg in function.args.args]
        for name, function in found.items()
        if name not in OURS
    }
    assert texts, "shares and trials have some"
    assert [name for name, kinds in texts.items() if not NUMBERS.issuperset(kinds)] == []


@pytest.mark.long(reads=("operator/gpu_scheduler",))
def test_nothing_is_remembered_without_a_bound() -> None:
    for name, function in remembered_by_number():
        for decorator in filter(_remembers, function.decorator_list):
            assert isinstance(decorator, ast.Call) and decorator.keywords, name
