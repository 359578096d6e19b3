"""The containers of a pod that hold GPUs, as its node's agent must know them.

What a container holds is read from the annotations that the operator wrote; its cap is the one that
libgpucap obeys, so a live change of the annotation counts at once. Pure; called by
``runtime.node_orders`` for every event of a pod with an allocation.
"""

import msgspec

from gpu_scheduler.api.allocation import Allocation
from gpu_scheduler.api.names import CAP_VOLUME, memory_mib_annotation
from gpu_scheduler.api.orders import OrderedContainer
from gpu_scheduler.kube.objects import ContainerStatus, Pod

_STATUS = msgspec.json.Decoder(ContainerStatus)


def container_ids(pod: Pod) -> dict[str, str]:
    """The runtime's ids by name of the container; without those that were not created yet."""
    found = {}
    for raw in pod.status.container_statuses:
        try:
            status = _STATUS.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        bare = status.container_id.rpartition("://")[2]
        if bare:
            found[status.name] = bare
    return found


def gpu_containers(pod: Pod, allocation: Allocation) -> tuple[OrderedContainer, ...]:
    """The containers that were given GPUs, in their order."""
    caps: dict[int, dict[str, int]] = {}
    for grant in allocation.grants:
        live = pod.metadata.annotations.get(memory_mib_annotation(grant.container), "")
        cap = int(live) if live.isascii() and live.isdigit() and len(live) < 19 else grant.mib
        caps.setdefault(grant.container, {})[grant.device] = cap
    ids = container_ids(pod)
    containers = pod.spec.containers
    return tuple(
        OrderedContainer(
            index=index,
            name=containers[index].name,
            caps_mib=held,
            id=ids.get(containers[index].name, ""),
            promised=any(m.name == CAP_VOLUME for m in containers[index].volume_mounts),
        )
        for index, held in sorted(caps.items())
        if 0 <= index < len(containers)
    )
