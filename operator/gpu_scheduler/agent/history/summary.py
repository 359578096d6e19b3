"""What the rings of a node say, a row for each: ``gpu-scheduler agent history``."""

from collections.abc import Iterable, Sequence
from typing import Any

from gpu_scheduler.agent.history.columns import RingType, Values
from gpu_scheduler.agent.history.slot import LOOK_SECONDS, LOOKS, RingOwner, RingSlot

COLUMNS = (
    *("NAMESPACE/POD", "CONTAINER", "GPU", "STATE", "BUSY", "HOUR", "PEAK MiB", "IDLE FOR"),
    *("CPU", "RAM MiB"),
)


def rows(slots: Iterable[RingSlot], look: int) -> list[dict[str, Any]]:
    """GPUs first, then who uses them, those that run before those that have ended.

    Ratios are 0 to 1 and None where nobody knows; ages are seconds.

    Args:
        slots: the rings.
        look: the number of the look that is now.
    """
    known = [slot for slot in slots if slot.owner is not None]
    hosts = {
        slot.owner.container_id: _last(slot, look)
        for slot in known
        if slot.owner is not None and slot.owner.type is RingType.CONTAINER
    }
    found = [
        _row(slot, slot.owner, look, hosts.get(slot.owner.container_id, {}))
        for slot in known
        if slot.owner is not None and slot.owner.type is not RingType.CONTAINER
    ]
    return sorted(found, key=lambda row: (row["pod"] != "", row["endedFor"] or -1, row["pod"]))


def cells(row: dict[str, Any]) -> Sequence[str]:
    """A row as people read it."""
    ended, idle = row["endedFor"], row["idleFor"]
    return (
        f"{row['namespace']}/{row['pod']}" if row["pod"] else "-",
        row["container"] or "-",
        row["device"],
        "running" if ended is None else f"ended {_for(ended)} ago",
        _percent(row["busy"]),
        _percent(row["busyLastHour"]),
        str(row["peakMiB"]),
        "-" if idle is None else _for(idle),
        "-" if row["cpuMilli"] is None else f"{row['cpuMilli'] / 1000:.1f}",
        "-" if row["memoryMiB"] is None else f"{row['memoryMiB']:.0f}",
    )


def _last(slot: RingSlot, look: int) -> Values:
    """What was known last of each column, in the last hour."""
    found: dict[str, float | None] = {}
    for _, values in slot.looks(look - LOOKS, look + 1):
        found |= {name: value for name, value in values.items() if value is not None}
    return found


def _row(slot: RingSlot, owner: RingOwner, look: int, host: Values) -> dict[str, Any]:
    sums = slot.sums
    known = [v["busy"] for _, v in slot.looks(look - LOOKS, look + 1) if v["busy"] is not None]
    return {
        "namespace": owner.namespace,
        "pod": owner.pod,
        "container": owner.container,
        "job": owner.job,
        "project": owner.project,
        "device": owner.device,
        "seenFor": (max(slot.last or look, slot.first) - slot.first) * LOOK_SECONDS,
        "endedFor": (look - slot.last) * LOOK_SECONDS if slot.last else None,
        "busy": sums.busy_seconds / sums.seconds if sums.seconds else None,
        "busyLastHour": sum(known) / len(known) if known else None,
        "secondsByTenthsOfUse": sums.buckets,
        "peakMiB": sums.peak_mib,
        "idleFor": sums.idle_seconds if sums.seconds else None,
        "cpuMilli": host.get("cpuMilli"),
        "memoryMiB": host.get("memoryMiB"),
    }


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.0%}"


def _for(seconds: int) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
