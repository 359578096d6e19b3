"""Which device is held by whom, from GPUNodes, Nodes and pods as the API server has them.

Pure: bodies in, values out; odd bodies count for nothing and never raise. The same rules as in the
operator's state: a GPUNode's devices go before its node's labels, and what a pod holds stands in
its allocation.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_scheduler.api.names import LABEL_JOB, LABEL_PROJECT
from gpu_scheduler.api.unstructured import Body, labels_of, listed, name_of, text

if TYPE_CHECKING:
    from gpu_scheduler.state.nodes.agents import Reports
    from gpu_scheduler.state.nodes.devices import NodeDevice

WHOLE_MILLI = 1000


@dataclass(frozen=True, slots=True)
class HeldFraction:
    """What one pod holds of one device.

    Attributes:
        namespace: of the pod.
        name: what it is called: its GPUJob, or else the workload that made it, or itself.
        pod: the pod.
        project: that is charged; empty: not known.
        milli: milli-GPU.
        mib: memory cap.
        percent: share of time in which its kernels run on its GPUs; None: not known.
        kind: of what it is called by, such as GPUJob or Deployment.
    """

    namespace: str
    name: str
    pod: str
    project: str
    milli: int
    mib: int
    percent: int | None = None
    kind: str = ""

    @property
    def used(self) -> int | None:
        """Milli-GPU that is used of it, at most all of it; None: not known."""
        return None if self.percent is None else min(self.milli, 10 * self.percent)

    @property
    def key(self) -> str:
        """``namespace/name`` of what holds it."""
        return f"{self.namespace}/{self.name}"


class DeviceReservation(NamedTuple):
    """What is held of a device for pods of a GPUJob that have no place, or do not exist."""

    namespace: str
    name: str
    milli: int
    held_as: str

    @property
    def key(self) -> str:
        """``namespace/name`` of the GPUJob."""
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class HeldDevice:
    """One GPU and its holders, those that hold most first."""

    node: str
    id: str
    index: int  # less than 0: not known
    model: str
    usable_mib: int
    trouble: str = ""  # why it takes no new pods
    shares: list[HeldFraction] = field(default_factory=list)
    reserved: list[DeviceReservation] = field(default_factory=list)

    @property
    def name(self) -> str:
        """As people say it: node and number, or what is known instead of a number."""
        return f"{self.node}/{self.id[:8] if self.index < 0 else self.index}"

    @property
    def milli(self) -> int:
        """Held by pods that can be seen; what MiB cost is rounded up, and may add up to more."""
        return min(WHOLE_MILLI, sum(share.milli for share in self.shares))

    @property
    def is_free(self) -> bool:
        """Whether all of it is there for a new pod."""
        return not (self.milli or self.reserved or self.trouble)

    @property
    def percent(self) -> int | None:
        """Share of time with kernels of its holders; None where that of one is not known."""
        known = [share.percent for share in self.shares]
        if not known or None in known:
            return None
        return min(100, sum(percent for percent in known if percent is not None))

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "node": self.node,
            "index": None if self.index < 0 else self.index,
            "device": self.id,
            "model": self.model,
            "usableMiB": self.usable_mib,
            "allocatedMilliGPU": self.milli,
            "utilizationPercent": self.percent,
            "trouble": self.trouble or None,
            "heldFor": [
                {
                    "namespace": room.namespace,
                    "name": room.name,
                    "milliGPU": room.milli,
                    "heldAs": room.held_as,
                }
                for room in self.reserved
            ],
            "holders": [
                {
                    "namespace": share.namespace,
                    "name": share.name,
                    "pod": share.pod,
                    "project": share.project or None,
                    "milliGPU": share.milli,
                    "memoryMiB": share.mib,
                    "utilizationPercent": share.percent,
                }
                for share in self.shares
            ],
        }


def held(
    nodes: Iterable[Body],
    gpunodes: Iterable[Body],
    pods: Iterable[Body],
    gpujobs: Iterable[Body] = (),
) -> list[HeldDevice]:
    """All devices by node and number, who holds them, and for whom they are kept.

    A device that a pod holds and no node has any more is there too, with what is known of it.
    """
    from gpu_scheduler.api.allocation import of_pod
    from gpu_scheduler.state.nodes.agents import reports_from_gpunode
    from gpu_scheduler.state.nodes.devices import from_gpunode, from_labels, ids_by_name

    by_node: dict[str, tuple[NodeDevice, ...]] = {}
    reports: dict[str, Reports] = {}
    for body in nodes:
        by_node[name_of(body)] = from_labels(labels_of(body))
    for body in gpunodes:
        status = body.get("status") or {}
        found = from_gpunode(status)
        if found or name_of(body) not in by_node:
            by_node[name_of(body)] = found
        reports[name_of(body)] = reports_from_gpunode(status)
    devices: dict[tuple[str, str], HeldDevice] = {}
    ids: dict[str, dict[str, str]] = {}
    for node in sorted(by_node, key=naturally):
        ids[node] = ids_by_name(by_node[node])
        for each in by_node[node]:
            devices[node, each.id] = HeldDevice(
                node, each.id, each.index, each.model, each.usable_mib, each.trouble
            )
    for pod in pods:
        allocation = of_pod(pod)
        if allocation is None or text(pod, "status", "phase") in ("Succeeded", "Failed"):
            continue
        said = reports.get(allocation.node, {}).get(text(pod, "metadata", "uid"), ())  # type: ignore[call-overload]
        percents = {report.container: report.compute_percent for report in said}
        for allocated in allocation.devices:
            device = ids.get(allocation.node, {}).get(allocated.device, allocated.device)
            there = devices.get((allocation.node, device))
            if there is None:
                there = devices[allocation.node, device] = HeldDevice(
                    allocation.node, device, _number(device), "", 0, "is not there any more"
                )
            there.shares.append(
                HeldFraction(
                    text(pod, "metadata", "namespace"),
                    holder_of(pod),
                    name_of(pod),
                    labels_of(pod).get(LABEL_PROJECT, ""),
                    allocated.milli,
                    allocated.mib,
                    percents.get(allocated.container),
                    kind_of_holder(pod),
                )
            )
    for job in gpujobs:
        for room in listed(job, "status", "heldRoom"):
            node = text(room, "node")
            device = ids.get(node, {}).get(text(room, "device"), text(room, "device"))
            milli = room.get("milliGPU")
            if (there := devices.get((node, device))) and isinstance(milli, int):
                namespace = text(job, "metadata", "namespace")
                there.reserved.append(
                    DeviceReservation(namespace, name_of(job), milli, text(room, "heldAs"))
                )
    for there in devices.values():
        there.shares.sort(key=lambda share: (-share.milli, naturally(share.key), share.pod))
    return list(devices.values())


def holder_of(pod: Body) -> str:
    """What a pod belongs to: its GPUJob, its workload, or nothing but itself."""
    labels = labels_of(pod)
    if job := labels.get(LABEL_JOB):
        return str(job)
    owners = listed(pod, "metadata", "ownerReferences")
    owner = next((o for o in owners if o.get("controller")), None)
    if owner is None:
        return name_of(pod)
    name = str(owner.get("name", ""))
    template = labels.get("pod-template-hash")
    return name.removesuffix(f"-{template}") if template else name


def kind_of_holder(pod: Body) -> str:
    """The kind of what ``holder_of`` names."""
    labels = labels_of(pod)
    if labels.get(LABEL_JOB):
        return "GPUJob"
    owners = listed(pod, "metadata", "ownerReferences")
    owner = next((o for o in owners if o.get("controller")), None)
    kind = "Pod" if owner is None else str(owner.get("kind", ""))
    return "Deployment" if kind == "ReplicaSet" and "pod-template-hash" in labels else kind


def short_model(model: str) -> str:
    """``A100`` of ``NVIDIA-A100-PCIE-40GB``."""
    words = [w for w in re.split(r"[-\s]+", model) if w.lower() not in _MAKERS]
    for number, word in enumerate(words):
        if any(letter.isdigit() for letter in word):
            return " ".join(words[: number + 1])
    return model


_MAKERS = ("nvidia", "geforce", "tesla", "quadro", "graphics")


def gpus(milli: int) -> str:
    """``0.50``, or all digits where two do not tell it."""
    return f"{milli / WHOLE_MILLI:.3f}" if milli % 10 else f"{milli / WHOLE_MILLI:.2f}"


def one_namespace(devices: Sequence[HeldDevice]) -> bool:
    """Whether names need no namespace before them."""
    named = {share.namespace for device in devices for share in device.shares}
    return len(named | {room.namespace for device in devices for room in device.reserved}) < 2


def naturally(name: str) -> list[tuple[int, int, str]]:
    """Order in which ``node-10`` comes after ``node-9``."""
    return [
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]


def _number(digits: str) -> int:
    return int(digits) if digits.isdecimal() else -1
