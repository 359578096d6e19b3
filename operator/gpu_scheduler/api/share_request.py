"""What the words of a pod that asks for a share by itself mean (``share_words``).

The same rules hold as for a GPUJob, and say the same. A pod with problems is refused where a policy
can do so, and else waits and is told.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpu_scheduler.api import rules
from gpu_scheduler.api.gpujob import Isolation, JobType
from gpu_scheduler.api.names import (
    ASK_CONTAINER,
    ASK_GPU,
    ASK_ISOLATION,
    ASK_MODELS,
    ASK_PRIORITY,
    ASK_TIME_LIMIT,
    ASK_TYPE,
    ASKED,
    DISTINCT_GPUS,
    GANG_SIZE,
    LABEL_GANG,
)
from gpu_scheduler.api.numbering import ENDS, FIRST_INIT
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.rule import broken
from gpu_scheduler.api.share_keys import (
    GANGS,
    GPUS,
    HAMI_CORES,
    HAMI_MEMORY,
    HAMI_PERCENT,
    KAI_CONTAINER,
    KAI_MEMORY,
    KAI_SHARE,
    LIMITS,
    OF_CONTAINER,
    PEER_LIMITS,
    Unit,
    not_read,
    unit_of,
)
from gpu_scheduler.api.share_words import EITHER, ENDING, NOWHERE, RequestsByContainer
from gpu_scheduler.core.model.quantity import whole
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB, MOST_MIB, milli_from_gpu
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.limits.bounded import QUOTED_CHARS, quoted

MOST_CONTAINERS = 16  # of a pod that get GPUs, as of a GPUJob
_MOST_DEVICES = 64  # of one node
_MOST_GPUS = 1024  # of one pod
_MOST_MODELS, _MOST_MODEL_CHARS = 16, 63
_MOST_GANG = rules.MAX_GANG_PODS
_MOST_SECONDS = 2**31 - 1
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_AMOUNTS = {
    Unit.SHARE: "a share of one GPU (0.5), or whole GPUs (2)",
    Unit.MEMORY: "device memory (8Gi)",
    Unit.MILLI: "thousandths of a GPU (500)",
    Unit.MIB: "MiB of device memory (8192)",
    Unit.PERCENT: "per cent of a GPU, 1 to 100 (50)",
}
_NOT_HERE = {
    NOWHERE: "no container of the pod has this name",
    ENDING: f"names an init container that {ENDS}",
}


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """What is asked for.

    Attributes:
        devices: by container, in the order of their numbers.
        models: accepted parts of product names, lower case; empty = any.
        type: None where the pod's restart policy decides.
        priority: 0 to 100.
        time_limit_seconds: None = none.
        isolation: None = as the installation says.
        gang: name of the group that starts together; empty = the pod is alone.
        gang_size: how many pods that group has; 0 = a PodGroup says with how many it starts.
        distinct_gpus: no two pods of that group share a GPU.
        unenforced: keys that were taken and hold nobody to anything.
        not_read: keys of another scheduler that nothing is made of.
    """

    devices: tuple[DeviceRequest, ...]
    models: tuple[str, ...] = ()
    type: JobType | None = None
    priority: int = 50
    time_limit_seconds: int | None = None
    isolation: Isolation | None = None
    gang: str = ""
    gang_size: int = 0
    distinct_gpus: bool = True
    unenforced: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()


def request_of(
    said: RequestsByContainer,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    pod_group: str = "",
) -> ShareRequest | tuple[Problem, ...]:
    """What is meant, or everything that is wrong with it.

    Args:
        said: what the pod says of devices; not empty.
        labels: of the pod.
        annotations: of the pod.
        pod_group: that its ``spec.schedulingGroup`` names; the other keys go before it.
    """
    found = tuple(_problems(said, labels, annotations))
    if DISTINCT_GPUS in annotations:
        found += tuple(_apart(labels, annotations[DISTINCT_GPUS], pod_group))
    if found:
        return found
    kind, isolation = annotations.get(ASK_TYPE), annotations.get(ASK_ISOLATION)
    limit = annotations.get(ASK_TIME_LIMIT)
    gang, size = _gang(labels, annotations)
    gang = gang or pod_group
    return ShareRequest(
        devices=tuple(_devices(number, keys) for number, keys in sorted(said.items())),
        models=_models(annotations),
        type=None if kind is None else JobType(kind),
        priority=int(annotations.get(ASK_PRIORITY, "50")),
        time_limit_seconds=None if limit is None else int(limit),
        isolation=None if isolation is None else Isolation(isolation),
        gang=gang,
        gang_size=size,
        distinct_gpus=annotations.get(DISTINCT_GPUS) != "false",
        unenforced=tuple(sorted({key for keys in said.values() for key in keys} & {HAMI_CORES})),
        not_read=not_read(annotations),
    )


def pod_group_of(pod_spec: Mapping[str, Any]) -> str:
    """The PodGroup that ``spec.schedulingGroup`` of a pod names; empty: none, or no name."""
    group = pod_spec.get("schedulingGroup")
    name = group.get("podGroupName") if isinstance(group, Mapping) else None
    return name if isinstance(name, str) else ""


def field_of(number: int, key: str) -> str:
    """Where a word stands: in the limits of a container, or in an annotation."""
    if key not in LIMITS:
        return _note(key)
    kind, index = (
        ("initContainers", number - FIRST_INIT) if number >= FIRST_INIT else ("containers", number)
    )
    return f"spec.{kind}[{index}].resources.limits[{key}]"


def _place(number: int, key: str, labelled: bool) -> str:
    return f"metadata.labels[{key}]" if labelled and key == ASK_GPU else field_of(number, key)


def _note(key: str) -> str:
    return f"metadata.annotations[{key}]"


def _problems(
    said: RequestsByContainer, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Iterator[Problem]:
    if len(said) > MOST_CONTAINERS:
        yield Problem("spec.containers", f"{len(said)} ask for GPUs; at most {MOST_CONTAINERS} can")
    for number, keys in sorted(said.items()):
        yield from _of_container(number, keys, ASK_GPU in labels and ASK_GPU not in annotations)
    yield from _named(annotations, ASK_TYPE, JobType)
    yield from _named(annotations, ASK_ISOLATION, Isolation)
    yield from _count(annotations, ASK_PRIORITY, 0, 100, "higher goes first")
    yield from _count(annotations, ASK_TIME_LIMIT, 1, _MOST_SECONDS, "in seconds")
    models = _models(annotations)
    long = any(len(model) > _MOST_MODEL_CHARS for model in models)
    if ASK_MODELS in annotations and (long or not 0 < len(models) <= _MOST_MODELS):
        yield Problem(
            _note(ASK_MODELS),
            f"write 1 to {_MOST_MODELS} models with commas between, like A100, each of at most "
            f"{_MOST_MODEL_CHARS} characters",
        )
    if LABEL_GANG in labels and GANG_SIZE not in annotations:
        yield Problem(
            _note(GANG_SIZE),
            f"is missing: how many pods the gang {labels[LABEL_GANG]} has, for example 4",
        )
    if GANG_SIZE in annotations and LABEL_GANG not in labels:
        yield Problem(
            f"metadata.labels[{LABEL_GANG}]",
            f"is missing: {GANG_SIZE} goes with the name of a gang, which all of its pods have",
        )
    for label, size in GANGS:
        if label in labels:
            yield from _count(annotations, size, 1, _MOST_GANG, "pods that start together")


def _apart(labels: Mapping[str, str], word: str, pod_group: str) -> Iterator[Problem]:
    if word not in ("true", "false"):
        said = f"{quoted(word)} is unknown; write true or false"
        yield Problem(_note(DISTINCT_GPUS), f"{said}: whether pods of the gang keep to GPUs apart")
    elif not pod_group and not any(label in labels for label, _ in GANGS):
        yield Problem(
            _note(DISTINCT_GPUS),
            f"goes with a gang: the label {LABEL_GANG} and the annotation {GANG_SIZE}",
        )


def _gang(labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[str, int]:
    """The gang that a pod is of, and its size; empty and 0: of none."""
    for label, size in GANGS:
        if label in labels and size in annotations:
            return labels[label], int(annotations[size])
    return "", 0


def _of_container(number: int, keys: Mapping[str, str], labelled: bool) -> Iterator[Problem]:
    """``labelled``: the share of the pod stands in a label."""
    if number in _NOT_HERE:
        theirs = keys.keys() & {KAI_SHARE, KAI_MEMORY}
        named = next((key for key in keys if OF_CONTAINER.fullmatch(key)), "")
        field = named or (KAI_CONTAINER if theirs else ASK_CONTAINER)
        yield Problem(_note(field), _NOT_HERE[number])
        return
    if None in map(unit_of, keys) or not (amounts := _amounts(keys)):
        yield Problem(_note(ASKED), "is the scheduler's own; remove it and ask by its keys")
        return
    if len(amounts) > 1:
        yield Problem(
            _place(number, amounts[1], labelled),
            f"asks a second time beside {amounts[0]}; say how much in one place",
        )
        return
    key = amounts[0]
    if EITHER in keys[key] and key == ASK_GPU:
        yield Problem(
            f"metadata.labels[{key}]",
            f"and the annotation say {clip(keys[key], QUOTED_CHARS)}; say how much in one place",
        )
        return
    for each, word in keys.items():
        yield from _of_word(each, word, _place(number, each, labelled))
    whole_gpus = unit_of(key) is Unit.SHARE and _NUMBER.fullmatch(keys[key])
    if whole_gpus and Decimal(keys[key]) >= 1 and (devices := _devices_key(keys)):
        yield Problem(_note(devices), f"goes with a share below 1; write {key}: 2")


def _amounts(keys: Mapping[str, str]) -> list[str]:
    """The keys that say how much; where there is more than one, not all can be meant.

    Of a container's limits for another scheduler one does: its memory in MiB before its per cents,
    as there, and whole GPUs where there is neither.
    """
    theirs = [key for key in (HAMI_MEMORY, HAMI_PERCENT, GPUS, HAMI_CORES) if key in keys]
    return [key for key in keys if unit_of(key) in _AMOUNTS and key not in PEER_LIMITS] + theirs[:1]


def _devices_key(keys: Mapping[str, str]) -> str:
    return next((key for key in keys if unit_of(key) is Unit.DEVICES), "")


def _of_word(key: str, word: str, field: str) -> Iterator[Problem]:
    unit, number = unit_of(key), _whole(word)
    if unit is None:
        return  # which was said of all of its keys
    if unit is Unit.MEMORY:
        yield from broken(rules.GPU_MEMORY, word, field)
    elif unit is Unit.SHARE:
        if not _NUMBER.fullmatch(word):
            yield Problem(field, f"{quoted(word)} is no number; write {_AMOUNTS[unit]}")
        elif Decimal(word) > _MOST_GPUS:
            yield Problem(field, f"at most {_MOST_GPUS} GPUs")
        else:
            yield from broken(rules.GPU, Decimal(word), field)
    elif unit in (Unit.DEVICES, Unit.GPUS):
        yield from _within(field, word, 1, _MOST_DEVICES, "GPUs of one node")
    elif unit is Unit.PERCENT:
        yield from _within(field, word, 1, 100, _AMOUNTS[unit])
    elif unit is Unit.CORES:
        yield from _within(field, word, 0, 100, "per cent of a GPU's time")
    elif number is None or number < 1:
        yield Problem(field, f"{quoted(word)} must be a whole number above 0: {_AMOUNTS[unit]}")
    elif unit is Unit.MIB and number > MOST_MIB:
        yield Problem(field, f"at most {MOST_MIB}, more than any GPU has")
    elif unit is Unit.MILLI and number > _MOST_GPUS * DEVICE_MILLI:
        yield Problem(field, f"at most {_MOST_GPUS * DEVICE_MILLI}")
    elif unit is Unit.MILLI and number > DEVICE_MILLI and number % DEVICE_MILLI:
        yield Problem(field, "above 1000 only whole GPUs, such as 2000")


def _named(
    annotations: Mapping[str, str], key: str, names: type[JobType] | type[Isolation]
) -> Iterator[Problem]:
    allowed = [each.value for each in names]
    if key in annotations and annotations[key] not in allowed:
        yield Problem(
            _note(key), f"{quoted(annotations[key])} is unknown; write {' or '.join(allowed)}"
        )


def _count(
    words: Mapping[str, str], key: str, least: int, most: int, what: str
) -> Iterator[Problem]:
    if key in words:
        yield from _within(_note(key), words[key], least, most, what)


def _within(field: str, word: str, least: int, most: int, what: str) -> Iterator[Problem]:
    number = _whole(word)
    if number is None or not least <= number <= most:
        yield Problem(field, f"{quoted(word)} must be a whole number, {least} to {most}: {what}")


def _whole(word: str) -> int | None:
    """A number that is written as people write one: digits alone."""
    plain = word.isascii() and word.isdecimal() and len(word) <= 10
    return int(word) if plain and (word == "0" or word[0] != "0") else None


def _models(annotations: Mapping[str, str]) -> tuple[str, ...]:
    parts = (part.strip().lower() for part in annotations.get(ASK_MODELS, "").split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def _devices(number: int, keys: Mapping[str, str]) -> DeviceRequest:
    key = _amounts(keys)[0]
    unit, word = unit_of(key), keys[key]
    count = int(keys.get(_devices_key(keys) or GPUS, "1"))
    if unit is Unit.MIB:
        return DeviceRequest(number, count, 0, int(word))
    if unit is Unit.MEMORY:
        return DeviceRequest(number, count, 0, -(-whole(word) // MIB))
    if unit is Unit.PERCENT:
        return DeviceRequest(number, count, int(word) * DEVICE_MILLI // 100)
    if unit in (Unit.GPUS, Unit.CORES):
        return DeviceRequest(number, count, DEVICE_MILLI)
    milli = int(word) if unit is Unit.MILLI else milli_from_gpu(word)
    if milli >= DEVICE_MILLI:
        return DeviceRequest(number, milli // DEVICE_MILLI, DEVICE_MILLI)
    return DeviceRequest(number, count, milli)
