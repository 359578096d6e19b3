"""The containers of a pod that hold GPUs, as its node's agent must know them.

What a container holds is read from the annotations that the operator wrote; its cap is the one that
libgpucap obeys, so a live change of the annotation counts at once. Pure.
"""

from collections.abc import Iterable

import msgspec

from gpu_scheduler.api.allocation import Allocation
from gpu_scheduler.api.names import CAP_VOLUME, files_volume, memory_mib_annotation
from gpu_scheduler.api.numbering import FIRST_INIT
from gpu_scheduler.api.orders import OrderedContainer
from gpu_scheduler.kube.objects import Container, ContainerStatus, Pod

_MOST_EPHEMERAL = 16  # of a pod, in the orders; nobody may take them out again
_STATUS = msgspec.json.Decoder(ContainerStatus)


def container_ids(pod: Pod, *, init: bool = False) -> dict[str, str]:
    """The runtime's ids by name of the container; without those that were not created yet.

    ``init``: those of init containers as well.
    """
    status = pod.status
    return _ids((*status.container_statuses, *(status.init_container_statuses if init else ())))


def ephemeral_containers(pod: Pod) -> dict[str, str]:
    """Names by the runtime's id of the containers that somebody put into a pod that ran."""
    found = _ids(pod.status.ephemeral_container_statuses)
    return {bare: name for name, bare in list(found.items())[:_MOST_EPHEMERAL]}


def _ids(statuses: Iterable[msgspec.Raw]) -> dict[str, str]:
    found = {}
    for raw in statuses:
        try:
            seen = _STATUS.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        bare = seen.container_id.rpartition("://")[2]
        if bare:
            found[seen.name] = bare
    return found


def gpu_containers(pod: Pod, allocation: Allocation) -> tuple[OrderedContainer, ...]:
    """The containers that were given GPUs, in their order."""
    caps: dict[int, dict[str, int]] = {}
    for allocated in allocation.devices:
        live = pod.metadata.annotations.get(memory_mib_annotation(allocated.container), "")
        cap = int(live) if live.isascii() and live.isdigit() and len(live) < 19 else allocated.mib
        caps.setdefault(allocated.container, {})[allocated.device] = cap
    ids = container_ids(pod, init=max(caps, default=0) >= FIRST_INIT)
    return tuple(
        OrderedContainer(
            index=number,
            name=container.name,
            caps_mib=held,
            id=ids.get(container.name, ""),
            promised=any(m.name == CAP_VOLUME for m in container.volume_mounts),
        )
        for number, held in sorted(caps.items())
        if (container := _container(pod, number)) is not None
    )


def _container(pod: Pod, number: int) -> Container | None:
    """The container of a number in the ledger; None where the pod has no such one.

    They are known by the volume with our files: a webhook may put others in front of those of the
    template, and our own init container comes before its sidecars.
    """
    spec, files = pod.spec, files_volume(number)
    for container in spec.init_containers if number >= FIRST_INIT else spec.containers:
        if any(mount.name == files for mount in container.volume_mounts):
            return container
    return spec.containers[number] if 0 <= number < len(spec.containers) else None
