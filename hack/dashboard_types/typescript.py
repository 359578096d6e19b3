"""TypeScript from structs of msgspec, by the JSON schema that msgspec makes of them.

Every field is there in an answer, so none is optional; docstrings become comments, and the lines
of their ``Attributes:`` those of the fields.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

_HEAD = """\
// Generated from operator/gpu_scheduler/dashboard/views.py: `make dashboard-types`. Change that.
"""
_PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}
_ATTRIBUTE = re.compile(r"^ {4,8}(\w+): (.*)$")
_WIDTH = 100

Schema = Mapping[str, Any]


def text(structs: Sequence[type[msgspec.Struct]]) -> str:
    """A module with an interface for each of them, and for all that they refer to."""
    _, schemas = msgspec.json.schema_components(structs, ref_template="#/{name}")
    return "\n".join([_HEAD, *("\n".join(_interface(name, schemas[name])) for name in schemas)])


def type_of(schema: Schema) -> str:
    """The type of one value.

    Raises:
        ValueError: it has no counterpart here.
    """
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix("#/")
    if "enum" in schema:
        return " | ".join(f"'{word}'" for word in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(type_of(each) for each in schema["anyOf"])
    match schema.get("type"):
        case "null":
            return "null"
        case "array":
            items = type_of(schema["items"])
            return f"readonly ({items})[]" if " | " in items else f"readonly {items}[]"
        case "object" if isinstance(schema.get("additionalProperties"), Mapping):
            return f"Readonly<Record<string, {type_of(schema['additionalProperties'])}>>"
        case str(word) if word in _PLAIN:
            return _PLAIN[word]
    raise ValueError(f"no TypeScript for {dict(schema)}")


def comment(words: str, indent: str = "") -> Iterator[str]:
    """The lines of a comment that says this; none where it says nothing."""
    if not words:
        return
    words = words.replace("*/", "* /").replace("``", "`")
    if len(line := f"{indent}/** {words} */") <= _WIDTH:
        yield line
        return
    yield f"{indent}/**"
    line = ""
    for word in words.split():
        if line and len(indent) + 3 + len(line) + 1 + len(word) > _WIDTH:
            yield f"{indent} * {line}"
            line = ""
        line = f"{line} {word}".lstrip()
    yield f"{indent} * {line}"
    yield f"{indent} */"


def interface(name: str, about: str, fields: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """The lines of an interface; of each field its name, its type and what is said of it."""
    yield from comment(about)
    yield f"export interface {name} {{"
    for field, kind, said in fields:
        yield from comment(said, "  ")
        yield f"  readonly {field}: {kind};"
    yield "}"
    yield ""


def _interface(name: str, schema: Schema) -> Iterator[str]:
    about, said = _documented(schema.get("description", ""))
    fields = schema["properties"].items()
    return interface(name, about, ((f, type_of(kind), said.get(f, "")) for f, kind in fields))


def _documented(docstring: str) -> tuple[str, dict[str, str]]:
    """What is said of all of it, and of each field by its name in JSON."""
    about, _, rest = docstring.partition("Attributes:")
    fields: dict[str, str] = {}
    for line in rest.splitlines():
        if found := _ATTRIBUTE.match(line):
            fields[_camel(found[1])] = found[2]
    return " ".join(about.split()), fields


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)
