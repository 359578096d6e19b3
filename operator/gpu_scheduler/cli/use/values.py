"""What is recorded of a workload, as values for programs. Pure; what is not known is null."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from gpu_scheduler.cli.use.saving import saved_milli
from gpu_scheduler.cli.use.workload import AdviceFigures, UsedWorkload


def use_json(use: UsedWorkload) -> dict[str, Any]:
    """Without its curve."""
    host = use.host
    return {
        "kind": use.kind,
        "project": use.project or None,
        "type": use.type or None,
        "state": "Running" if use.runs else "Ended",
        "pods": use.pods,
        "milliGPU": use.milli,
        "startedAt": rfc3339(use.started_at),
        "endedAt": rfc3339(use.ended_at),
        "observedAt": rfc3339(use.observed_at),
        "gpuHoursHeld": rounded(use.held_gpu_hours),
        "gpuHoursUsed": rounded(use.used_gpu_hours),
        "efficiencyPercent": use.efficiency_percent,
        "busyPercent": asdict(use.busy),
        "memoryMiB": asdict(use.memory),
        "host": {
            "cpuMilli": host.cpu_milli,
            "cpuLimitMilli": host.cpu_limit_milli,
            "ramMiB": host.ram_mib,
            "ramLimitMiB": host.ram_limit_mib,
        },
        "idleSince": rfc3339(use.idle_since),
        "idleGPUSeconds": use.idle_gpu_seconds,
        "roles": [
            {
                "name": each.name,
                "gpuSeconds": each.gpu_seconds,
                "usedGPUSeconds": each.used_gpu_seconds,
                "meanPercent": each.mean,
                "peakMiB": each.peak,
            }
            for each in use.roles
        ],
        "slowestRank": None if use.slowest is None else asdict(use.slowest),
        "advice": [advice_json(use, each) for each in use.advice],
    }


def advice_json(use: UsedWorkload, advice: AdviceFigures) -> dict[str, Any]:
    """One thing to change."""
    return {
        "rule": advice.rule,
        "since": rfc3339(advice.since),
        "message": advice.message,
        "command": advice.command or None,
        "savesMilliGPU": saved_milli(use, advice),
    }


def curve_json(use: UsedWorkload) -> dict[str, Any] | None:
    """Its life in points; None: it is not told."""
    curve = use.curve
    if curve is None:
        return None
    return {
        "stepSeconds": curve.step_seconds,
        "busyPercent": list(curve.busy_percent),
        "memoryMiB": list(curve.memory_mib),
        "cpuPercent": list(curve.cpu_percent),
    }


def rounded(value: float | None) -> float | None:
    """To four digits behind the point."""
    return None if value is None else round(value, 4)


def rfc3339(value: datetime | None) -> str | None:
    """A time as the API server writes it."""
    return None if value is None else value.isoformat().replace("+00:00", "Z")
