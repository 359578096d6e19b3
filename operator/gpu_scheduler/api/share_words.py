"""The words with which a pod asks for a share of a GPU by itself, without a GPUJob.

They stand in a label, in annotations or in the limits of containers. What was said is copied, word
for word and by the numbers of the containers (``numbering``), into one annotation, from which
``share_request`` reads what is meant: so limits that nobody else may see can be taken out. Called
by ``jobs.share``; the admission policy of the chart does the same (docs/adr/0049).
"""

from collections.abc import Mapping
from typing import Any

from gpu_scheduler.api.names import (
    ASK_CONTAINER,
    ASK_DEVICES,
    ASK_GPU,
    ASK_MEMORY,
    RESOURCE_MIB,
    RESOURCE_MILLI,
)
from gpu_scheduler.api.numbering import numbered
from gpu_scheduler.core.quantity import parse

Words = Mapping[int, Mapping[str, str]]
"""By the number of the container: what is said, by key."""

AMOUNTS = (ASK_GPU, ASK_MEMORY)  # of a pod, any of which makes it ask
OF_POD = (*AMOUNTS, ASK_DEVICES)
OF_CONTAINER = (RESOURCE_MILLI, RESOURCE_MIB)  # limits
NOWHERE = -1  # number of a container that the pod names and does not have
EITHER = "|"  # between what a label says and what an annotation says of the same


def words(labels: Mapping[str, str], annotations: Mapping[str, str], spec: Any) -> Words:
    """What a pod says; nothing where it does not ask.

    Args:
        labels: of the pod.
        annotations: of the pod.
        spec: the pod's spec as JSON, before anything was done to it.
    """
    found: dict[int, dict[str, str]] = {}
    for number, container in numbered(spec):
        limits = (container.get("resources") or {}).get("limits") or {}
        if said := {key: _integer(limits[key]) for key in OF_CONTAINER if key in limits}:
            found[number] = said
    if any(key in annotations for key in AMOUNTS) or ASK_GPU in labels:
        said = {key: annotations[key] for key in OF_POD if key in annotations}
        if ASK_GPU in labels:
            both = dict.fromkeys((labels[ASK_GPU], said.get(ASK_GPU, labels[ASK_GPU])))
            said[ASK_GPU] = EITHER.join(both)
        number = _number(annotations.get(ASK_CONTAINER), spec)
        found[number] = {key: said[key] for key in OF_POD if key in said} | found.get(number, {})
    return dict(sorted(found.items()))


def written(said: Words) -> str:
    """The words as the value of an annotation: ``0:key=word,key=word;1:key=word``."""
    return ";".join(
        f"{number}:" + ",".join(f"{key}={word}" for key, word in keys.items())
        for number, keys in said.items()
    )


def read(text: str) -> Words:
    """The words of an annotation.

    Raises:
        ValueError: ``written`` could not have made it.
    """
    found: dict[int, dict[str, str]] = {}
    for part in text.split(";"):
        number, colon, keys = part.partition(":")
        if not colon or not keys or not number.isascii() or not number.isdecimal():
            raise ValueError(f"{part!r} is no container and what it asks for")
        pairs = (_pair(each) for each in keys.split(","))
        found[int(number)] = dict(pairs)
    return found


def _pair(text: str) -> tuple[str, str]:
    key, equals, word = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is no key with its word")
    return key, word


def _number(name: str | None, spec: Any) -> int:
    """Which container a pod means: the one of this name, or the first."""
    if name is None:
        return 0
    return next((n for n, each in numbered(spec) if each.get("name") == name), NOWHERE)


def _integer(amount: object) -> str:
    """An amount as digits where it is a whole number: ``3k`` and 3000 are the same."""
    try:
        found = parse(str(amount))
    except ValueError:
        return str(amount)
    return str(found.numerator) if found.denominator == 1 else str(amount)
