"""What looks as if a pod should ask for a share, and does not, is said with what to write."""

import pytest

from gpu_scheduler.api import names
from gpu_scheduler.api.share_hints import (
    ANNOTATIONS,
    ASKS,
    LABELS,
    NO_LIMIT,
    hints,
    nearest,
    of_limits,
)
from gpu_scheduler.api.unstructured import Body

HALF = {names.ASK_GPU: "0.5"}


def said(metadata: Body, template: Body | None = None) -> list[str]:
    return [str(each) for each in hints(metadata, template)]


def test_what_counts_is_not_mentioned() -> None:
    notes = dict.fromkeys(ANNOTATIONS, "x") | {"app": "x", "gpu-fraction": "0.5"}
    made = {"metadata": {"labels": dict.fromkeys(LABELS, "x"), "annotations": notes}}
    assert said({"labels": HALF | {"app": "x"}}, made) == []
    assert said(made["metadata"]) == []


@pytest.mark.parametrize("own", [v for k, v in vars(names).items() if k.isupper()])
def test_no_name_of_ours_is_unknown(own: object) -> None:
    known = isinstance(own, str) and own.startswith(f"{names.GROUP}/")
    elsewhere = (
        names.GATE,
        names.COMPAT,
        names.RESOURCE_MILLI,
        names.RESOURCE_MIB,
        names.REPORT_AUDIENCE,
        names.API_VERSION,
    )
    if not known or own in elsewhere or str(own).partition("/")[2][0].isupper():
        return
    key = f"{own}x" if str(own).endswith("-") else str(own)
    assert key in ASKS or nearest(key) == ""


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("gpu-scheduler.io/gpus", "gpu-scheduler.io/gpu"),
        ("gpu-scheduler.io/GPU", "gpu-scheduler.io/gpu"),
        ("gpu-scheduler.io/gpu_memory", "gpu-scheduler.io/gpu-memory"),
        ("gpuscheduler.io/gpu", "gpu-scheduler.io/gpu"),
        ("gpu-scheduler/gpu", "gpu-scheduler.io/gpu"),
        ("gpu-scheduler.io/gang.size", "gpu-scheduler.io/gang-size"),
        ("gpu-scheduler.io/colour", f"one of {', '.join(ASKS)}"),
    ],
)
def test_a_key_that_nobody_knows_is_answered_with_the_one_that_was_meant(
    key: str, meant: str
) -> None:
    assert said({"labels": {key: "0.5"}}) == [f"metadata.labels[{key}]: is unknown; write {meant}"]


def test_keys_of_others_are_theirs() -> None:
    keys = ("gpu-scheduler.example.com/pool", "gpu-schedulers/x", "gpu.io/gpu", "gpu-fraction")
    assert said({"labels": dict.fromkeys(keys, "x")}) == []


def test_a_key_beside_the_template_is_told_where_it_counts() -> None:
    made = {"metadata": {"labels": {"app": "x"}}}
    assert said({"labels": HALF, "annotations": {names.ASK_MEMORY: "8Gi"}}, made) == [
        f"metadata.labels[{names.ASK_GPU}]: counts on pods alone; "
        "write it into spec.template.metadata.labels",
        f"metadata.annotations[{names.ASK_MEMORY}]: counts on pods alone; "
        "write it into spec.template.metadata.annotations",
    ]


def test_a_limit_that_no_node_has_is_answered_with_those_that_count() -> None:
    limits = {"cpu": "1", "gpu-scheduler.io/milligpu": 500, "gpu-scheduler.io/gpu": 1}
    made = {"spec": {"containers": [{"name": "a"}, {"resources": {"limits": limits}}]}}
    field = "spec.template.spec.containers[1].resources.limits[gpu-scheduler.io/gpu]"
    assert said({}, made) == [f"{field}: {NO_LIMIT}"]
    assert [str(each) for each in of_limits(made["spec"])] == [
        f"spec.containers[1].resources.limits[gpu-scheduler.io/gpu]: {NO_LIMIT}"
    ]


def test_an_annotation_as_a_label_is_told_what_it_has_to_be() -> None:
    made = {"metadata": {"labels": {names.ASK_MEMORY: "8Gi"}}}
    assert said({}, made) == [
        f"spec.template.metadata.labels[{names.ASK_MEMORY}]: does not count there; "
        "write it into spec.template.metadata.annotations"
    ]
