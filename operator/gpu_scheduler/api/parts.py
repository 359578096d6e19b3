"""What the pods of a GPUJob are: one part for each role, or a single one for a job without roles.

A part is a job of its own to whoever renders or places pods: its ``spec`` has no roles. Ranks count
the pods over all roles in the order of the spec.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.container import EnvironmentVariable
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.roles import Role

_SHORT_FORM = ("image_pull_policy", "command", "args", "env", "working_dir", "resources")


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods of one Job. ``role`` is empty in a job without roles; ``spec`` is that of its pods."""

    role: str
    spec: GPUJobSpec
    pods: int
    first_rank: int = 0

    def job_name(self, gpujob: str) -> str:
        """Name of the batch/v1 Job."""
        return job_name(gpujob, self.role)


def job_name(gpujob: str, role: str) -> str:
    """Name of the batch/v1 Job of a role; an empty role is a job without roles."""
    return f"{gpujob}-{role}" if role else gpujob


def parts(spec: GPUJobSpec) -> tuple[PodSet, ...]:
    """The parts in the order of their ranks."""
    if spec.roles is None:
        return (PodSet("", spec, spec.total_pods),)
    found, rank = [], 0
    for role in spec.roles:
        found.append(PodSet(role.name, role_spec(spec, role), role.replicas, rank))
        rank += role.replicas
    return tuple(found)


def is_gang(spec: GPUJobSpec) -> bool:
    """Whether the pods start together or not at all."""
    if spec.gang is not None:
        return spec.gang
    return spec.roles is not None and spec.total_pods > 1


def is_distributed(spec: GPUJobSpec) -> bool:
    """Whether the pods know of each other: they have host names and are told all of them."""
    return spec.roles is not None or bool(spec.gang)


def hosts(gpujob: str, spec: GPUJobSpec) -> Iterator[tuple[str, str]]:
    """Role and host name of each pod in the order of their ranks."""
    sizes = [("", spec.total_pods)]
    if spec.roles is not None:
        sizes = [(role.name, role.replicas) for role in spec.roles]
    for role, pods in sizes:
        for index in range(pods):
            yield role, f"{job_name(gpujob, role)}-{index}.{gpujob}"


def role_spec(spec: GPUJobSpec, role: Role) -> GPUJobSpec:
    """The spec of a job that consists of this role alone."""
    no_gpu = role.gpu is None and role.gpu_memory is None
    changed: dict[str, Any] = {
        "roles": None,
        "gpu": role.gpu,
        "gpu_memory": role.gpu_memory,
        "gpu_devices": role.gpu_devices,
        "gpu_models": role.gpu_models if role.gpu_models is not None else spec.gpu_models,
        "containers": [] if no_gpu else None,
        "parallelism": role.replicas,
        "completions": role.replicas,
    }
    return spec.model_copy(update=changed | _source(spec, role))


def _source(spec: GPUJobSpec, role: Role) -> dict[str, Any]:
    """Image or template, and what goes with the image."""
    if role.template is not None:
        return dict.fromkeys(("image", *_SHORT_FORM)) | {"template": role.template}
    own = {
        name: value
        for name in ("image", *_SHORT_FORM)
        if (value := getattr(role, name)) is not None
    }
    if spec.template is None:
        if role.env is not None:
            own["env"] = _merged(spec.env or [], role.env)
        return own
    return {"template": _overridden(spec.template, role, own)} if own else {}


def _merged(
    base: list[EnvironmentVariable], own: list[EnvironmentVariable]
) -> list[EnvironmentVariable]:
    replaced = {entry.name for entry in own}
    return [entry for entry in base if entry.name not in replaced] + own


def _overridden(template: dict[str, Any], role: Role, own: dict[str, Any]) -> dict[str, Any]:
    """The job's template with what the role says in its first container."""
    made = deepcopy(template)
    first = made["spec"]["containers"][0]
    theirs = first.get("env")
    first |= role.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(own))
    if role.env is not None and isinstance(theirs, list):
        replaced = [entry.name for entry in role.env]  # theirs may be anything, unhashable too
        kept = [e for e in theirs if not (isinstance(e, dict) and e.get("name") in replaced)]
        first["env"] = [*kept, *first["env"]]
    return made
