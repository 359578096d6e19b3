"""The pods of this node, as far as GPUs are concerned: who was granted what.

Fed by a reflector that sees this node's pods only. What a container holds is read from the
annotations that the operator wrote; its cap is the one that libgpucap obeys, so a live change of
the annotation counts at once. Read by the agent after each sample.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from gpu_scheduler.agent.cgroup import container_id
from gpu_scheduler.api import allocation
from gpu_scheduler.api.names import ALLOCATION, CAP_VOLUME, LABEL_JOB, memory_mib_annotation
from gpu_scheduler.kube.objects import Meta

WHOLE_GPU = "nvidia.com/gpu"


class _Struct(msgspec.Struct, rename="camel", gc=False, frozen=True):
    pass


class _Mount(_Struct, frozen=True):
    name: str = ""


class _Limits(_Struct, frozen=True):
    limits: dict[str, str | int] = {}


class _Container(_Struct, frozen=True):
    name: str = ""
    resources: _Limits = _Limits()
    volume_mounts: tuple[_Mount, ...] = ()


class _Spec(_Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _ContainerStatus(_Struct, frozen=True):
    name: str = ""
    container_id: str = msgspec.field(name="containerID", default="")


class _Status(_Struct, frozen=True):
    phase: str = ""
    container_statuses: tuple[_ContainerStatus, ...] = ()


class AgentPod(_Struct, frozen=True):
    """A pod on the wire."""

    metadata: Meta = Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class GpuContainer:
    """A container of ours with GPUs."""

    namespace: str
    pod: str
    uid: str
    job: str
    index: int
    name: str
    container_id: str  # empty until it was created
    caps_mib: dict[
        str, int
    ]  # by device, as the annotations name it: UUID, or index before an agent
    promised: bool  # libgpucap is mounted into it
    ended: bool


@dataclass(frozen=True, slots=True)
class OtherPod:
    """A pod of somebody else."""

    namespace: str
    pod: str
    whole_gpus: bool  # it asked the device plugin for nvidia.com/gpu


class Pods:
    """The sink of the reflector; ``news`` is called after a change of our own pods."""

    def __init__(self, news: Callable[[], None] = lambda: None) -> None:
        self._news = news
        self.containers: dict[str, tuple[GpuContainer, ...]] = {}
        """GPU containers of ours, by the pod's uid."""
        self.others: dict[str, OtherPod] = {}

    def changed(self, obj: AgentPod) -> None:
        """See ``Sink``."""
        uid = obj.metadata.uid
        ours = gpu_containers(obj)
        if ours:
            self.containers[uid] = ours
            self.others.pop(uid, None)
            self._news()
            return
        self.containers.pop(uid, None)
        whole = any(WHOLE_GPU in c.resources.limits for c in obj.spec.containers)
        self.others[uid] = OtherPod(obj.metadata.namespace, obj.metadata.name, whole)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``Sink``."""
        self.containers.pop(uid, None)
        self.others.pop(uid, None)

    def replaced(self) -> None:
        """See ``Sink``."""


def gpu_containers(pod: AgentPod) -> tuple[GpuContainer, ...]:
    """The containers that the operator gave GPUs; none for a pod without a readable allocation."""
    meta = pod.metadata
    text = meta.annotations.get(ALLOCATION)
    if not text:
        return ()
    try:
        grants = allocation.parse(text).grants
    except allocation.BadAllocationError:
        return ()
    ids = {s.name: container_id(s.container_id) for s in pod.status.container_statuses}
    caps: dict[int, dict[str, int]] = {}
    for grant in grants:
        live = meta.annotations.get(memory_mib_annotation(grant.container), "")
        cap = int(live) if live.isascii() and live.isdigit() else grant.mib
        caps.setdefault(grant.container, {})[grant.device] = cap
    return tuple(
        GpuContainer(
            namespace=meta.namespace,
            pod=meta.name,
            uid=meta.uid,
            job=meta.labels.get(LABEL_JOB, ""),
            index=index,
            name=pod.spec.containers[index].name,
            container_id=ids.get(pod.spec.containers[index].name, ""),
            caps_mib=held,
            promised=any(m.name == CAP_VOLUME for m in pod.spec.containers[index].volume_mounts),
            ended=pod.status.phase in ("Succeeded", "Failed"),
        )
        for index, held in sorted(caps.items())
        if index < len(pod.spec.containers)
    )
