"""The plugin's types: made from the CRDs, written anew when those change."""

import pytest

from headlamp_types.__main__ import PATH
from headlamp_types.kinds import text
from headlamp_types.typescript import Schema, interfaces


def written(properties: dict[str, Schema], only: dict[str, tuple[str, ...]] | None = None) -> str:
    schema = {"type": "object", "properties": properties, "required": ["spec"]}
    return "\n".join(interfaces("Thing", schema, (only or {}).get))


def an_object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def test_they_are_those_of_the_crds() -> None:
    assert PATH.read_text(encoding="utf-8") == text(), "make headlamp-types writes them anew"


def test_only_what_is_required_is_always_there() -> None:
    found = written({"spec": {"type": "string"}, "status": {"type": "integer"}})
    assert "  readonly spec: string;\n  readonly status?: number;\n" in found


def test_an_item_is_called_by_the_way_to_it() -> None:
    one = {"type": "array", "items": an_object(name={"type": "string"})}
    found = written({"status": an_object(processes=one, devices=one)})
    assert "readonly processes?: readonly ThingStatusProcess[];" in found
    assert "export interface ThingStatusDevice {\n  readonly name?: string;\n}" in found


def test_of_an_object_that_is_named_only_these_fields_are_there() -> None:
    parts = an_object(wanted={"type": "string"}, large={"x-kubernetes-int-or-string": True})
    found = written({"spec": parts}, {"spec": ("wanted",)})
    assert "wanted" in found
    assert "large" not in found


def test_what_has_no_counterpart_is_refused_with_its_path() -> None:
    with pytest.raises(ValueError, match=r"spec\.large"):
        written({"spec": an_object(large={"x-kubernetes-int-or-string": True})})


def test_words_to_choose_from_and_maps_have_types() -> None:
    found = written(
        {
            "spec": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "status": {"type": "object", "additionalProperties": {"type": "number"}},
        }
    )
    assert "readonly spec: readonly ('a' | 'b')[];" in found
    assert "readonly status?: Readonly<Record<string, number>>;" in found


def test_a_comment_is_the_first_sentence() -> None:
    found = written({"spec": {"type": "string", "description": "At most 2.5. More is told."}})
    assert "  /** At most 2.5. */" in found
    assert "told" not in found
