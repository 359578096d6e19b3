"""docs/reference/values.md: every value of the chart, out of values.yaml and its schema.

What a value does is the comment above it that begins with ``# --``; a section may have a plain one.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from reference.json_schema import Schema, limits, type_of
from reference.markdown import Undescribed, code, entry, prose, sentence

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
_HEAD = """# Values of the chart

Generated from `values.yaml` and `values.schema.json` of the chart (`make reference`). A value
that is not listed here is refused. Set one with `helm upgrade --reset-then-reuse-values --set
scheduling.packing=spread`.
"""


@dataclass(frozen=True, slots=True)
class Value:
    """One value, or a section of values.

    Attributes:
        path: as for ``helm --set``.
        text: the comment above it.
        default: None of a section.
        schema: of the value.
    """

    path: str
    text: str
    default: object
    schema: Schema
    is_section: bool


def page() -> str:
    """The page as it should be."""
    parts = [_HEAD]
    at_top: list[str] = []
    for value in values():
        if value.is_section:
            text = f"\n{prose(sentence(value.text))}\n" if value.text else ""
            if "." not in value.path:
                parts.append(f"## {value.path}\n{text}")
            elif value.text:
                parts.append(f"### {value.path}\n{text}")
        else:
            (parts if "." in value.path else at_top).append(_entry(value))
    return "\n".join([*parts, "## Values without a section\n", *at_top])


def _entry(value: Value) -> str:
    if not value.text:
        raise Undescribed(f"{value.path} has no comment that begins with '# --' in values.yaml")
    default = json.dumps(value.default)
    shown = f"default {code(default)}" if default != '""' else "default: empty"
    return entry(3, value.path, [type_of(value.schema), shown, *limits(value.schema)], value.text)


def values() -> Iterator[Value]:
    """All values in their order, each section before what is in it."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    yield from _below(root, schema, "", schema["definitions"], text.splitlines())


def _below(
    node: yaml.MappingNode,
    schema: Schema,
    above: str,
    definitions: Mapping[str, Any],
    lines: list[str],
) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{above}{key.value}"
        own: Schema = schema["properties"][key.value]
        if "$ref" in own:
            own = definitions[own["$ref"].rpartition("/")[2]]
            free = True  # a shape that several values have: shown as a whole
        else:
            free = "properties" not in own
        section = not free and isinstance(value, yaml.MappingNode) and bool(value.value)
        default = None if section else yaml.SafeLoader("").construct_object(value, deep=True)
        text = _comment(lines, key.start_mark.line, section)
        yield Value(path, text, default, own, section)
        if section:
            yield from _below(value, own, f"{path}.", definitions, lines)


def _comment(lines: list[str], key: int, section: bool) -> str:
    """What stands above line ``key``, from the last ``--`` on; only a section does without."""
    first = key
    while first and lines[first - 1].strip().startswith("#"):
        first -= 1
    said = [line.strip().removeprefix("#").strip() for line in lines[first:key]]
    marks = [number for number, line in enumerate(said) if line.startswith("--")]
    if marks:
        said = said[marks[-1] :]
        said[0] = said[0].removeprefix("--").strip()
    elif not section:
        return ""
    return " ".join(said)
