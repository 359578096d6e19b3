"""TypeScript from the structural schema of a custom resource.

An object with fields is an interface, called by the way to it: ``GPUJobStatusPlacement`` is an item
of ``status.placements`` of a GPUJob. What the schema does not require may be absent. Comments are
the first sentences of descriptions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dashboard_types.typescript import interface, type_of

Schema = Mapping[str, Any]
Only = Callable[[str], Sequence[str] | None]

_OF_ANY_KIND = ("apiVersion", "kind", "metadata")


def interfaces(kind: str, schema: Schema, only: Only) -> list[str]:
    """The lines of an interface for ``kind``, after those that it refers to.

    ``only``: of an object by its path, such as ``spec.sweep``, the fields to have; None: all.

    Raises:
        ValueError: a value has no counterpart here.
    """
    made: list[str] = []

    def add(name: str, schema: Schema, path: str) -> str:
        chosen, fields = only(path), []
        for field, inner in schema["properties"].items():
            if not path and field in _OF_ANY_KIND:
                fields += [(field, "Metadata", "")] if field == "metadata" else []
            elif chosen is None or field in chosen:
                called = f"{name}{field[0].upper()}{field[1:]}"
                type_ = type_in(called, inner, f"{path}.{field}".removeprefix("."))
                mark = "" if field in schema.get("required", ()) else "?"
                fields.append((f"{field}{mark}", type_, _sentence(inner)))
        made.extend(interface(name, _sentence(schema), fields))
        return name

    def type_in(name: str, schema: Schema, path: str) -> str:
        if "properties" in schema:
            return add(name, schema, path)
        for key, called in (("items", _singular(name)), ("additionalProperties", name)):
            if isinstance(schema.get(key), Mapping):
                schema = {**schema, key: {"$ref": f"#/{type_in(called, schema[key], path)}"}}
        try:
            return type_of(schema)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    add(kind, schema, "")
    return made


def _sentence(schema: Schema) -> str:
    return re.split(r"(?<=[.]) ", schema.get("description", ""), maxsplit=1)[0]


def _singular(name: str) -> str:
    return name.removesuffix("es" if name.endswith("sses") else "s")
