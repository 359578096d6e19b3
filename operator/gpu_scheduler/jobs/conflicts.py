"""Fields of a pod template that a GPUJob cannot carry, each with the way out.

Rendering would have to override or drop them, or they would place the pod behind the planner's
back. What the API server refuses by itself (a dry run of the Job) is not repeated here.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.checkpoint import Checkpoint
from gpu_scheduler.api.names import (
    CAP_CONTAINER,
    CAP_FOLDER,
    CAP_PRELOAD_PATH,
    CAP_VOLUME,
    MOUNT_PATH,
    SCHEDULER_NAME,
    TOKEN_VOLUME,
    files_volume,
)
from gpu_scheduler.api.numbering import numbered, with_fields
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.validate import env_problems
from gpu_scheduler.jobs import report_token
from gpu_scheduler.jobs.checkpoint import problems as checkpoint_problems
from gpu_scheduler.jobs.malformed import malformed
from gpu_scheduler.jobs.scheduling import DEFAULT_SCHEDULER
from gpu_scheduler.jobs.volume import mounted_at, placed_at

MAX_GRACE_SECONDS = 3600
PLUGIN_RESOURCES = re.compile(r"nvidia\.com/(?:gpu(?:\..+)?|mig-.+)")
"""What NVIDIA's device plugin hands out; not rdma and the like."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """How a user is told where something stands.

    Attributes:
        spec: path of the pod spec.
        isolation: what says which isolation is wanted.
        ask: how GPUs are asked for.
    """

    spec: str = "spec.template.spec"
    isolation: str = "spec.isolation"
    ask: str = "spec.gpu, spec.gpuMemory or spec.containers"


OF_GPUJOBS = FieldPath()


def problems(
    template_pod_spec: Mapping[str, Any],
    gpu_containers: Collection[int],
    *,
    interposer: bool,
    checkpoint: Checkpoint | None = None,
    reports: bool = False,
    where: FieldPath = OF_GPUJOBS,
) -> tuple[Problem, ...]:
    """What stands in the way of rendering this template.

    Args:
        template_pod_spec: ``spec`` of the pod template, as JSON.
        gpu_containers: numbers of the containers that get GPUs.
        interposer: libgpucap is put into them.
        checkpoint: of the GPUJob.
        reports: its pods get a token for reports.
        where: the words for whoever wrote it.
    """
    if found := tuple(malformed(where.spec, template_pod_spec)):
        return found
    reserved = {files_volume(index) for index in gpu_containers}
    reserved |= {CAP_VOLUME} if interposer else set()
    reserved |= {TOKEN_VOLUME} if reports else set()
    found = tuple(_problems(template_pod_spec, gpu_containers, interposer, where, reserved))
    if reports:
        found += tuple(report_token.problems(template_pod_spec, where.spec))
    return found + tuple(checkpoint_problems(checkpoint, template_pod_spec) if checkpoint else ())


def _problems(
    spec: Mapping[str, Any],
    gpu_containers: Collection[int],
    interposer: bool,
    where: FieldPath,
    reserved: Collection[str],
) -> Iterator[Problem]:
    scheduler = spec.get("schedulerName")
    if scheduler and scheduler not in (SCHEDULER_NAME, DEFAULT_SCHEDULER):
        yield Problem(
            f"{where.spec}.schedulerName",
            f"{scheduler} cannot place pods with shares of GPUs; remove the field",
        )
    if spec.get("nodeName"):
        yield Problem(
            f"{where.spec}.nodeName",
            "the scheduler chooses the node; use nodeSelector or node affinity to narrow it",
        )
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int | float) and grace > MAX_GRACE_SECONDS:
        yield Problem(
            f"{where.spec}.terminationGracePeriodSeconds",
            f"is {grace:g}; at most {MAX_GRACE_SECONDS} are possible: so long others wait for GPUs "
            "that the pod has to give back",
        )
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("name") in reserved:
            yield Problem(
                f"{where.spec}.volumes[{index}].name",
                f"{volume['name']} is reserved; rename the volume",
            )
    numbers = {id(container): number for number, container in numbered(spec)}
    for field, container in with_fields(spec, where.spec):
        if interposer and container.get("name") == CAP_CONTAINER:
            yield Problem(f"{field}.name", f"{CAP_CONTAINER} is reserved; rename the container")
        yield from _container_problems(field, container, where)
        for mount, name in enumerate(_names(container.get("volumeMounts"))):
            if name in reserved:
                yield Problem(
                    f"{field}.volumeMounts[{mount}].name", f"{name} is reserved; mount another"
                )
        if numbers.get(id(container)) in gpu_containers:
            yield from mount_problems(field, container, interposer, where)


def _names(entries: Iterable[Mapping[str, Any]] | None) -> list[object]:
    return [entry.get("name") for entry in entries or ()]


def _container_problems(
    field: str, container: Mapping[str, Any], where: FieldPath
) -> Iterator[Problem]:
    yield from env_problems(f"{field}.env", _names(container.get("env")))
    resources = container.get("resources") or {}
    names = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    for name in sorted(name for name in names if PLUGIN_RESOURCES.fullmatch(name)):
        yield Problem(
            f"{field}.resources",
            f"{name} would be handed out a second time by the device plugin; "
            f"ask for GPUs with {where.ask}",
        )


def mount_problems(
    field: str, container: Mapping[str, Any], interposer: bool, where: FieldPath
) -> Iterator[Problem]:
    """Mounts of a container with GPUs that hide what is put there."""
    mounts = _listed(container.get("volumeMounts"))
    read_only = {mounted_at(mount) for mount in mounts if mount.get("readOnly")}
    for here, written in written_paths(field, container):
        path = placed_at(written)
        if path == MOUNT_PATH or path.startswith(f"{MOUNT_PATH}/"):
            yield Problem(
                here, f"{MOUNT_PATH} is reserved for the GPU limits; mount the volume elsewhere"
            )
        elif interposer and path == CAP_PRELOAD_PATH:
            yield Problem(
                here,
                f"{CAP_PRELOAD_PATH} is how the library that keeps the memory cap is loaded; "
                f"remove the mount, or set {where.isolation}: framework and do without that "
                "library",
            )
        elif interposer and (path == CAP_FOLDER or path.startswith(f"{CAP_FOLDER}/")):
            yield Problem(
                here,
                f"{CAP_FOLDER} is reserved for the library that keeps the memory cap; mount the "
                f"volume elsewhere, or set {where.isolation}: framework",
            )
        elif interposer and path == posixpath.dirname(CAP_FOLDER) and path in read_only:
            yield Problem(
                here,
                f"{CAP_FOLDER} could not be made in a read-only {path}; mount the volume without "
                f"readOnly or elsewhere, or set {where.isolation}: framework",
            )


def written_paths(field: str, container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where things are put into a container, each with its field, as somebody wrote it.

    The kubelet mounts the file for the termination message behind all volumes, and over them.
    """
    for kind, key in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
        for index, entry in enumerate(_listed(container.get(kind))):
            yield f"{field}.{kind}[{index}].{key}", str(entry.get(key) or "")
    yield f"{field}.terminationMessagePath", str(container.get("terminationMessagePath") or "")


def _listed(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list whose form nobody has looked at."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
