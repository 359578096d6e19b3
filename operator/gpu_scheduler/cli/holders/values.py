"""What ``top`` shows, as values for programs. Pure."""

from collections.abc import Iterable
from typing import Any

from gpu_scheduler.cli.holders.held import HeldFraction
from gpu_scheduler.cli.holders.holder import (
    by_holder,
    by_node,
    by_project,
    mean_percent,
    used_parts,
)
from gpu_scheduler.cli.holders.read import HoldersView
from gpu_scheduler.cli.use.job_rows import job_rows


def values(what: str, view: HoldersView) -> Any:
    """For programs."""
    devices = view.devices
    hidden: dict[str, Any] = {"onlyNamespace": view.only} if view.only else {}
    if view.left:
        hidden["leftBehind"] = [each.to_json() for each in view.left]
    total = {
        "gpus": len(devices),
        "allocatedMilliGPU": sum(device.milli for device in devices),
        **hidden,
    }
    if what == "gpus":
        return {"devices": [device.to_json() for device in devices], "total": total}
    if what == "nodes":
        return {
            "nodes": [
                {
                    "node": node,
                    "gpus": len(there),
                    "models": sorted({device.model for device in there}),
                    "allocatedMilliGPU": sum(device.milli for device in there),
                    "entirelyFree": None
                    if view.only
                    else sum(not d.milli and not d.trouble for d in there),
                    "utilizationPercent": None if view.only else mean_percent(there),
                }
                for node, there in by_node(devices).items()
            ],
            "total": total,
        }
    if what == "jobs":
        return {
            "jobs": [row.to_json() for row in job_rows(by_holder(devices), view.use, view.only)],
            "total": total,
            "notShown": list(view.use.notes()),
        }
    return {
        "projects": list(view.projects),
        "used": {name: parts_json(parts) for name, parts in by_project(devices).items()},
        "total": total,
    }


def parts_json(shares: Iterable[HeldFraction]) -> dict[str, int]:
    """For programs: milli-GPU that is used, held and not used, and of which nobody knows."""
    used, unused, unknown = used_parts(shares)
    return {"usedMilliGPU": used, "unusedMilliGPU": unused, "unknownMilliGPU": unknown}
