"""The ledger: which shares of which devices a pod holds, as one annotation.

Format: ``{"v":1,"n":"node-0","c":{"0":{"GPU-…":[500,20224]}}}``: the node (a gated pod has no
nodeName yet), and per container index, per device id, milli-GPU and MiB. A third number, 1, marks a
request in MiB: it takes these MiB of the device and none of its 1,000 milli. These annotations on
pods that have not ended are the only durable truth; the operator rebuilds its state from them and
from nothing else. Written by the binder, read by the state.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.api.names import (
    ALLOCATION,
    context_mib_annotation,
    devices_annotation,
    memory_bytes_annotation,
    memory_mib_annotation,
)
from gpu_scheduler.api.unstructured import Body, part
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB


class BadAllocationError(ValueError):
    """The annotation is not one that this operator wrote."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a pod holds, and on which node."""

    node: str
    devices: tuple[DeviceAllocation, ...]


def annotations(node: str, devices: Iterable[DeviceAllocation]) -> dict[str, str]:
    """All annotations that place a pod: the ledger, and devices and caps per container."""
    per_container: dict[int, list[DeviceAllocation]] = {}
    for allocated in devices:
        per_container.setdefault(allocated.container, []).append(allocated)
    ledger = {str(c): {g.device: _share(g) for g in held} for c, held in per_container.items()}
    result = {ALLOCATION: json.dumps({"v": 1, "n": node, "c": ledger}, separators=(",", ":"))}
    for container, held in per_container.items():
        cap = min(g.mib for g in held)
        result[devices_annotation(container)] = ",".join(g.device for g in held)
        result[memory_mib_annotation(container)] = str(cap)
        result[memory_bytes_annotation(container)] = str(cap * MIB)
    return result


def contexts(
    devices: Iterable[DeviceAllocation], contexts_mib: Mapping[str, int]
) -> dict[str, str]:
    """What tells each container what a CUDA context takes on its devices, for libgpucap.

    Args:
        devices: what the pod gets.
        contexts_mib: by device; a container with a device that is not in it is told nothing.
    """
    most: dict[int, int] = {}
    for allocated in devices:
        mib = contexts_mib.get(allocated.device, 0)
        known = most.get(allocated.container, mib)
        most[allocated.container] = max(mib, known) if mib and known else 0
    return {context_mib_annotation(c): str(mib) for c, mib in most.items() if mib}


def parse(text: str) -> Allocation:
    """The node and devices in an ``allocation`` annotation.

    Raises:
        BadAllocationError: not JSON, another version, or a share outside 1 to 1,000 milli.
    """
    try:
        ledger = json.loads(text)
        if ledger["v"] != 1:
            raise BadAllocationError(f"allocation of version {ledger['v']}, expected 1")
        node = str(ledger["n"])
        devices = tuple(
            DeviceAllocation(
                int(container), str(device), int(share[0]), int(share[1]), _by_memory(share)
            )
            for container, shares in ledger["c"].items()
            for device, share in shares.items()
        )
    except (
        *(ValueError, KeyError, TypeError, AttributeError, IndexError),
        *(OverflowError, RecursionError),
    ) as error:
        raise BadAllocationError(f"allocation annotation cannot be read: {error}") from error
    if any(not 0 < g.milli <= DEVICE_MILLI or g.mib < g.by_memory for g in devices):
        raise BadAllocationError("allocation has a share outside 1 to 1000 milli-GPU")
    return Allocation(node, devices)


def _share(allocated: DeviceAllocation) -> list[int]:
    return [allocated.milli, allocated.mib, *([1] if allocated.by_memory else ())]


def _by_memory(share: list[object]) -> bool:
    """Whether it is marked so; shares of older operators never are."""
    return len(share) > 2 and share[2] == 1


def of_pod(pod: Body) -> Allocation | None:
    """What the annotation of a pod says; None: it has none, or one that cannot be read."""
    said = part(pod, "metadata", "annotations").get(ALLOCATION)
    if said is None:
        return None
    try:
        return parse(said)
    except BadAllocationError:
        return None
