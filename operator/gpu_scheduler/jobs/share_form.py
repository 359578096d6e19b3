"""Whether a pod that asks by itself has all that makes it ours, and nothing that undoes it.

Where no policy is served, and whoever wrote the pod, it gets no device before this is so: variables
from their annotations and once, files, the library from our image, and ``void`` for everybody else.
What others add is theirs, as long as it touches none of that. Compared with what ``equip`` makes.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from gpu_scheduler.api.names import (
    ASK_ISOLATION,
    CAP_CONTAINER,
    CAP_PREFIX,
    CAP_VOLUME,
    VISIBLE_DEVICES,
    VOID,
    devices_annotation,
    files_volume,
    memory_mib_annotation,
)
from gpu_scheduler.api.pod_env import from_annotation
from gpu_scheduler.api.share_keys import OWN
from gpu_scheduler.api.share_request import ShareRequest
from gpu_scheduler.jobs import cap, volume
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.conflicts import PLUGIN_RESOURCES, FieldPath, mount_problems
from gpu_scheduler.jobs.env import MEMORY_LIMIT_MIB
from gpu_scheduler.jobs.gate import gated
from gpu_scheduler.jobs.volume import placed_at
from gpu_scheduler.kube.objects import Container, EnvVar, Pod, Volume, VolumeMount
from gpu_scheduler.limits.bounded import remembered

_FIRST = "spec.initContainers"
_NONE = EnvVar(VISIBLE_DEVICES, VOID)
_NOT_OURS = f"the init container {CAP_CONTAINER} runs as it was made: nobody changes it"
# Fields of it that are as they were made, whoever else changes pods.
_AS_OURS = {
    "command": "command",
    "args": "args",
    "working_dir": "workingDir",
    "restart_policy": "restartPolicy",
    "env_from": "envFrom",
    "volume_devices": "volumeDevices",
}
_TERMINATION_LOG = "/dev/termination-log"  # the API server's default
_TOKENS = ("/var/run/secrets/", "/run/secrets/")
# Variables that a loader, a C library, NVIDIA's runtime or our library goes by.
_OBEYED = re.compile(r"LD_|GLIBC_|GCONV_|LOCPATH|NLSPATH|MALLOC_|NVIDIA_|" + CAP_PREFIX)
_WHERE = FieldPath("spec", f"the annotation {ASK_ISOLATION}")
_WAY_OUT = (
    "; delete the pod, so that its controller makes it anew, or make it with kubectl gpu render"
)


def lacks(pod: Pod, request: ShareRequest, image: CapImage | None) -> str:
    """What a pod lacks, as a sentence; empty = nothing. ``image``: brings libgpucap; None: no."""
    found = next(_missing(pod, request, image), "")
    return f"{found}{_WAY_OUT}" if found else ""


def _missing(pod: Pod, request: ShareRequest, image: CapImage | None) -> Iterator[str]:
    slots = {each.container: slot for slot, each in enumerate(request.devices)}
    yield from _volumes(pod, slots, image)
    seen = set[int]()
    delivered = False
    for field, container in _containers(pod):
        yield from _given_elsewhere(field, container, gated(pod))
        if image is not None and container.name == CAP_CONTAINER and _FIRST in field:
            delivered = True
            yield from _of_installer(field, container, image)
            continue
        told = [entry for entry in container.env if entry.name == VISIBLE_DEVICES]
        if len(told) != 1:
            yield f"{field}.env: {VISIBLE_DEVICES} must stand there once: void without a GPU"
            continue
        if any(entry.name.startswith(CAP_PREFIX) for entry in container.env):
            yield f"{field}.env: variables that begin with {CAP_PREFIX} are the scheduler's"
        number = _number(told[0], slots)
        if number is None:
            if told[0] != _NONE:
                yield f"{field}.env: {VISIBLE_DEVICES} must be void in a container without a GPU"
            for mount in container.volume_mounts:
                if mount.name == CAP_VOLUME or mount.name in map(files_volume, slots):
                    yield f"{field}.volumeMounts: {mount.name} is for containers with a GPU"
            continue
        if number in seen:
            yield f"{field}.env: another container has these GPUs already"
        seen.add(number)
        yield from _gpu_container(field, container, number, slots[number], image)
        if image is not None and not delivered:
            yield f"{_FIRST}: {CAP_CONTAINER} with image {image.name} is missing before {field}"
    if missing := slots.keys() - seen:
        yield f"spec.containers: none has the GPUs of number {min(missing)} in its env"


def _gpu_container(
    field: str, container: Container, number: int, slot: int, image: CapImage | None
) -> Iterator[str]:
    limit = _variable(MEMORY_LIMIT_MIB, memory_mib_annotation(number))
    if [entry for entry in container.env if entry.name == MEMORY_LIMIT_MIB] != [limit]:
        yield f"{field}.env: {MEMORY_LIMIT_MIB} must stand there once, from its annotation"
    rest = list(container.volume_mounts)
    for ours in _mounts(number, slot, image is not None):
        if ours not in rest:
            yield f"{field}.volumeMounts: {ours.mount_path} is missing"
        else:
            rest.remove(ours)
    if other := next((m for m in rest if m.name in (CAP_VOLUME, files_volume(number))), None):
        yield f"{field}.volumeMounts: {other.name} is mounted a second time"
    theirs = {
        "volumeMounts": [_json(mount) for mount in rest],
        "volumeDevices": [{"devicePath": each.device_path} for each in container.volume_devices],
        "terminationMessagePath": container.termination_message_path,
    }
    yield from map(str, mount_problems(field, theirs, image is not None, _WHERE))


def _volumes(pod: Pod, slots: Mapping[int, int], image: CapImage | None) -> Iterator[str]:
    for ours in _wanted_volumes(tuple(slots), image is not None):
        if ours not in pod.spec.volumes:
            yield f"spec.volumes: {ours.name} is missing, or is another one"


# Parts that equip makes, typed as those of pods: the same of every pod, looked at in each event.
@lru_cache(maxsize=64)
def _wanted_volumes(numbers: tuple[int, ...], capped: bool) -> tuple[Volume, ...]:
    wanted = [*map(volume.downward_volume, numbers), *((cap.volume(),) if capped else ())]
    return tuple(msgspec.convert(each, Volume) for each in wanted)


@lru_cache(maxsize=64)
def _mounts(number: int, slot: int, capped: bool) -> tuple[VolumeMount, ...]:
    wanted = (volume.mount(number), *(cap.mounts(slot) if capped else ()))
    return tuple(msgspec.convert(each, VolumeMount) for each in wanted)


@remembered(64, chars=512)
def _variable(name: str, annotation: str) -> EnvVar:
    return msgspec.convert(from_annotation(name, annotation), EnvVar)


@lru_cache(maxsize=4)
def _installer(image: CapImage) -> Container:
    return msgspec.convert(cap.init_container(image, {}, {}), Container)


def _containers(pod: Pod) -> Iterator[tuple[str, Container]]:
    for kind, containers in (
        (_FIRST, pod.spec.init_containers),
        ("spec.containers", pod.spec.containers),
    ):
        for index, container in enumerate(containers):
            yield f"{kind}[{index}]", container


def _of_installer(field: str, container: Container, image: CapImage) -> Iterator[str]:
    """What of it is not ours; of any version, since a pod may wait while another is installed.

    What nodes and namespaces choose is theirs: resources, the user, when the image is pulled. So
    are tokens that others mount, and variables, which a static program does not obey; not those
    that its next version might, nor names that nobody here can see.
    """
    ours = _installer(image)
    if _repository(container.image) != _repository(image.name):
        yield f"{field}.image: must be {image.name}, which brings the library"
    for attribute, name in _AS_OURS.items():
        if getattr(container, attribute) != getattr(ours, attribute):
            yield f"{field}.{name}: {_NOT_OURS}"
    if container.termination_message_path not in ("", _TERMINATION_LOG):
        yield f"{field}.terminationMessagePath: {_NOT_OURS}"
    theirs = [mount for mount in container.volume_mounts if mount not in ours.volume_mounts]
    if len(container.volume_mounts) - len(theirs) != len(ours.volume_mounts) or not all(
        _is_token(mount) for mount in theirs
    ):
        yield f"{field}.volumeMounts: {_NOT_OURS}"
    told = [entry for entry in container.env if entry.name == VISIBLE_DEVICES]
    others = (entry.name for entry in container.env if entry != _NONE)
    if told != [_NONE] or any(map(_OBEYED.match, others)):
        yield f"{field}.env: {_NOT_OURS}"


def _is_token(mount: VolumeMount) -> bool:
    """Whether a mount is where tokens of accounts and clouds go, beside all that is run."""
    return mount.name != CAP_VOLUME and placed_at(mount.mount_path).startswith(_TOKENS)


def _given_elsewhere(field: str, container: Container, behind_gate: bool) -> Iterator[str]:
    """What a container asks of nodes that is not ours to give, or that none of them has."""
    for key in sorted(container.resources.limits.keys() | container.resources.requests.keys()):
        if PLUGIN_RESOURCES.fullmatch(key):
            yield f"{field}.resources: {key} would be handed out a second time by the device plugin"
        ends = _FIRST in field and container.restart_policy != "Always"
        if key in OWN.limits and (behind_gate or ends):
            yield f"{field}.resources: no node has {key}; it is taken out once it was read"


def _repository(image: str) -> str:
    """An image's name without tag and digest."""
    head, slash, last = image.partition("@")[0].rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"


def _number(told: EnvVar, slots: Mapping[int, int]) -> int | None:
    """Which container of the ledger this is, by the annotation that its devices come from."""
    sources = {_variable(VISIBLE_DEVICES, devices_annotation(number)): number for number in slots}
    return sources.get(told)


def _json(mount: VolumeMount) -> dict[str, Any]:
    return {"name": mount.name, "mountPath": mount.mount_path, "readOnly": mount.read_only}
