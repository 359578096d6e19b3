"""What a GPUJob's own status keeps of its use after its end. Pure, and read leniently."""

from dataclasses import replace

from gpu_scheduler.api.unstructured import Body, name_of, part, text
from gpu_scheduler.cli.use.workload import (
    BusyFigures,
    MemoryFigures,
    UsedWorkload,
    percent,
    roles,
    whole,
)


def of_job(job: Body) -> UsedWorkload | None:
    """The figures of ``status.usage``; None: it has none."""
    usage, status = part(job, "status", "usage"), part(job, "status")
    if not usage:
        return None
    mean = percent(usage.get("meanPercent"))
    return UsedWorkload(
        namespace=text(job, "metadata", "namespace"),
        kind="GPUJob",
        name=name_of(job),
        project=text(status, "project"),
        type=text(job, "spec", "type") or "training",
        runs=status.get("phase") not in ("Succeeded", "Failed"),
        gpu_seconds=whole(usage.get("gpuSeconds")),
        used_gpu_seconds=whole(usage.get("usedGPUSeconds")),
        idle_gpu_seconds=whole(usage.get("idleGPUSeconds")),
        busy=BusyFigures(
            mean=mean, p50=percent(usage.get("p50Percent")), p95=percent(usage.get("p95Percent"))
        ),
        memory=MemoryFigures(peak=whole(usage.get("peakMiB")), cap=whole(usage.get("capMiB"))),
        roles=roles(usage),
    )


def together(recorded: UsedWorkload | None, of_status: UsedWorkload | None) -> UsedWorkload | None:
    """What GPUUsage says, with the sums of a status where it has ended; None: neither is there.

    The sums in a status are exact and stay; GPUUsage has advice, the curve and what is now.
    """
    if recorded is None or of_status is None:
        return recorded or of_status
    if recorded.runs:
        return recorded
    sums, peak = of_status.busy, of_status.memory
    return replace(
        recorded,
        gpu_seconds=_first(of_status.gpu_seconds, recorded.gpu_seconds),
        used_gpu_seconds=_first(of_status.used_gpu_seconds, recorded.used_gpu_seconds),
        idle_gpu_seconds=of_status.idle_gpu_seconds,
        roles=of_status.roles or recorded.roles,
        busy=replace(
            recorded.busy,
            mean=_first(sums.mean, recorded.busy.mean),
            p50=_first(sums.p50, recorded.busy.p50),
            p95=_first(sums.p95, recorded.busy.p95),
        ),
        memory=replace(
            recorded.memory,
            peak=_first(peak.peak, recorded.memory.peak),
            cap=_first(peak.cap, recorded.memory.cap),
        ),
    )


def _first(one: int | None, other: int | None) -> int | None:
    return other if one is None else one
