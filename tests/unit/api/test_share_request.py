"""What the words of a pod that asks by itself mean, and what is said of words that mean nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.api.gpujob import Isolation, JobType
from gpu_scheduler.api.names import GROUP
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.share_request import ShareRequest, request_of
from gpu_scheduler.api.share_words import NOWHERE, read, words, written
from gpu_scheduler.core.model.request import DeviceRequest

ONE = {"containers": [{"name": "main"}]}


def spec(*limits: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {
        "containers": [
            {"name": f"c{number}", "resources": {"limits": each}}
            for number, each in enumerate(limits)
        ],
        "initContainers": [
            {"name": f"i{number}", "restartPolicy": "Always", "resources": {"limits": each}}
            for number, each in enumerate(init)
        ],
    }


def asked(
    annotations: dict[str, str], pod: Any = ONE, labels: dict[str, str] | None = None
) -> ShareRequest | tuple[Problem, ...]:
    notes = {f"{GROUP}/{key}": value for key, value in annotations.items()}
    tags = {f"{GROUP}/{key}": value for key, value in (labels or {}).items()}
    said = words(tags, notes, pod)
    assert NOWHERE in said or read(written(said)) == said
    return request_of(said, tags, notes)


def devices(*args: Any, **more: Any) -> tuple[DeviceRequest, ...]:
    found = asked(*args, **more)
    assert isinstance(found, ShareRequest), found
    return found.devices


MILLI, MIB = f"{GROUP}/milligpu", f"{GROUP}/gpu-mib"


def test_a_label_an_annotation_and_a_limit_say_the_same() -> None:
    half = (DeviceRequest(0, 1, 500),)
    assert devices({"gpu": "0.5"}) == half
    assert devices({}, labels={"gpu": "0.5"}) == half
    assert devices({"gpu": "0.5"}, labels={"gpu": "0.5"}) == half
    assert devices({}, spec({MILLI: 500})) == half
    assert devices({}, spec({MILLI: "500"})) == half


def test_amounts_of_memory_whole_gpus_and_several_devices() -> None:
    assert devices({"gpu": "2"}) == (DeviceRequest(0, 2, 1000),)
    assert devices({}, spec({MILLI: "3k"})) == (DeviceRequest(0, 3, 1000),)
    assert devices({"gpu-memory": "8Gi"}) == (DeviceRequest(0, 1, 0, 8192),)
    assert devices({}, spec({MIB: 8192})) == (DeviceRequest(0, 1, 0, 8192),)
    assert devices({"gpu": "0.25", "gpu-devices": "2"}) == (DeviceRequest(0, 2, 250),)


def test_containers_by_name_by_limits_and_sidecars() -> None:
    pod = {"containers": [{"name": "a"}, {"name": "b"}]}
    assert devices({"gpu": "0.5", "gpu-container": "b"}, pod) == (DeviceRequest(1, 1, 500),)
    several = spec({MILLI: 500}, {}, {MIB: 4096}, init=({}, {MILLI: 100}))
    assert devices({}, several) == (
        DeviceRequest(0, 1, 500),
        DeviceRequest(2, 1, 0, 4096),
        DeviceRequest(65, 1, 100),
    )
    both = asked({"gpu": "0.5", "gpu-container": "c1"}, spec({MILLI: 200}, {}))
    assert isinstance(both, ShareRequest) and len(both.devices) == 2


def test_everything_else_that_a_pod_may_say() -> None:
    found = asked(
        {
            "gpu": "0.5",
            "type": "interactive",
            "priority": "80",
            "gpu-models": "A100, h100",
            "isolation": "framework",
            "time-limit": "3600",
            "gang-size": "4",
        },
        labels={"gang": "ring"},
    )
    assert found == ShareRequest(
        (DeviceRequest(0, 1, 500),),
        ("a100", "h100"),
        JobType.INTERACTIVE,
        80,
        3600,
        Isolation.FRAMEWORK,
        "ring",
        4,
    )


def test_a_pod_that_says_nothing_asks_for_nothing() -> None:
    assert words({}, {}, spec({"cpu": "1"})) == {}
    assert words({}, {f"{GROUP}/priority": "3", f"{GROUP}/gpu-devices": "2"}, ONE) == {}


REFUSED: dict[str, tuple[dict[str, str], Any, dict[str, str], str, str]] = {
    "negative": ({"gpu": "-1"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "no number"),
    "nothing": ({"gpu": "0"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "above 0"),
    "one and a half": ({"gpu": "1.5"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "whole"),
    "text": ({"gpu": "half"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "0.5"),
    "empty": ({"gpu": ""}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "0.5"),
    "an exponent": ({"gpu": "5e-1"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "0.5"),
    "other digits": ({"gpu": "٣"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "0.5"),
    "four decimals": ({"gpu": "0.3333"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "three"),
    "a million": ({"gpu": "1000000"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "1024"),
    "two forms": (
        {"gpu": "0.5"},
        spec({MILLI: 500}),
        {},
        "containers[0].resources.limits[gpu-scheduler.io/milligpu]",
        "in one place",
    ),
    "share and memory": (
        {"gpu": "0.5", "gpu-memory": "1Gi"},
        ONE,
        {},
        "annotations[gpu-scheduler.io/gpu-memory]",
        "in one place",
    ),
    "label and annotation": (
        {"gpu": "0.5"},
        ONE,
        {"gpu": "0.7"},
        "labels[gpu-scheduler.io/gpu]",
        "in one place",
    ),
    "unknown container": (
        {"gpu": "0.5", "gpu-container": "x"},
        ONE,
        {},
        "annotations[gpu-scheduler.io/gpu-container]",
        "no container",
    ),
    "thousandths above one": (
        {},
        spec({}, {MILLI: 1500}),
        {},
        "containers[1].resources.limits[gpu-scheduler.io/milligpu]",
        "2000",
    ),
    "half a thousandth": (
        {},
        spec({MILLI: "500m"}),
        {},
        "containers[0].resources.limits[gpu-scheduler.io/milligpu]",
        "whole number",
    ),
    "memory without a unit": (
        {"gpu-memory": "20"},
        ONE,
        {},
        "annotations[gpu-scheduler.io/gpu-memory]",
        "20Gi",
    ),
    "a sidecar": (
        {},
        spec({}, init=({MIB: 0},)),
        {},
        "initContainers[0].resources.limits[gpu-scheduler.io/gpu-mib]",
        "8192",
    ),
    "devices of a whole": (
        {"gpu": "1", "gpu-devices": "2"},
        ONE,
        {},
        "annotations[gpu-scheduler.io/gpu-devices]",
        "share below 1",
    ),
    "type": ({"gpu": "1", "type": "x"}, ONE, {}, "annotations[gpu-scheduler.io/type]", "training"),
    "priority": (
        {"gpu": "1", "priority": "101"},
        ONE,
        {},
        "annotations[gpu-scheduler.io/priority]",
        "0 to 100",
    ),
    "models": (
        {"gpu": "1", "gpu-models": ", "},
        ONE,
        {},
        "annotations[gpu-scheduler.io/gpu-models]",
        "A100",
    ),
    "time limit": (
        {"gpu": "1", "time-limit": "1h"},
        ONE,
        {},
        "annotations[gpu-scheduler.io/time-limit]",
        "in seconds",
    ),
    "a gang without size": (
        {"gpu": "1"},
        ONE,
        {"gang": "ring"},
        "annotations[gpu-scheduler.io/gang-size]",
        "is missing",
    ),
    "a size without gang": (
        {"gpu": "1", "gang-size": "3"},
        ONE,
        {},
        "labels[gpu-scheduler.io/gang]",
        "is missing",
    ),
    "seventeen containers": (
        {},
        spec(*({MILLI: 10} for _ in range(17))),
        {},
        "spec.containers",
        "at most 16",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_odd_words_are_answered_with_their_field_and_the_way_out(case: str) -> None:
    annotations, pod, labels, field, way_out = REFUSED[case]
    found = asked(annotations, pod, labels)
    assert isinstance(found, tuple), found
    (problem,) = found
    assert problem.field.endswith(field)
    assert way_out in problem.message


@given(
    st.dictionaries(st.sampled_from(["gpu", "gpu-memory", "gpu-devices", "priority"]), st.text()),
    st.text(),
)
def test_whatever_it_says_there_is_an_answer(annotations: dict[str, str], limit: str) -> None:
    notes = {f"{GROUP}/{key}": value for key, value in annotations.items()}
    said = words({}, notes, spec({MILLI: limit}))
    found = request_of(said, {}, notes)
    assert isinstance(found, ShareRequest) or found


@pytest.mark.parametrize("text", ["", "0", "0:", ":a=b", "x:a=b", "0:a", "-1:a=b", "0:a=b;"])
def test_an_annotation_that_nobody_of_us_wrote_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError):
        read(text)


def test_words_of_keys_that_nobody_knows_are_answered() -> None:
    for text in ("0:other=1", "0:gpu-scheduler.io/gpu-devices=1"):
        found = request_of(read(text), {}, {})
        assert isinstance(found, tuple) and "asked" in found[0].field
