"""Where a node's devices come from: the agent's GPUNode, else GPU feature discovery's labels.

A GPUNode names devices by UUID and knows their usable memory, their health and who uses them past
us. Labels know only a count, a product and a size: devices are then named by their index and all
of the memory counts as usable. A pod placed before the agent came up is still found: the ledger
knows a device by its index too. Numbers that cannot be true are not believed: labels make their
node unusable, a GPUNode its device, and either says why.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.units import LEAST_MIB, MOST_DEVICES, MOST_MIB

# GPU feature discovery, https://github.com/NVIDIA/k8s-device-plugin (label names).
COUNT = "nvidia.com/gpu.count"
PRODUCT = "nvidia.com/gpu.product"
MEMORY = "nvidia.com/gpu.memory"
MAJOR = "nvidia.com/gpu.compute.major"
MINOR = "nvidia.com/gpu.compute.minor"
SLICES = "nvidia.com/gpu.slices.gi"  # of a MIG profile
_SLICE = "-MIG-"  # between product and profile
_SLICE_COUNT = re.compile(r"nvidia\.com/mig-[^/]+\.count")

_MOST_DIGITS = 10  # that a number is read for
_SIZES = f"{LEAST_MIB} to {MOST_MIB}"


@dataclass(frozen=True, slots=True)
class NodeDevice:
    """One GPU of a node.

    ``compute``: compute capability (major, minor). ``illness``: why it is not healthy.
    ``context_mib``: what a CUDA context takes; 0 = nobody knows.
    ``intruders``: processes on it that belong to no allocation, such as 'python (pid 42)'.
    """

    id: str
    index: int
    model: str
    usable_mib: int
    compute: tuple[int, int] = (0, 0)
    healthy: bool = True
    illness: str = ""
    intruders: tuple[str, ...] = ()
    context_mib: int = 0

    @property
    def trouble(self) -> str:
        """Why it takes no new pods, to follow its name in a sentence; empty when it takes them."""
        if not self.healthy:
            return f"is unhealthy: {self.illness}" if self.illness else "is unhealthy"
        if self.intruders:
            return f"has foreign processes: {wording.names(self.intruders)}"
        return ""


def _number(text: str, most: int) -> int | None:
    """A number of 0 to ``most``; None for anything else."""
    if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return number if number <= most else None


def from_labels(labels: Mapping[str, str]) -> tuple[NodeDevice, ...]:
    """Devices that the node's labels describe; none where ``not_listed`` says something."""
    count = _number(labels.get(COUNT, ""), MOST_DEVICES)
    if not count or not_listed(labels):
        return ()
    memory = _number(labels[MEMORY], MOST_MIB) or 0
    compute = (_number(labels.get(MAJOR, ""), 99) or 0, _number(labels.get(MINOR, ""), 99) or 0)
    return tuple(NodeDevice(str(i), i, labels[PRODUCT], memory, compute) for i in range(count))


def not_listed(labels: Mapping[str, str]) -> str:
    """Why GPUs that these labels speak of are not listed, to follow the node's name; or nothing.

    They cannot be true, one is missing, or they count slices of GPUs: which GPUs those are of, and
    what else runs there, labels do not say.
    """
    count = _number(text := labels.get(COUNT, "0"), MOST_DEVICES)
    if count is None:
        return f"has the label {COUNT}={text}; it must be a number of 0 to {MOST_DEVICES}"
    if sliced := _sliced(labels):
        return f"has MIG enabled (label {sliced}); only whole GPUs are shared: disable MIG there"
    for label in (PRODUCT, MEMORY) if count else ():
        if not labels.get(label):
            said = wording.gpu_count(count)
            return f"has {said} and no label {label}; what it would say, the agent reports as well"
    memory = _number(text := labels.get(MEMORY, str(LEAST_MIB)), MOST_MIB)
    if count and (memory is None or memory < LEAST_MIB):
        return f"has the label {MEMORY}={text}; it must be a number of MiB, {_SIZES}"
    return ""


def _sliced(labels: Mapping[str, str]) -> str:
    """The label by which some of its GPUs are cut into slices."""
    product = labels.get(PRODUCT, "")
    if _SLICE in product:
        return f"{PRODUCT}={product}"
    named = (key for key in sorted(labels) if key == SLICES or _SLICE_COUNT.fullmatch(key))
    return next((f"{key}={labels[key]}" for key in named if labels[key] != "0"), "")


def from_gpunode(status: Mapping[str, Any]) -> tuple[NodeDevice, ...]:
    """Devices that a GPUNode reports, in the order of their index; malformed ones are left out.

    So is one that was there before: the same GPU counted twice could be given away twice.
    """
    devices: dict[str, NodeDevice] = {}
    for entry in status.get("devices") or ():
        try:
            major, _, minor = str(entry.get("computeCapability", "0.0")).partition(".")
            usable_mib = int(entry["usableMiB"])
            possible = LEAST_MIB <= usable_mib <= MOST_MIB
            illness = str(entry.get("message") or "").rstrip(".")
            device = NodeDevice(
                id=_uuid(str(entry["uuid"])),
                index=int(entry["index"]),
                model=str(entry["model"]),
                usable_mib=usable_mib if possible else 0,  # 0: not known
                compute=(_number(major, 99) or 0, _number(minor, 99) or 0),
                healthy=bool(entry.get("healthy", False)) and possible,
                illness=illness or ("" if possible else f"its usableMiB is not one of {_SIZES}"),
                intruders=_intruders(entry.get("foreignProcesses")),
                context_mib=_number(str(entry.get("contextMiB", "")), MOST_MIB) or 0,
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            continue
        devices.setdefault(device.id, device)
    found = sorted(devices.values(), key=lambda d: d.index)
    if len(found) <= MOST_DEVICES:
        return tuple(found)
    why = f"its node is said to have {len(found)} GPUs; at most {MOST_DEVICES} are possible"
    return tuple(replace(d, healthy=False, illness=why) for d in found[:MOST_DEVICES])


def ids_by_name(devices: Iterable[NodeDevice]) -> dict[str, str]:
    """Ids of devices by all that an allocation may call them: the id, and the index as text.

    A pod that was placed by the node's labels names indexes, also once an agent names UUIDs. That
    stays true while it runs: the driver numbers its devices when it is loaded, and it cannot be
    loaded anew under a pod that uses one. A name that could mean two devices means none.
    """
    found: dict[str, set[str]] = {}
    for device in devices:
        for name in (device.id, str(device.index)):
            found.setdefault(name, set()).add(device.id)
    return {name: ids.pop() for name, ids in found.items() if len(ids) == 1}


def _uuid(text: str) -> str:
    """An identifier that is not empty and cannot be taken for an index."""
    if not text or text.isdecimal():
        raise ValueError(f"{text!r} is not a UUID")
    return text


def _intruders(found: object) -> tuple[str, ...]:
    """Without their memory, which changes all the time."""
    processes = found if isinstance(found, list) else ()
    return tuple(
        f"{process.get('name') or 'a process'} (pid {process.get('pid')})"
        for process in processes
        if isinstance(process, Mapping)
    )
