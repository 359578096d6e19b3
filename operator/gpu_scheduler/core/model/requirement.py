"""One requirement on labels, of nodes or of pods, and whether it holds: as Kubernetes says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpu_scheduler.core.vocabulary import Word

_INTEGER = re.compile(r"[+-]?[0-9]+")  # as Kubernetes reads one: "1_000" is none


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a node selector term, or of a label selector.

    ``operator``: In, NotIn, Exists, DoesNotExist; of nodes also Gt, Lt.
    """

    key: Word = ""
    operator: Word = ""
    values: tuple[str, ...] = ()


def requirement_holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether the labels satisfy one requirement; NotIn and DoesNotExist accept a missing key."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
    return False


def _compares(requirement: Requirement, value: str | None) -> bool:
    if value is None or len(requirement.values) != 1:
        return False
    if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(requirement.values[0])):
        return False
    have, bound = int(value), int(requirement.values[0])
    return have > bound if requirement.operator == "Gt" else have < bound
