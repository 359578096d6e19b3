"""What is wrong in a pod template, by path, with the value and what would be right there.

The API server decides whether a template is one; it says a wrong type without index and value, and
a quantity without its field. This finds the place, by the schema that the same API server
publishes, and the field that was meant. Pure.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import orjson

from gpu_scheduler.api.problem import Problem
from gpu_scheduler.kube.pod_schema import PodSchema, Schema

_MOST_CHARS = 100  # of a value or a key that is quoted
_CLOSE, _ALIKE = 0.8, 0.6  # how like the written name a field's is, from 0 to 1
_DEEP = 5  # fields further down are named no more
_BITS = {"int32": 31, "int64": 63}
# As the API server has it, resource.Quantity.
# What the API server says that quantities must match, with one way to read each text.
_QUANTITY = re.compile(r"[+-]?[0-9.]+(?:[eEinumkKMGTP]+[-+]?[0-9]*|[-+][0-9]*)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_OF_GPUS = ("gpu", "gpus", "gpumemory", "gpudevices", "gpumodels", "gpufraction")

_AN_INTEGER = "must be an integer"
_A_QUANTITY = 'must be a quantity, for example "500m" of CPU or 2Gi of memory'
_A_TIME = "must be a time, for example 2026-11-27T10:00:00Z"


class TemplateWords:
    """Knows the fields of a pod template."""

    def __init__(self, schema: PodSchema) -> None:
        """``schema``: as the API server publishes it."""
        self._schema = schema

    def problems(self, template: Mapping[str, Any], field: str = "") -> Iterator[Problem]:
        """Fields that a pod template does not have, and values of a type that they do not have.

        Args:
            template: ``metadata`` and ``spec``.
            field: the template's own path; empty: paths begin with ``metadata`` or ``spec``.
        """
        yield from self._of(self._schema.template, template, field)

    def _of(self, schema: Schema, value: object, field: str) -> Iterator[Problem]:
        schema = self._schema.resolved(schema)
        if value is None:  # as if it were absent, whatever belongs here
            return
        if schema.one_of or schema.type in ("string", "integer", "number", "boolean"):
            if wrong := _scalar(schema, value):
                yield Problem(field, f"is {_shown(value)}; {wrong}")
        elif schema.type == "array":
            yield from self._list(schema, value, field)
        elif schema.type == "object":
            yield from self._object(schema, value, field)

    def _list(self, schema: Schema, value: object, field: str) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield Problem(field, f"is {_shown(value)}; must be a list")
            return
        for index, entry in enumerate(value):
            if schema.items is not None:
                yield from self._of(schema.items, entry, f"{field}[{index}]")

    def _object(self, schema: Schema, value: object, field: str) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield Problem(field, f"is {_shown(value)}; must be an object")
            return
        others = schema.additional_properties
        for key, below in value.items():
            known = schema.properties.get(key)
            if known is not None:
                yield from self._of(known, below, f"{field}.{key}" if field else key)
            elif isinstance(others, Schema):
                yield from self._of(others, below, f"{field}[{key[:_MOST_CHARS]}]")
            elif schema.properties:
                name = key[:_MOST_CHARS]
                meant = self.meant(name, schema.properties)
                yield Problem(f"{field}.{name}" if field else name, f"unknown field; {meant}")

    def meant(self, key: str, siblings: Mapping[str, Schema]) -> str:
        """What somebody meant who wrote a field that is not known in its place."""
        if key.lower() in _OF_GPUS:
            return (
                "GPUs are asked for outside the template, with spec.gpu, spec.gpuMemory or "
                "spec.containers"
            )
        if near := _nearest(key, siblings, _CLOSE):
            return f"did you mean {near}?"
        elsewhere = next((at for name, at in self._fields() if name.lower() == key.lower()), "")
        if elsewhere:
            return f"its place is {elsewhere}"
        if near := _nearest(key, siblings, _ALIKE):
            return f"did you mean {near}?"
        return "remove it, or see kubectl explain pod.spec for what a pod has"

    def _fields(self) -> Iterator[tuple[str, str]]:
        """Fields of a template with their paths, those at the top first."""
        left = deque([(self._schema.template, "", 0)])
        while left:
            schema, field, depth = left.popleft()
            schema = self._schema.resolved(schema)
            if schema.items is not None:
                left.append((schema.items, f"{field}[]", depth))
            if depth == _DEEP:
                continue
            for name, below in schema.properties.items():
                at = f"{field}.{name}" if field else name
                yield name, at
                left.append((below, at, depth + 1))


def _nearest(key: str, fields: Mapping[str, Schema], least: float) -> str:
    lower = {name.lower(): name for name in fields}
    found = get_close_matches(key.lower(), lower, n=1, cutoff=least)
    return lower[found[0]] if found else ""


def _scalar(schema: Schema, value: object) -> str:
    """What would be right in place of a value, empty if it is."""
    if schema.one_of:
        return _either(schema, value)
    if schema.type == "string":
        return _text(schema, value)
    if schema.type == "boolean":
        return "" if isinstance(value, bool) else "must be true or false, without quotes"
    return _integer(schema, value) if schema.type == "integer" else _number(value)


def _either(schema: Schema, value: object) -> str:
    """Of a number or a string: a port, or a quantity."""
    if schema.format == "int-or-string":
        if isinstance(value, str):
            return ""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{_AN_INTEGER} or a string"
        return _integer(Schema("integer", "int32"), value)
    if isinstance(value, str):
        return "" if _QUANTITY.fullmatch(value) else _A_QUANTITY
    return _A_QUANTITY if _number(value) else ""


def _text(schema: Schema, value: object) -> str:
    if isinstance(value, str):
        return "" if schema.format != "date-time" or _TIME.fullmatch(value) else _A_TIME
    if isinstance(value, bool):
        return "must be a string: put it in quotes (in YAML yes, no, on and off are booleans too)"
    return f"must be a string{': put it in quotes' if not _number(value) else ''}"


def _number(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if number else "must be a number"


def _integer(schema: Schema, value: object) -> str:
    if isinstance(value, str):
        number = value.strip().lstrip("-").isdecimal()
        return f"{_AN_INTEGER}{', without quotes' if number else ''}"
    if _number(value):
        return _AN_INTEGER
    most = 2 ** _BITS.get(schema.format, 63) - 1
    if not -most - 1 <= value <= most:
        return f"{_AN_INTEGER} from {-most - 1} to {most}"
    return "" if isinstance(value, int) else f"{_AN_INTEGER}, without a decimal point"


def _shown(value: object) -> str:
    """A value as JSON, and what it is."""
    kinds = ((bool, "boolean"), (int | float, "number"), (str, "string"), (list, "list"))
    kind = next((name for of, name in kinds if isinstance(value, of)), "object")
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    if len(text) > _MOST_CHARS:
        text = f"{text[: _MOST_CHARS - 1]}…"
    return f"{text}, {'an' if kind == 'object' else 'a'} {kind}"
