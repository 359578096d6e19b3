"""Which pods may be asked to give way, and in which order.

Training may always be stopped. Of a project's interactive pods only what they hold together above
its quota may be taken; which of them go is a matter of order and fit. Pods that leave already, or
cannot be evicted at present, are no victims. Called by ``reclaim``.
"""

from collections.abc import Iterable
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


def preemptible(pods: Iterable[Occupant]) -> list[Occupant]:
    """Those of a project's pods that may be asked to give way."""
    return [pod for pod in pods if pod.grants and not pod.leaving and not pod.spared]


def interactive_spare_milli(project: Project, pods: Iterable[Occupant]) -> int:
    """What may be taken from a project's interactive pods; not negative."""
    held = sum(pod.milli for pod in pods if pod.interactive and not pod.leaving)
    return max(0, held - project.quota_milli)
