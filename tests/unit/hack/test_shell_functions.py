"""A function of a script that is called as a program is makes ``command -v`` find it always."""

import re
from pathlib import Path

import pytest
from tests.suite.imports import ROOT

SCRIPTS = sorted(
    path
    for folder in ("hack", ".ci", "packaging", "native")
    for path in (ROOT / folder).rglob("*")
    if path.is_file()
    and (path.suffix == ".sh" or path.name == "run")
    and "node_modules" not in path.parts
)


def functions(text: str) -> set[str]:
    return set(re.findall(r"^\s*([\w-]+)\(\)\s*\{", text, re.MULTILINE))


def looked_for(text: str) -> set[str]:
    return set(re.findall(r"command -v ([\w-]+)", text))


def test_there_are_scripts_and_both_are_found_in_them() -> None:
    texts = [path.read_text() for path in SCRIPTS]
    assert len(texts) > 10
    assert any(map(functions, texts)) and any(map(looked_for, texts))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_function_is_called_as_a_program_that_is_looked_for(path: Path) -> None:
    assert not functions(path.read_text()) & looked_for(path.read_text())
