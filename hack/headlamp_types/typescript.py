"""TypeScript from the structural schema of a custom resource.

An object with fields is an interface, called by the way to it: ``GPUJobStatusPlacement`` is an item
of ``status.placements`` of a GPUJob. What the schema does not require may be absent. Comments are
the first sentences of descriptions.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dashboard_types.typescript import comment

Schema = Mapping[str, Any]
Only = Callable[[str], Sequence[str] | None]

_PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}
_OF_ANY_KIND = {"apiVersion": "", "kind": "", "metadata": "  readonly metadata: Metadata;"}


def interfaces(kind: str, schema: Schema, only: Only) -> Iterator[str]:
    """The lines of an interface for ``kind``, after those that it refers to.

    ``only``: of an object by its path, such as ``spec.sweep``, the fields to have; None: all.
    """
    yield from _interface(kind, schema, only, "")


def _interface(name: str, schema: Schema, only: Only, path: str) -> Iterator[str]:
    fields = only(path)
    lines: list[str] = []
    for field, inner in schema["properties"].items():
        if fields is not None and field not in fields:
            continue
        if not path and field in _OF_ANY_KIND:
            lines += filter(None, [_OF_ANY_KIND[field]])
            continue
        there = f"{path}.{field}".removeprefix(".")
        type_, needed = _type(f"{name}{field[0].upper()}{field[1:]}", inner, only, there)
        yield from needed
        lines += comment(_sentence(inner), "  ")
        mark = "" if field in schema.get("required", ()) else "?"
        lines.append(f"  readonly {field}{mark}: {type_};")
    yield from comment(_sentence(schema))
    yield from (f"export interface {name} {{", *lines, "}", "")


def _type(name: str, schema: Schema, only: Only, path: str) -> tuple[str, list[str]]:
    """The type of a value, and the interfaces that it needs.

    Raises:
        ValueError: it has no counterpart here.
    """
    if "enum" in schema:
        return " | ".join(f"'{word}'" for word in schema["enum"]), []
    match schema.get("type"):
        case "array":
            item, needed = _type(_singular(name), schema["items"], only, path)
            return f"readonly ({item})[]" if " | " in item else f"readonly {item}[]", needed
        case "object" if "properties" in schema:
            return name, list(_interface(name, schema, only, path))
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            value, needed = _type(name, schema["additionalProperties"], only, path)
            return f"Readonly<Record<string, {value}>>", needed
        case str(word) if word in _PLAIN:
            return _PLAIN[word], []
    raise ValueError(f"no TypeScript for {path}: {dict(schema)}")


def _sentence(schema: Schema) -> str:
    return re.split(r"(?<=[.]) ", schema.get("description", ""), maxsplit=1)[0]


def _singular(name: str) -> str:
    return name.removesuffix("es" if name.endswith("sses") else "s")
