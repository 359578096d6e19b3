"""What a project may still take: inside its quota, and above it.

Charged is the milli-GPU of pods that have not ended plus what this cycle placed. Inside quota:
charged + request <= quota. Above it only with a weight above 0. A limit holds always.
"""

from gpu_scheduler.core.model.request import Project

UNBOUNDED = 1 << 62  # milli-GPU; stands for "no limit"


def limit_milli(project: Project) -> int:
    """The hard cap, ``UNBOUNDED`` when there is none."""
    return UNBOUNDED if project.limit_milli is None else project.limit_milli


def ceiling_milli(project: Project) -> int:
    """The most that the project can ever hold."""
    if project.weight > 0:
        return limit_milli(project)
    return min(project.quota_milli, limit_milli(project))


def nominal_milli(project: Project) -> int:
    """The most that the project can hold inside its quota."""
    return min(project.quota_milli, limit_milli(project))
