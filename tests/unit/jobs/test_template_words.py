"""What is wrong in a template, by path, value and what would be right."""

from typing import Any

import msgspec
import pytest

from gpu_scheduler.jobs.template_words import TemplateWords
from gpu_scheduler.kube.pod_schema import Document, PodSchema

REFERENCE = "#/components/schemas/io.k8s."
TEXT, WHOLE, FLAG = {"type": "string"}, {"type": "integer", "format": "int32"}, {"type": "boolean"}


def refers(name: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"{REFERENCE}{name}"}], "default": {}}


def has(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "description": "said at length", "properties": properties}


def lists(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def maps(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


SCHEMAS = {
    "io.k8s.api.core.v1.PodTemplateSpec": has(
        metadata=has(labels=maps(TEXT), creationTimestamp=refers("Time")),
        spec=refers("api.core.v1.PodSpec"),
    ),
    "io.k8s.api.core.v1.PodSpec": has(
        containers=lists(refers("Container")),
        nodeSelector=maps(TEXT),
        terminationGracePeriodSeconds={"type": "integer", "format": "int64"},
        hostNetwork=FLAG,
        imagePullSecrets=lists(TEXT),
    ),
    "io.k8s.Container": has(
        name=TEXT,
        image=TEXT,
        args=lists(TEXT),
        limits=maps({"$ref": f"{REFERENCE}Quantity"}),
        port={"$ref": f"{REFERENCE}IntOrString"},
        volumeMounts=lists(has(name=TEXT)),
        tries=WHOLE,
        fieldsV1={"type": "object"},
    ),
    "io.k8s.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    "io.k8s.Time": {"type": "string", "format": "date-time"},
    "io.k8s.Node": has(status=TEXT),
}
SCHEMA = PodSchema(msgspec.convert({"components": {"schemas": SCHEMAS}}, Document))
WORDS = TemplateWords(SCHEMA)


def said(template: Any) -> list[str]:
    return [str(problem) for problem in WORDS.problems(template)]


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"image": "x"}, fields]}}


def test_what_no_template_refers_to_is_not_kept() -> None:
    assert len(SCHEMA) == 6


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"metadata": None, "spec": None},
        {"metadata": {"labels": {"a": None}, "creationTimestamp": "2026-11-27T10:00:00.5Z"}},
        {"spec": {"hostNetwork": False, "terminationGracePeriodSeconds": 0}},
        container(args=["", None], limits={"cpu": 2, "memory": "4Gi", "x": 0.5, "y": None}),
        container(port=80, fieldsV1={"any": {"thing": 1}}),
        container(port="http", tries=2**31 - 1),
    ],
)
def test_what_the_api_server_takes_has_nothing_wrong(template: Any) -> None:
    assert said(template) == []


MAIN = "spec.containers[1]"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (
            {"metadata": {"labels": {"a.b/c": 1}}},
            "metadata.labels[a.b/c]: is 1, a number; must be a string: put it in quotes",
        ),
        (
            {"spec": {"nodeSelector": {"fast": True}}},
            "spec.nodeSelector[fast]: is true, a boolean; must be a string: put it in quotes (in "
            "YAML yes, no, on and off are booleans too)",
        ),
        (container(args=["a", {}]), f"{MAIN}.args[1]: is {{}}, an object; must be a string"),
        (container(args="a b"), f'{MAIN}.args: is "a b", a string; must be a list'),
        ({"spec": {"nodeSelector": []}}, "spec.nodeSelector: is [], a list; must be an object"),
        (
            {"spec": {"terminationGracePeriodSeconds": "30"}},
            'spec.terminationGracePeriodSeconds: is "30", a string; must be an integer, without '
            "quotes",
        ),
        (
            {"spec": {"terminationGracePeriodSeconds": 30.0}},
            "spec.terminationGracePeriodSeconds: is 30.0, a number; must be an integer, without a "
            "decimal point",
        ),
        (
            container(tries=2**31),
            f"{MAIN}.tries: is 2147483648, a number; must be an integer from -2147483648 to "
            "2147483647",
        ),
        (container(tries=True), f"{MAIN}.tries: is true, a boolean; must be an integer"),
        (
            {"spec": {"hostNetwork": "yes"}},
            'spec.hostNetwork: is "yes", a string; must be true or false, without quotes',
        ),
        (
            container(limits={"cpu": [1]}),
            f'{MAIN}.limits[cpu]: is [1], a list; must be a quantity, for example "500m" of CPU or '
            "2Gi of memory",
        ),
        (
            container(limits={"memory": "4 GB"}),
            f'{MAIN}.limits[memory]: is "4 GB", a string; must be a quantity, for example "500m" '
            "of CPU or 2Gi of memory",
        ),
        (container(port=[1]), f"{MAIN}.port: is [1], a list; must be an integer or a string"),
        (
            {"metadata": {"creationTimestamp": "today"}},
            'metadata.creationTimestamp: is "today", a string; must be a time, for example '
            "2026-11-27T10:00:00Z",
        ),
    ],
)
def test_a_wrong_type_is_named_with_value_and_the_right_one(template: Any, words: str) -> None:
    assert said(template) == [words]


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({"spec": {"nodeselector": {}}}, "spec.nodeselector: unknown field; did you mean nodeSel"),
        (
            container(volumeMount=[]),
            f"{MAIN}.volumeMount: unknown field; did you mean volumeMount",
        ),
        (container(arg=[]), f"{MAIN}.arg: unknown field; did you mean args?"),
        (
            {"spec": {"image": "x"}},
            "spec.image: unknown field; its place is spec.containers[].image",
        ),
        (container(gpu=1), f"{MAIN}.gpu: unknown field; GPUs are asked for outside the template"),
        ({"metadata": {}, "kind": "Pod"}, "kind: unknown field; remove it"),
        (container(quite="other"), f"{MAIN}.quite: unknown field; remove it"),
    ],
)
def test_an_unknown_field_is_named_with_the_one_that_was_meant(template: Any, words: str) -> None:
    (only,) = said(template)
    assert only.startswith(words)


def test_long_values_and_keys_are_quoted_in_part() -> None:
    found = said({"spec": {"x" * 5000: 1, "hostNetwork": "y" * 5000}})
    assert all(len(each) < 300 for each in found) and len(found) == 2


def test_where_the_schema_says_nothing_nothing_is_wrong() -> None:
    assert list(TemplateWords(PodSchema(Document())).problems({"spec": 5})) == []
