"""docs/reference/crds.md: every field of our kinds, out of the CRDs that ``make crds`` wrote.

An entry is called what ``kubectl explain`` calls it: gpujob.spec.gpu. Fields of a pod template are
Kubernetes' own and are left out; what we ask of them stands at the template.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from reference.json_schema import Schema, limits, type_of
from reference.markdown import Undescribed, code, entry, prose, sentence, table

FOLDER = Path(__file__).parents[2] / "crds"
_HEAD = """# Kinds and their fields

Generated from the CRDs (`make reference`). Each field is called what `kubectl explain` calls it.
What the API server refuses, and with which words, stands at the field. Fields of `status` are
written by the operator alone.
"""
_ROOT = ("apiVersion", "kind", "metadata")


def page() -> str:
    """The page as it should be."""
    return "\n".join([_HEAD, *(_kind(each) for each in kinds())])


def kinds() -> list[Mapping[str, Any]]:
    """The CRDs, as they are."""
    found = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yaml")]
    return sorted(found, key=lambda crd: str(crd["spec"]["names"]["kind"]))


def schema_of(crd: Mapping[str, Any]) -> Schema:
    """The schema of a kind's one version."""
    (version,) = crd["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def fields(schema: Schema, path: str) -> Iterator[tuple[str, Schema, bool]]:
    """Every field below ``path``: its own path, its schema and whether it must be there."""
    required = schema.get("required") or ()
    for name, field in (schema.get("properties") or {}).items():
        if "." not in path and name in _ROOT:
            continue
        yield f"{path}.{name}", field, name in required
        if _is_free(field):
            continue
        inner = field.get("items") or field.get("additionalProperties")
        below = inner if isinstance(inner, Mapping) else field
        yield from fields(below, f"{path}.{name}")


def _kind(crd: Mapping[str, Any]) -> str:
    spec, schema = crd["spec"], schema_of(crd)
    names, (version,) = spec["names"], spec["versions"]
    where = "in a namespace" if spec["scope"] == "Namespaced" else "for the whole cluster"
    parts = [
        f"## {names['kind']}\n",
        f"{prose(sentence(schema['description']))} `{spec['group']}/{version['name']}`, {where}; "
        f"`kubectl get {names['plural']}`, or `{'`, `'.join(names['shortNames'])}`.\n",
    ]
    if columns := version.get("additionalPrinterColumns"):
        rows = [(code(each["name"]), code(each["jsonPath"])) for each in columns]
        parts.append(f"What `kubectl get` shows:\n\n{table(('column', 'field'), rows)}\n")
    for path, field, required in fields(schema, names["singular"]):
        parts.append(_field(path, field, required))
    return "\n".join(parts)


def _field(path: str, field: Schema, required: bool) -> str:
    text = field.get("description")
    if not text:
        raise Undescribed(f"{path} has no description; write it at the model in gpu_scheduler/api")
    facts = [
        type_of(field),
        "required" if required else "",
        f"default {code(_plain(field['default']))}" if "default" in field else "",
        *limits(field),
        "cannot be changed" if _is_fixed(field) else "",
    ]
    has_fields = any(True for _ in fields(field, path)) and path.count(".") == 1
    notes = [f"Refused with:\n\n{rules}"] if (rules := "\n".join(_rules(field))) else []
    return entry(3 if has_fields else 4, path, facts, text, notes)


def _plain(value: object) -> object:
    return {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value


def _rules(field: Schema) -> Iterator[str]:
    """What the API server says when a rule in CEL is broken."""
    yield from _own_rules(field)
    for key in ("items", "additionalProperties"):
        if isinstance(field.get(key), Mapping):
            yield from _own_rules(field[key])
    if _is_free(field):
        yield from _template_rules(field, "")


def _own_rules(schema: Schema, at: str = "") -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations") or ():
        if not _keeps(rule):
            of = at + rule.get("fieldPath", "")
            yield f"- {f'`{of}`: ' if of else ''}{prose(rule['message'])}"


def _template_rules(schema: Schema, at: str) -> Iterator[str]:
    for name, field in (schema.get("properties") or {}).items():
        yield from _own_rules(field, f"{at}.{name}")
        inner = field.get("items")
        yield from _template_rules(inner if isinstance(inner, Mapping) else field, f"{at}.{name}")


def _is_fixed(field: Schema) -> bool:
    return any(_keeps(rule) for rule in field.get("x-kubernetes-validations") or ())


def _keeps(rule: Mapping[str, Any]) -> bool:
    return bool(rule["rule"] == "self == oldSelf")


def _is_free(field: Schema) -> bool:
    return bool(field.get("x-kubernetes-preserve-unknown-fields"))
