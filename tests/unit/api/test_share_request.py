"""What the words of a pod that asks by itself mean, and what is said of words that mean nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.api.gpujob import Isolation, JobType
from gpu_scheduler.api.names import GANG_SIZE, GROUP, LABEL_GANG
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.share_keys import GANGS, KAI_LIMIT, KAI_REQUEST, Compat
from gpu_scheduler.api.share_request import ShareRequest, request_of
from gpu_scheduler.api.share_words import ENDING, NOWHERE, read, words, written
from gpu_scheduler.core.model.request import DeviceRequest

ONE = {"containers": [{"name": "main"}]}
REQUEST, LIMIT = KAI_REQUEST, KAI_LIMIT


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
    assert {NOWHERE, ENDING} & said.keys() or read(written(said)) == said
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
            "distinct-gpus": "false",
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
        distinct_gpus=False,
    )


def test_a_pod_that_says_nothing_asks_for_nothing() -> None:
    assert words({}, {}, spec({"cpu": "1"})) == {}
    assert words({}, {f"{GROUP}/priority": "3", f"{GROUP}/gpu-devices": "2"}, ONE) == {}


REFUSED: dict[str, tuple[dict[str, str], Any, dict[str, str], str, str]] = {
    "negative": ({"gpu": "-1"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "no number"),
    "nothing": ({"gpu": "0"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "above 0"),
    "one and a half": ({"gpu": "1.5"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "whole"),
    "text": ({"gpu": "half"}, ONE, {}, "annotations[gpu-scheduler.io/gpu]", "0.5"),
    "text in a label": (
        {},
        ONE,
        {"gpu": "half"},
        "metadata.labels[gpu-scheduler.io/gpu]",
        "0.5",
    ),
    "a label and thousandths in the limits": (
        {},
        spec({MILLI: 500}),
        {"gpu": "0.5"},
        "limits[gpu-scheduler.io/milligpu]",
        "a second time",
    ),
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
    "an init container that ends": (
        {"gpu": "0.5", "gpu-container": "first"},
        {**ONE, "initContainers": [{"name": "first"}]},
        {},
        "annotations[gpu-scheduler.io/gpu-container]",
        "names an init container that ends before the others start",
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
    "no word for whether GPUs are distinct": (
        {"gpu": "1", "gang-size": "3", "distinct-gpus": "no"},
        ONE,
        {"gang": "ring"},
        "annotations[gpu-scheduler.io/distinct-gpus]",
        "write true or false",
    ),
    "distinct GPUs of no gang": (
        {"gpu": "1", "distinct-gpus": "false"},
        ONE,
        {},
        "annotations[gpu-scheduler.io/distinct-gpus]",
        "goes with a gang",
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


def asked_there(
    compat: Compat, notes: dict[str, str], pod: Any = ONE
) -> ShareRequest | tuple[Problem, ...]:
    """What is meant in a namespace that opts in."""
    said = words({}, notes, pod, compat)
    assert NOWHERE in said or read(written(said)) == said
    return request_of(said, {}, notes) if said else ()


GPUS, MEM, PERCENT, CORES = (
    f"nvidia.com/gpu{each}" for each in ("", "mem", "mem-percentage", "cores")
)
THEIRS: dict[str, tuple[Compat, dict[str, str], Any, tuple[DeviceRequest, ...]]] = {
    "whole GPUs": (Compat.NVIDIA, {}, spec({GPUS: 2}), (DeviceRequest(0, 2, 1000),)),
    "HAMi's memory": (
        Compat.HAMI,
        {},
        spec({GPUS: "2", MEM: "3k", CORES: 30}),
        (DeviceRequest(0, 2, 0, 3000),),
    ),
    "HAMi's memory alone": (Compat.HAMI, {}, spec({MEM: 512}), (DeviceRequest(0, 1, 0, 512),)),
    "HAMi's per cent": (Compat.HAMI, {}, spec({GPUS: 1, PERCENT: 50}), (DeviceRequest(0, 1, 500),)),
    "HAMi's hundred per cent": (
        Compat.HAMI,
        {},
        spec({PERCENT: 100}),
        (DeviceRequest(0, 1, 1000),),
    ),
    "memory before per cent": (
        Compat.HAMI,
        {},
        spec({GPUS: 1, MEM: 512, PERCENT: 50}),
        (DeviceRequest(0, 1, 0, 512),),
    ),
    "HAMi's cores alone": (Compat.HAMI, {}, spec({CORES: 10}), (DeviceRequest(0, 1, 1000),)),
    "HAMi, container by container": (
        Compat.HAMI,
        {},
        spec({MEM: 512}, {GPUS: 0}, {}, init=({PERCENT: 10},)),
        (DeviceRequest(0, 1, 0, 512), DeviceRequest(64, 1, 100)),
    ),
    "KAI's fraction": (Compat.KAI, {"gpu-fraction": "0.5"}, ONE, (DeviceRequest(0, 1, 500),)),
    "KAI's memory on two": (
        Compat.KAI,
        {"gpu-memory": "2500", "gpu-fraction-num-devices": "2"},
        ONE,
        (DeviceRequest(0, 2, 0, 2500),),
    ),
    "KAI's container": (
        Compat.KAI,
        {"gpu-fraction": "0.25", "gpu-fraction-container-name": "c1"},
        spec({}, {}),
        (DeviceRequest(1, 1, 250),),
    ),
    "KAI's memory of a container": (
        Compat.KAI,
        {REQUEST.format("c1"): "8Gi"},
        spec({}, {}, init=({}, {})),
        (DeviceRequest(1, 1, 0, 8192),),
    ),
    "KAI's memory of a container and a sidecar": (
        Compat.KAI,
        {REQUEST.format("c0"): "1Gi", REQUEST.format("i0"): "2Gi"},
        spec({}, init=({},)),
        (DeviceRequest(0, 1, 0, 1024), DeviceRequest(64, 1, 0, 2048)),
    ),
    "its limit alone": (
        Compat.KAI,
        {LIMIT.format("main"): "1Gi"},
        ONE,
        (DeviceRequest(0, 1, 0, 1024),),
    ),
    "on two GPUs": (
        Compat.KAI,
        {REQUEST.format("main"): "1Gi", "gpu-fraction-num-devices": "2"},
        ONE,
        (DeviceRequest(0, 2, 0, 1024),),
    ),
    "ours beside it": (
        Compat.KAI,
        {"gpu-fraction": "0.25", f"{GROUP}/gpu": "0.5", f"{GROUP}/gpu-container": "c1"},
        spec({}, {}),
        (DeviceRequest(0, 1, 250), DeviceRequest(1, 1, 500)),
    ),
}


@pytest.mark.parametrize("case", THEIRS)
def test_other_schedulers_keys_are_read_where_the_namespace_says_so(case: str) -> None:
    compat, notes, pod, wanted = THEIRS[case]
    found = asked_there(compat, notes, pod)
    assert isinstance(found, ShareRequest), found
    assert found.devices == wanted
    ours = any(key.startswith(GROUP) for key in notes)
    assert ours or words({}, notes, pod) == {}, "and nowhere else"


def test_what_nobody_is_held_to_is_known() -> None:
    found = asked_there(Compat.HAMI, {}, spec({MEM: 512, CORES: 30}))
    assert isinstance(found, ShareRequest) and found.unenforced == (CORES,)


def test_one_that_wants_none_of_their_gpus_asks_for_nothing() -> None:
    assert words({}, {}, spec({GPUS: 0, MEM: 512}), Compat.HAMI) == {}
    assert words({}, {}, spec({GPUS: "0"}), Compat.NVIDIA) == {}
    assert words({}, {"gpu-fraction": "0.5"}, spec({MEM: 512}), Compat.NVIDIA) == {}


def test_a_limit_beside_a_request_is_known() -> None:
    notes = {REQUEST.format("main"): "1Gi", LIMIT.format("main"): "2Gi"}
    found = asked_there(Compat.KAI, notes, ONE)
    assert isinstance(found, ShareRequest) and found.not_read == (LIMIT.format("main"),)
    assert found.devices == (DeviceRequest(0, 1, 0, 1024),)


REFUSED_THERE: dict[str, tuple[Compat, dict[str, str], Any, str, str]] = {
    "no memory": (Compat.HAMI, {}, spec({MEM: 0}), f"limits[{MEM}]", "above 0"),
    "too many per cent": (Compat.HAMI, {}, spec({PERCENT: 101}), f"limits[{PERCENT}]", "1 to 100"),
    "too many cores": (Compat.HAMI, {}, spec({MEM: 9, CORES: 101}), f"limits[{CORES}]", "0 to 100"),
    "too many GPUs": (Compat.NVIDIA, {}, spec({GPUS: 65}), f"limits[{GPUS}]", "1 to 64"),
    "half a GPU": (Compat.NVIDIA, {}, spec({GPUS: "500m"}), f"limits[{GPUS}]", "whole number"),
    "ours and theirs": (
        Compat.HAMI,
        {},
        spec({MEM: 512, MILLI: 500}),
        f"limits[{MEM}]",
        "in one place",
    ),
    "a fraction and a whole": (
        Compat.KAI,
        {"gpu-fraction": "0.5"},
        spec({GPUS: 1}),
        f"limits[{GPUS}]",
        "in one place",
    ),
    "fraction and memory": (
        Compat.KAI,
        {"gpu-fraction": "0.5", "gpu-memory": "9"},
        ONE,
        "annotations[gpu-memory]",
        "in one place",
    ),
    "a quantity": (
        Compat.KAI,
        {"gpu-memory": "8Gi"},
        ONE,
        "annotations[gpu-memory]",
        "MiB",
    ),
    "a fraction in words": (
        Compat.KAI,
        {"gpu-fraction": "half"},
        ONE,
        "annotations[gpu-fraction]",
        "0.5",
    ),
    "devices of whole GPUs": (
        Compat.KAI,
        {"gpu-fraction": "1", "gpu-fraction-num-devices": "2"},
        ONE,
        "annotations[gpu-fraction-num-devices]",
        "share below 1",
    ),
    "memory of a container that is not there": (
        Compat.KAI,
        {REQUEST.format("x"): "8Gi"},
        ONE,
        f"annotations[{REQUEST.format('x')}]",
        "no container",
    ),
    "memory of a container twice": (
        Compat.KAI,
        {REQUEST.format("main"): "8Gi", "gpu-memory": "9"},
        ONE,
        f"annotations[{REQUEST.format('main')}]",
        "in one place",
    ),
    "memory of a container in words": (
        Compat.KAI,
        {REQUEST.format("main"): "lots"},
        ONE,
        f"annotations[{REQUEST.format('main')}]",
        "amount of memory",
    ),
    "unknown container": (
        Compat.KAI,
        {"gpu-fraction": "0.5", "gpu-fraction-container-name": "x"},
        ONE,
        "annotations[gpu-fraction-container-name]",
        "no container",
    ),
}


@pytest.mark.parametrize("case", REFUSED_THERE)
def test_their_odd_words_are_answered_with_their_field_too(case: str) -> None:
    compat, notes, pod, field, way_out = REFUSED_THERE[case]
    found = asked_there(compat, notes, pod)
    assert isinstance(found, tuple) and len(found) == 1, found
    assert found[0].field.endswith(field)
    assert way_out in found[0].message


@pytest.mark.parametrize(("label", "size"), GANGS[1:])
def test_gangs_of_others_are_gangs_where_name_and_size_are_there(label: str, size: str) -> None:
    said = words({}, {f"{GROUP}/gpu": "1"}, ONE)
    found = request_of(said, {label: "ring"}, {size: "4"})
    assert isinstance(found, ShareRequest) and (found.gang, found.gang_size) == ("ring", 4)
    for tags, notes in (({label: "ring"}, {}), ({}, {size: "4"}), ({}, {size: "x"})):
        alone = request_of(said, tags, notes)
        assert isinstance(alone, ShareRequest) and alone.gang == ""
    wrong = request_of(said, {label: "ring"}, {size: "0"})
    assert isinstance(wrong, tuple) and size in wrong[0].field
    ours = {LABEL_GANG: "own", label: "ring"}, {GANG_SIZE: "2", size: "4"}
    first = request_of(said, *ours)
    assert isinstance(first, ShareRequest) and (first.gang, first.gang_size) == ("own", 2)


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
