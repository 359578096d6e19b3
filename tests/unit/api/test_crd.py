"""The generated CRDs: current, free of what the API server refuses, small, and helpful."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpu_scheduler.api.condition import CONDITIONS
from gpu_scheduler.api.crd import KINDS, CustomResource, main, stale

ROOT = Path(__file__).parents[3]
REFUSED = {
    "$defs",
    "$ref",
    "anyOf",
    "oneOf",
    "const",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "patternProperties",
    "prefixItems",
    "title",
    "uniqueItems",
}


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and all below it, with their paths."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schemas(schema[key], f"{path}[]")


def schema_of(kind: CustomResource) -> dict[str, Any]:
    return kind.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)


def test_the_committed_files_are_what_the_models_give():
    assert stale(ROOT / "crds") == [], "run `make crds`"


def test_check_tells_stale_files(tmp_path, capsys):
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    changed = tmp_path / KINDS[0].file_name
    changed.write_text(changed.read_text().replace("Pods that", "pods that"))
    assert main(["--check", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines() == [f"{changed} is stale: run `make crds`"]


def test_check_tells_missing_files(tmp_path):
    assert main(["--check", str(tmp_path)]) == 1


@each_kind
def test_a_file_is_the_definition_as_plain_yaml(kind, tmp_path):
    main([str(tmp_path)])
    text = (tmp_path / kind.file_name).read_text()
    assert yaml.safe_load(text) == kind.definition()
    assert "&id" not in text


@each_kind
def test_nothing_that_the_api_server_refuses(kind):
    for path, schema in schemas(schema_of(kind)):
        assert not REFUSED & schema.keys(), path
        assert "type" in schema or any(key.startswith("x-kubernetes-") for key in schema), path
        assert not {"properties", "additionalProperties"} <= schema.keys(), path


@each_kind
def test_every_field_that_people_write_or_read_is_described(kind):
    undescribed = [
        path
        for path, schema in schemas(schema_of(kind))
        if path.count(".") == 2 and "[]" not in path and "description" not in schema
    ]
    assert undescribed == []


@each_kind
def test_lists_and_texts_that_rules_walk_are_bounded(kind):
    for path, schema in schemas(schema_of(kind)):
        if schema.get("type") == "array" and path.startswith(".spec.") and "[]" not in path:
            assert "maxItems" in schema, path


@each_kind
def test_a_definition_is_small_enough_for_plain_apply(kind):
    # kubectl keeps a copy in an annotation, as JSON, and those of an object hold 262,144 bytes.
    assert len(json.dumps(kind.definition(), separators=(",", ":"))) < 64_000


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.status], ids=lambda k: k.kind)
def test_status_is_written_apart_from_the_spec(kind):
    version = kind.definition()["spec"]["versions"][0]
    assert version["subresources"] == {"status": {}}
    assert not [p for p, s in schemas(schema_of(kind)["properties"]["status"]) if "default" in s]


def test_defaults_of_a_job_are_filled_in_by_the_api_server():
    spec = schema_of(KINDS[0])["properties"]["spec"]["properties"]
    found = {name: schema["default"] for name, schema in spec.items() if "default" in schema}
    assert found == {
        "type": "training",
        "priority": 50,
        "parallelism": 1,
        "retries": 3,
        "suspend": False,
    }


def test_a_message_expression_always_has_a_plain_message_to_fall_back_to():
    for kind in KINDS:
        for path, schema in schemas(schema_of(kind)):
            for rule in schema.get("x-kubernetes-validations", ()):
                assert rule["message"], path
                assert "\n" not in rule["message"], path


@each_kind
def test_explain_has_a_word_for_every_field_but_those_of_a_pod(kind):
    """What a pod's fields mean, ``kubectl explain pod`` says."""
    silent = [
        path
        for path, schema in schemas(schema_of(kind))
        if path.startswith((".spec", ".status"))
        and not path.startswith(".spec.template.")
        and not path.endswith("[]")
        and "description" not in schema
    ]
    assert silent == []


@each_kind
def test_explain_lists_the_types_of_conditions_that_are_set(kind):
    said = {each for each, (of, _) in CONDITIONS.items() if kind.kind in of.split(", ")}
    assert said or kind.kind in ("GPUNode", "GPUUsage")
    status = schema_of(kind)["properties"].get("status", {"properties": {}})
    text = status["properties"].get("conditions", {})
    missing = [str(each) for each in said if each not in text.get("description", "")]
    assert missing == []


@each_kind
def test_columns_fit_into_a_terminal(kind):
    """Names of columns and three blanks each, beside a name, a namespace and the longest values."""
    columns = kind.definition()["spec"]["versions"][0]["additionalPrinterColumns"]
    wide = sum(max(len(c["name"]), WIDE.get(c["name"], 0)) + 3 for c in columns)
    assert wide + NAME <= 140


NAME = 14
WIDE = {"TYPE": 11, "STATUS": 9, "REASON": 19, "NODE": 12, "MODEL": 24, "DRIVER": 10}
