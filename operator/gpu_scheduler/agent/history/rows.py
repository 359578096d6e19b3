"""What a look at the devices says of each of them, of each share and of each container. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gpu_scheduler.agent.container_host import UNKNOWN, ContainerHostUse
from gpu_scheduler.agent.history.columns import RingType, Values
from gpu_scheduler.agent.history.slot import RingOwner
from gpu_scheduler.agent.sampler import DeviceSample, Sample
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB, milli_for_mib

_HELD_BACK = frozenset({"thermal", "power-brake"})  # a power cap that its owner set is none


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept of a look; empty: a gap.

    Attributes:
        values: by column.
        share: of the device, 0 to 1.
        peak_mib: most memory since the container began, as its library has noted; 0: not known.
    """

    values: Values
    share: float = 0.0
    peak_mib: int = 0


def of_devices(sample: Sample, uses: Collection[ContainerUse]) -> dict[RingOwner, Row]:
    """Of devices and of shares; of what could not be read, nothing: a gap."""
    rows: dict[RingOwner, Row] = {}
    shares: dict[str, dict[RingOwner, tuple[float, float | None]]] = {}  # and use, by device
    usable = {device.facts.uuid: _usable_mib(device) for device in sample.devices}
    for use in uses:
        for each in use.uses:
            size = usable.get(each.uuid)
            # The very share that was given: the inverse of ``units.cap_mib``.
            share = (
                min(milli_for_mib(each.cap_mib, size), DEVICE_MILLI) / DEVICE_MILLI if size else 0
            )
            if size:
                of = shares.setdefault(each.uuid, {})
                of[share_owner(use, each.uuid)] = (share, each.busy_ratio)
            if use.container.own.id:
                seen = {"busy": each.busy_ratio, "memoryMiB": each.used_mib}
                rows[share_owner(use, each.uuid)] = Row(seen if each.readable else {}, share)
    for owner, row in rows.items():
        if row.values:
            above = _above(owner, shares.get(owner.device, {}))
            rows[owner] = Row({**row.values, "neighboursAbove": above}, row.share)
    for device in sample.devices:
        on_it = shares.get(device.facts.uuid, {}).values()
        row = Row(_of_device(device, on_it) if device.readable else {})
        rows[RingOwner(type=RingType.DEVICE, device=device.facts.uuid)] = row
    return rows


def of_containers(
    uses: Collection[ContainerUse], hosts: Mapping[str, ContainerHostUse]
) -> dict[RingOwner, Row]:
    """Of containers, by what they use of their node (``hosts``, by container id)."""
    return {
        container_owner(use): Row(_of_host(hosts.get(use.container.own.id, UNKNOWN)))
        for use in uses
        if use.container.own.id
    }


def share_owner(use: ContainerUse, device: str) -> RingOwner:
    """Whose the ring of a container's share of a device is."""
    return _owner(RingType.SHARE, use, device)


def container_owner(use: ContainerUse) -> RingOwner:
    """Whose the ring of a container is."""
    return _owner(RingType.CONTAINER, use)


def device_mib(device: DeviceSample) -> float | None:
    """Memory of a device, MiB; None: not known."""
    return None if device.total_bytes is None else device.total_bytes / MIB


def _usable_mib(device: DeviceSample) -> int | None:
    """Of the memory of a device what can be given away, as GPUNode says it; None: not known."""
    memory = device.memory or device.facts.memory
    if memory is None:
        return None
    return max(0, memory.total_bytes - memory.reserved_bytes) // MIB


def _above(owner: RingOwner, on_it: Mapping[RingOwner, tuple[float, float | None]]) -> float | None:
    """What the others on a device use above their shares; None: not known of one of them."""
    others = [each for other, each in on_it.items() if other != owner]
    known = [max(busy - share, 0.0) for share, busy in others if busy is not None]
    return min(sum(known), 1.0) if len(known) == len(others) else None


def _of_device(device: DeviceSample, shares: Collection[tuple[float, float | None]]) -> Values:
    known = [(share, busy) for share, busy in shares if busy is not None]
    memory, load = device.memory, device.load
    return {
        "busy": load.busy_ratio,
        "memoryMiB": None if memory is None else memory.used_bytes / MIB,
        "allocated": min(sum(share for share, _ in shares), 1.0),
        "used": None if len(known) < len(shares) else sum(min(each) for each in known),
        "powerWatts": load.power_watts,
        "temperatureCelsius": load.temperature_celsius,
        "tensor": load.tensor_ratio,
        "throttled": None if load.throttled is None else float(bool(load.throttled & _HELD_BACK)),
    }


def _of_host(use: ContainerHostUse) -> Values:
    return {
        "cpuMilli": use.cpu_milli,
        "memoryMiB": use.memory_mib,
        "ioStalled": use.io_stalled,
        "memoryStalled": use.memory_stalled,
    }


def _owner(of: RingType, use: ContainerUse, device: str = "") -> RingOwner:
    pod, own = use.container.pod, use.container.own
    return RingOwner(
        type=of,
        work=pod.work,
        device=device,
        container_id=own.id,
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        container=own.name,
        job=pod.job,
        project=pod.project,
    )
