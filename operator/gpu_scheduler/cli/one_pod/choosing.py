"""Which pod of a job is meant: by trial, role and index, or else the first that runs.

Pure: of the pods of an index that was tried again only the newest counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.names import LABEL_ROLE, TRIAL
from gpu_scheduler.api.unstructured import Body

_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was said; None: nothing.

    Attributes:
        trial: number of a trial of a sweep.
        role: name of a role.
        index: number of the pod in its role, or in the job.
        ended: pods that have ended will do, too: they can be read, not entered.
    """

    trial: int | None = None
    role: str | None = None
    index: int | None = None
    ended: bool = False

    def __str__(self) -> str:
        said = {"trial": self.trial, "role": self.role, "index": self.index}
        return ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)


def choose(pods: Iterable[Body], wanted: Wanted) -> tuple[Body | None, list[Body]]:
    """The pod that is meant, and all that would have done; None: there is none.

    Args:
        pods: the oldest first.
        wanted: what was said of it.
    """
    newest = dict[tuple[str, int, str], Body]()
    for pod in pods:
        if _matches(pod, wanted):
            newest[_place(pod)] = pod
    known = [pod for _, pod in sorted(newest.items(), key=lambda item: item[0])]
    running = [pod for pod in known if runs(pod)]
    fit = running or ([pod for pod in known if has_started(pod)] if wanted.ended else [])
    return (fit[0] if fit else None), fit


def runs(pod: Body) -> bool:
    """Whether somebody can enter it."""
    return phase_of(pod) == "Running" and not pod["metadata"].get("deletionTimestamp")


def has_started(pod: Body) -> bool:
    """Whether it has printed something, or could have."""
    return phase_of(pod) in ("Running", "Succeeded", "Failed")


def phase_of(pod: Body) -> str:
    """Its phase as the kubelet says."""
    return str((pod.get("status") or {}).get("phase") or "")


def scheduled(pod: Body) -> Mapping[str, Any]:
    """Its condition PodScheduled, by which it has a place or waits; empty: there is none yet."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "PodScheduled"), {})


def trial_of(pod: Body) -> int | None:
    """Which trial of a sweep it runs."""
    return _number(_notes(pod).get(TRIAL))


def index_of(pod: Body) -> int | None:
    """Its number in its Job."""
    labels = pod["metadata"].get("labels") or {}
    return _number(labels.get(_INDEX, _notes(pod).get(_INDEX)))


def role_of(pod: Body) -> str:
    """Its role; empty where the job has none."""
    return str((pod["metadata"].get("labels") or {}).get(LABEL_ROLE) or "")


def _matches(pod: Body, wanted: Wanted) -> bool:
    return (
        wanted.trial in (None, trial_of(pod))
        and wanted.role in (None, role_of(pod))
        and wanted.index in (None, index_of(pod))
    )


def _place(pod: Body) -> tuple[str, int, str]:
    """Of pods with the same one the newest counts."""
    trial, index = trial_of(pod), index_of(pod)
    number = index if trial is None else trial
    if number is None:  # of no Job that counts: each for itself
        return role_of(pod), -1, str(pod["metadata"]["name"])
    return role_of(pod), number, ""


def _notes(pod: Body) -> Mapping[str, Any]:
    return pod["metadata"].get("annotations") or {}


def _number(text: object) -> int | None:
    plain = isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10
    return int(str(text)) if plain else None
