"""What ``top`` shows, as values: for programs, and for the lines that people read. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from gpu_scheduler.cli.holders.held import HeldDevice, HeldFraction, naturally
from gpu_scheduler.cli.holders.read import HoldersView


def values(what: str, seen: HoldersView) -> Any:
    """For programs."""
    devices = seen.devices
    hidden = {"onlyNamespace": seen.only} if seen.only else {}
    total = {
        "gpus": len(devices),
        "allocatedMilliGPU": sum(device.milli for device in devices),
        **hidden,
    }
    if what == "gpus":
        return {"devices": [device.to_json() for device in devices], "total": total}
    if what == "nodes":
        nodes: dict[str, list[HeldDevice]] = {}
        for device in devices:
            nodes.setdefault(device.node, []).append(device)
        return {
            "nodes": [
                {
                    "node": node,
                    "gpus": len(there),
                    "models": sorted({device.model for device in there}),
                    "allocatedMilliGPU": sum(device.milli for device in there),
                    "entirelyFree": None
                    if seen.only
                    else sum(not d.milli and not d.trouble for d in there),
                    "utilizationPercent": None if seen.only else mean_percent(there),
                }
                for node, there in nodes.items()
            ],
            "total": total,
        }
    if what == "jobs":
        return {
            "jobs": [
                {
                    "namespace": key.partition("/")[0],
                    "name": key.partition("/")[2],
                    "project": project or None,
                    "milliGPU": milli,
                    "pods": sorted(pods),
                    "nodes": nodes,
                    "utilizationPercent": percent,
                }
                for key, (milli, pods, nodes, project, percent) in by_job(devices)
            ],
            "total": total,
        }
    return {"projects": list(seen.projects), "total": total}


Held = tuple[int, set[str], list[str], str, int | None]


def by_job(devices: Iterable[HeldDevice]) -> list[tuple[str, Held]]:
    """By ``namespace/name``: milli, pods, nodes, project and utilisation; who holds most first."""
    found: dict[str, list[tuple[HeldDevice, HeldFraction]]] = {}
    for device in devices:
        for share in device.shares:
            found.setdefault(share.key, []).append((device, share))
    rows = []
    for key, held in found.items():
        shares = [share for _, share in held]
        by_pod = {share.pod: share.percent for share in shares}
        known = [percent for percent in by_pod.values() if percent is not None]
        percent = round(sum(known) / len(known)) if len(known) == len(by_pod) else None
        rows.append(
            (
                key,
                (
                    sum(share.milli for share in shares),
                    set(by_pod),
                    list(dict.fromkeys(device.node for device, _ in held)),
                    shares[0].project,
                    percent,
                ),
            )
        )
    return sorted(rows, key=lambda row: (-row[1][0], naturally(row[0])))


def mean_percent(devices: Sequence[HeldDevice]) -> int | None:
    """Mean utilisation; GPUs that nobody holds are at 0. None where one is not known."""
    known = [device.percent if device.shares else 0 for device in devices]
    if None in known or not any(device.shares for device in devices):
        return None
    return round(sum(percent for percent in known if percent is not None) / len(known))


def milli_of(value: object) -> int:
    """Milli-GPU of what a spec or a status says; 0 where that is no number."""
    try:
        return round(1000 * float(str(value)))
    except (ValueError, OverflowError):
        return 0
