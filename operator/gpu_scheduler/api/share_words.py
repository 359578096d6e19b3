"""The words with which a pod asks for a share of a GPU by itself, without a GPUJob.

They stand in a label, in annotations or in the limits of containers (``share_keys``). What was said
is copied, word for word and by the numbers of the containers (``numbering``), into one annotation,
from which ``share_request`` reads what is meant: so limits that nobody else may see can be taken
out. The admission policy of the chart does the same (docs/adr/0049).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_scheduler.api.numbering import ending, numbered, passing
from gpu_scheduler.api.share_keys import (
    GPUS,
    OF_CONTAINER,
    PEER_LIMITS,
    Compat,
    Form,
    PodKeys,
    forms,
)
from gpu_scheduler.core.model.quantity import parse
from gpu_scheduler.limits.bounded import quoted

RequestsByContainer = Mapping[int, Mapping[str, str]]
"""By the number of the container: what is said, by key."""

NOWHERE = -1  # number of a container that the pod names and does not have
ENDING = -2  # of one that is an init container which ends before the others start
EITHER = "|"  # between what a label says and what an annotation says of the same


def words(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    spec: Any,
    compat: Compat | None = None,
) -> RequestsByContainer:
    """What a pod says; nothing where it does not ask.

    Args:
        labels: of the pod.
        annotations: of the pod.
        spec: the pod's spec as JSON, before anything was done to it.
        compat: what the namespace says of other schedulers' keys.
    """
    found: dict[int, dict[str, str]] = {}
    for form in forms(compat):
        if form.pod is not None and (said := _of_pod(form.pod, labels, annotations)):
            number = _number(annotations.get(form.pod.container), spec)
            found.setdefault(number, {}).update(said)
        for name, said in _by_name(form, annotations):
            found.setdefault(_number(name, spec), {}).update(said)
    for number, container in numbered(spec):
        if said := _of_container(container, compat):
            found.setdefault(number, {}).update(said)
    return dict(sorted(found.items()))


def of_ending(spec: Any, compat: Compat | None = None) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Init containers that ask, and end before the others start: index, container, and the key.

    A GPU is held as long as the pod runs, so what they say cannot be meant; no word may be lost
    all the same, for nobody else has these GPUs.
    """
    for index, container in ending(spec):
        if said := _of_container(container, compat):
            yield index, container, next(iter(said))


def written(said: RequestsByContainer) -> str:
    """The words as the value of an annotation: ``0:key=word,key=word;1:key=word``."""
    return ";".join(
        f"{number}:" + ",".join(f"{key}={word}" for key, word in keys.items())
        for number, keys in said.items()
    )


def read(text: str) -> RequestsByContainer:
    """The words of an annotation.

    Raises:
        ValueError: ``written`` could not have made it.
    """
    found: dict[int, dict[str, str]] = {}
    for part in text.split(";"):
        number, colon, keys = part.partition(":")
        if not colon or not keys or not number.isascii() or not number.isdecimal():
            raise ValueError(f"{quoted(part)} is no container and what it asks for")
        pairs = (_pair(each) for each in keys.split(","))
        found[int(number)] = dict(pairs)
    return found


def _pair(text: str) -> tuple[str, str]:
    key, equals, word = text.partition("=")
    if not equals:
        raise ValueError(f"{quoted(text)} is no key with its word")
    return key, word


def _of_pod(
    keys: PodKeys, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> dict[str, str]:
    said = dict[str, str]()
    for key in keys.amounts:
        places = (labels, annotations) if key == keys.label else (annotations,)
        if told := dict.fromkeys(place[key] for place in places if key in place):
            said[key] = EITHER.join(told)
    if said and keys.devices in annotations:
        said[keys.devices] = annotations[keys.devices]
    return said


def _by_name(form: Form, annotations: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """What annotations say that have a container's name in their key."""
    if not form.of_container:
        return
    named = (OF_CONTAINER.fullmatch(key) for key in annotations)
    for name in dict.fromkeys(match[1] for match in named if match):
        key = next(k for way in form.of_container if (k := way.format(name)) in annotations)
        said = {key: annotations[key]}
        if form.pod is not None and form.pod.devices in annotations:
            said[form.pod.devices] = annotations[form.pod.devices]
        yield name, said


def _of_container(container: Mapping[str, Any], compat: Compat | None) -> dict[str, str]:
    """What its limits say; of other schedulers' keys nothing where it wants no GPU (0)."""
    limits = (container.get("resources") or {}).get("limits") or {}
    none = GPUS in limits and _integer(limits[GPUS]) == "0"
    return {
        key: _integer(limits[key])
        for form in forms(compat)
        for key in form.limits
        if key in limits and not (none and key in PEER_LIMITS)
    }


def _number(name: str | None, spec: Any) -> int:
    """Which container a pod means: the one of this name, or the first."""
    if name is None:
        return 0
    nowhere = ENDING if name in passing(spec) else NOWHERE
    return next((n for n, each in numbered(spec) if each.get("name") == name), nowhere)


def _integer(amount: object) -> str:
    """An amount as digits where it is a whole number: ``3k`` and 3000 are the same."""
    try:
        found = parse(str(amount))
    except ValueError:
        return str(amount)
    return str(found.numerator) if found.denominator == 1 else str(amount)
