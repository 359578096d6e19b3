"""From a pydantic model to the structural schema that a CRD may hold.

The API server refuses what JSON Schema generators like to write: ``$defs``, null types, ``title``,
defaults inside ``anyOf``, ``const``. References are inlined, optional fields become plain ones,
and a description beside a reference wins over the one of its class; the rules of both hold.
"""

from typing import Any

from gpu_scheduler.api.model import RULES, ApiModel

Schema = dict[str, Any]


def structural(model: type[ApiModel], *, defaults: bool) -> Schema:
    """The schema of a model; ``defaults``: whether the API server fills in absent fields."""
    root = model.model_json_schema(by_alias=True)
    definitions: Schema = root.pop("$defs", {})
    return _convert(root, definitions, defaults)


def _convert(schema: Schema, definitions: Schema, defaults: bool) -> Schema:
    flat = _flatten(schema, definitions)
    flat.pop("title", None)
    default = flat.pop("default", None)
    if "const" in flat:
        flat["enum"] = [flat.pop("const")]
    if defaults and default is not None:
        flat["default"] = default
    if "properties" in flat:
        properties: Schema = flat["properties"]
        flat["properties"] = {
            name: _convert(value, definitions, defaults) for name, value in properties.items()
        }
        flat.pop("additionalProperties", None)
    for key in ("items", "additionalProperties"):
        if isinstance(flat.get(key), dict):
            flat[key] = _convert(flat[key], definitions, defaults)
    return _ordered(flat)


def _flatten(schema: Schema, definitions: Schema) -> Schema:
    """The schema without ``$ref`` and without the null branch of an optional field."""
    flat = dict(schema)
    while "$ref" in flat or "anyOf" in flat:
        if "$ref" in flat:
            inner = definitions[flat.pop("$ref").removeprefix("#/$defs/")]
        else:
            branches = [b for b in flat.pop("anyOf") if b != {"type": "null"}]
            if len(branches) != 1:
                raise ValueError(f"a field of a CRD has one type, not {branches}")
            inner = branches[0]
        of_both = [*inner.get(RULES, ()), *flat.get(RULES, ())]
        flat = inner | flat | ({RULES: of_both} if of_both else {})
    return flat


_FIRST = ("description", "type", "default", "enum")
_LAST = ("required", "properties", "items", "additionalProperties", RULES)


def _ordered(schema: Schema) -> Schema:
    """Keys in the order in which people read them."""

    def rank(key: str) -> int:
        if key in _FIRST:
            return _FIRST.index(key)
        return 100 + _LAST.index(key) if key in _LAST else 50

    return {key: schema[key] for key in sorted(schema, key=lambda k: (rank(k), k))}
