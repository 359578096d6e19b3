"""What a JSON schema says of a value, in words: its type, and its limits."""

from collections.abc import Iterator, Mapping
from typing import Any

from reference.markdown import code

Schema = Mapping[str, Any]

_LIMITS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "items: at least {}"),
    ("maxItems", "items: at most {}"),
    ("maxProperties", "entries: at most {}"),
)
_FORMATTED = ("minimum", "exclusiveMinimum", "maximum")


def type_of(schema: Schema) -> str:
    """The type: ``integer``, ``list of string``, ``map of number``, or the words that it may be."""
    if "enum" in schema:
        return " or ".join(code(each) for each in schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "anyOf" in schema:
        return " or ".join(type_of(each) for each in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        return f"list of {type_of(schema.get('items') or {})}"
    inner = schema.get("additionalProperties")
    if kind == "object" and isinstance(inner, Mapping):
        return f"map of {type_of(inner)}"
    return str(kind) if kind else "any value"


def limits(schema: Schema) -> Iterator[str]:
    """What is refused by the schema itself: bounds, lengths and patterns."""
    for key, words in _LIMITS:
        if key in schema and not (key == "minLength" and schema[key] == 1):
            number = schema[key]
            yield words.format(f"{number:,}" if key in _FORMATTED else number)
    if schema.get("minLength") == 1:
        yield "not empty"
    if "pattern" in schema:
        yield f"matches {code(schema['pattern'])}"
    inner = schema.get("items") or schema.get("additionalProperties")
    if isinstance(inner, Mapping) and not inner.get("properties"):
        for each in limits(inner):
            yield f"each {each}"
