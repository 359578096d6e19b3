"""What a job took, from its status and the pods that are still there. Pure.

Times are those that the API server has: a pod waits until it is placed, and holds its GPUs from
then until its last container has ended. Pods that were deleted are not counted, and the report
says of how many it speaks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpu_scheduler.api.names import ASK_GPU
from gpu_scheduler.api.unstructured import Body, part
from gpu_scheduler.cli.one_pod.choosing import scheduled
from gpu_scheduler.cli.use.amounts import duration, hours

_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Taken:
    """The figures; None: not known.

    Attributes:
        state: phase and reason.
        queued_seconds: from its creation until the first of its pods had a place.
        waits: it still waits for that.
        run_seconds: from the first container's start to the last one's end, or until now.
        held_gpu_hours: of the pods that are there.
        asked_gpu_hours: what the spec asks for each pod, over the time in which its program ran.
        pods: that are there.
        failed: of these.
        restarts: of their containers.
        evictions: of pods of the job, for others.
        lost_gpu_seconds: with those.
        percent: utilisation now, a mean of five minutes.
        cap_mib: memory cap per GPU, the highest.
    """

    state: str
    queued_seconds: float | None
    waits: bool
    run_seconds: float | None
    held_gpu_hours: float | None
    asked_gpu_hours: float | None
    pods: int
    failed: int
    restarts: int
    evictions: int | None
    lost_gpu_seconds: int | None
    percent: int | None
    cap_mib: int | None

    def rows(self) -> list[tuple[str, str]]:
        """For people."""
        queued = duration(self.queued_seconds)
        lost = self.lost_gpu_seconds
        return [
            ("State", self.state),
            ("Queued", f"{queued}, and waits still" if self.waits else queued),
            ("Run", duration(self.run_seconds)),
            ("GPU-hours held", hours(self.held_gpu_hours)),
            ("GPU-hours asked", hours(self.asked_gpu_hours)),
            ("Pods", f"{self.pods} there, {self.failed} failed, {self.restarts} restarts"),
            ("Evictions", "0" if self.evictions is None else str(self.evictions)),
            ("GPU-hours lost", "0" if not lost else f"{lost / _HOUR:.2f}"),
            ("Memory cap", "-" if self.cap_mib is None else f"{self.cap_mib} MiB per GPU"),
            ("Utilisation now", "-" if self.percent is None else f"{self.percent} %"),
        ]

    def to_json(self, name: str) -> dict[str, Any]:
        """For programs; what is not recorded is null."""
        return {
            "name": name,
            "state": self.state,
            "queuedSeconds": self.queued_seconds,
            "waits": self.waits,
            "runSeconds": self.run_seconds,
            "gpuHoursHeld": self.held_gpu_hours,
            "gpuHoursAsked": self.asked_gpu_hours,
            "gpuHoursUsed": None,
            "pods": self.pods,
            "failedPods": self.failed,
            "restarts": self.restarts,
            "evictions": self.evictions or 0,
            "lostGPUSeconds": self.lost_gpu_seconds or 0,
            "memoryCapMiB": self.cap_mib,
            "peakMemoryMiB": None,
            "utilizationPercentNow": self.percent,
            "utilizationPercentP50": None,
            "utilizationPercentP95": None,
        }


def taken(job: Body | None, pods: Sequence[Body], now: datetime) -> Taken:
    """The figures of a GPUJob, or of pods without one.

    Args:
        job: the GPUJob; None: there is none.
        pods: that are there.
        now: until when what goes on is counted.
    """
    status = part(job or {}, "status")
    created = _time(part(job or (pods[0] if pods else {}), "metadata").get("creationTimestamp"))
    placed = [at for pod in pods if (at := _placed(pod)) is not None]
    spans = [span for pod in pods if (span := _ran(pod, now)) is not None]
    waits = not placed and status.get("phase") not in ("Running", "Succeeded", "Failed")
    queued = None
    if created is not None and (placed or waits):
        queued = max(0.0, (min(placed, default=now) - created).total_seconds())
    held = [each for pod in pods if (each := _held_hours(pod, now)) is not None]
    asked = [
        gpu * (end - start).total_seconds() / _HOUR
        for pod in pods
        if (span := _ran(pod, now)) is not None and (gpu := _asked(job, pod)) is not None
        for start, end in [span]
    ]
    run = None
    if spans:
        run = (max(end for _, end in spans) - min(start for start, _ in spans)).total_seconds()
    placements = [each for each in status.get("placements") or () if isinstance(each, Mapping)]
    percents = [each["computePercent"] for each in placements if _whole(each.get("computePercent"))]
    caps = [each["memoryMiB"] for each in placements if _whole(each.get("memoryMiB"))]
    words = [str(status.get(key)) for key in ("phase", "reason") if status.get(key)]
    phases = [str(part(pod, "status").get("phase", "")) for pod in pods]
    return Taken(
        state=", ".join(dict.fromkeys(words))
        or ", ".join(dict.fromkeys(filter(None, phases)))
        or "-",
        queued_seconds=queued,
        waits=waits,
        run_seconds=run,
        held_gpu_hours=round(sum(held), 4) if held else None,
        asked_gpu_hours=round(sum(asked), 4) if asked else None,
        pods=len(pods),
        failed=phases.count("Failed"),
        restarts=sum(each.get("restartCount") or 0 for pod in pods for each in _containers(pod)),
        evictions=status.get("evictions") if _whole(status.get("evictions")) else None,
        lost_gpu_seconds=(
            status.get("lostGPUSeconds") if _whole(status.get("lostGPUSeconds")) else None
        ),
        percent=round(sum(percents) / len(percents)) if percents else None,
        cap_mib=max(caps, default=None),
    )


def _held_hours(pod: Body, now: datetime) -> float | None:
    from gpu_scheduler.api.allocation import of_pod

    since, holds = _placed(pod), of_pod(pod)
    if holds is None or since is None:
        return None
    milli = sum(allocated.milli for allocated in holds.devices)
    span = _ran(pod, now)
    ended = part(pod, "status").get("phase") in ("Succeeded", "Failed")
    if ended and span is None:
        return None  # when it ended stands nowhere
    end = span[1] if ended and span is not None else now
    return milli / 1000 * max(0.0, (end - since).total_seconds()) / _HOUR


def _asked(job: Body | None, pod: Body) -> float | None:
    """GPUs of one pod, as its spec says; None: by memory, or by roles."""
    if job is None:
        meta = part(pod, "metadata")
        text = part(meta, "labels").get(ASK_GPU) or part(meta, "annotations").get(ASK_GPU)
    else:
        text = part(job, "spec").get("gpu")
    try:
        return float(str(text))
    except ValueError:
        return None


def _placed(pod: Body) -> datetime | None:
    condition = scheduled(pod)
    return _time(condition.get("lastTransitionTime")) if condition.get("status") == "True" else None


def _ran(pod: Body, now: datetime) -> tuple[datetime, datetime] | None:
    """When the first of its containers started, and when the last ended; now: it still runs."""
    starts, ends = [], []
    for each in _containers(pod):
        for name in ("running", "terminated"):
            state = part(each, "state", name)
            if (start := _time(state.get("startedAt"))) is not None:
                starts.append(start)
                ends.append(_time(state.get("finishedAt")) or now)
    return (min(starts), max(ends)) if starts else None


def _containers(pod: Body) -> list[Body]:
    found = part(pod, "status").get("containerStatuses")
    return [each for each in found or () if isinstance(each, Mapping)]


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
