"""Which pods may be asked to give way, and in which order.

Training may always be stopped; an interactive pod only when it is above its project's quota,
counting the project's interactive pods alone, most important first. Pods that leave already, or
cannot be evicted at present, are no victims. Called by ``reclaim``.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpu_scheduler.core.occupants import Occupant
from gpu_scheduler.core.request import Project


class Rank(NamedTuple):
    """The smaller, the sooner a pod has to go."""

    project: int  # 0 = its project is the one most over its fair share
    priority: int
    interactive: bool
    age: float  # minus the start: the latest first
    uid: str


def rank(pod: Occupant, project: int = 0) -> Rank:
    """The order of victims: project, priority, training first, latest started."""
    return Rank(project, pod.priority, pod.interactive, -pod.since, pod.uid)


def preemptible(project: Project, pods: Iterable[Occupant]) -> list[Occupant]:
    """Those of a project's pods that may be asked to give way."""
    pods = [pod for pod in pods if not pod.leaving and pod.grants]
    above = _above_quota([pod for pod in pods if pod.interactive], project.quota_milli)
    return [pod for pod in (*(p for p in pods if not p.interactive), *above) if not pod.spared]


def _above_quota(pods: Sequence[Occupant], quota_milli: int) -> list[Occupant]:
    above, held = [], 0
    for pod in sorted(pods, key=lambda pod: (-pod.priority, pod.since, pod.uid)):
        held += pod.milli
        if held > quota_milli:
            above.append(pod)
    return above
