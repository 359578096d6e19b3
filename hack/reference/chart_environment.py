"""Which values of the chart set which environment variable, read off the templates' text.

What a helper reads counts too: ``include "x"`` brings the
values of its definition.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "charts" / "gpu-scheduler" / "templates"

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
_VALUE = re.compile(r"\$?\.Values\.([A-Za-z.]+)")
_RELATIVE = re.compile(r"(?<![\w$.)])\.([a-z][A-Za-z.]*)")
_INCLUDE = re.compile(r'include "([^"]+)"')
_NAME = re.compile(r"- name: (GPUSCHED_\w+)")
_DEFINE = re.compile(r'\{\{-? define "([^"]+)" -?\}\}(.*?)(?=\{\{-? define |\Z)', re.DOTALL)
_FIELD = re.compile(r"fieldPath: (\S+)")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a variable of a container comes from.

    Attributes:
        values: paths of the values that it is made of.
        only_with: paths of the values without which it is not set.
        fixed: what it is set to, where no value has a part in it.
    """

    values: tuple[str, ...]
    only_with: tuple[str, ...]
    fixed: str


def sources(template: str) -> dict[str, Source]:
    """By the variable's name, of a file of the templates."""
    lines = (TEMPLATES / template).read_text(encoding="utf-8").splitlines()
    helpers = _helpers()
    found: dict[str, Source] = {}
    blocks: list[tuple[str, list[str]]] = []  # prefix of what a dot is there; values it depends on
    for number, line in enumerate(lines):
        scope = next((prefix for prefix, _ in reversed(blocks) if prefix), "")
        if name := _NAME.search(line):
            own_lines = takewhile(_goes_on, lines[number + 1 :])
            text = "\n".join(own_lines)
            own = tuple(dict.fromkeys(_values(text, scope, helpers)))
            asked = (value for _, values in blocks for value in values if value not in own)
            found[name[1]] = Source(own, tuple(dict.fromkeys(asked)), _fixed(text, own))
        for action in _ACTION.findall(line):
            if action.startswith(("if ", "with ", "range ")):
                values = list(_values(f"{{{{ {action} }}}}", scope, {}))
                prefix = values[0] if action.startswith("with ") and values else ""
                blocks.append((prefix, [] if prefix else values))
            elif action == "end" and blocks:
                blocks.pop()
    return found


def _goes_on(line: str) -> bool:
    """Whether it still belongs to the entry of a list of variables."""
    return line.strip().startswith(("value", "fieldRef", "fieldPath"))


def _fixed(text: str, own: tuple[str, ...]) -> str:
    if own:
        return ""
    if field := _FIELD.search(text):
        return field[1]
    return (
        text.partition("value:")[2].splitlines()[0].strip().strip('"') if "value:" in text else ""
    )


def _values(text: str, scope: str, helpers: dict[str, str]) -> Iterator[str]:
    for action in _ACTION.findall(text):
        bare = re.sub(r'"[^"]*"', "", action)
        yield from (each.rstrip(".") for each in _VALUE.findall(bare))
        if scope:
            without = _VALUE.sub("", bare)
            yield from (f"{scope}.{each}" for each in _RELATIVE.findall(without))
            if re.search(r"(?<![\w$])\.(?!\w)", without):
                yield scope
        for helper in _INCLUDE.findall(action):
            if helper in helpers:
                rest = {name: body for name, body in helpers.items() if name != helper}
                yield from _values(helpers[helper], "", rest)


def _helpers() -> dict[str, str]:
    return {
        name: body
        for path in sorted(TEMPLATES.glob("*.tpl"))
        for name, body in _DEFINE.findall(path.read_text(encoding="utf-8"))
    }
