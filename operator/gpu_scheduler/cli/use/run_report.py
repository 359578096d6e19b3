"""What one workload asked for, held and used: what ``report`` shows, as a value. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from gpu_scheduler.api.unstructured import part
from gpu_scheduler.cli.finding import ResolvedTarget
from gpu_scheduler.cli.holders.held import holder_of, kind_of_holder
from gpu_scheduler.cli.holders.taken import Taken, taken
from gpu_scheduler.cli.use import from_status
from gpu_scheduler.cli.use.amounts import between
from gpu_scheduler.cli.use.asked import AskedAmounts, asked
from gpu_scheduler.cli.use.read import UseView
from gpu_scheduler.cli.use.values import curve_json, rounded, use_json
from gpu_scheduler.cli.use.workload import UsedWorkload, moment


@dataclass(frozen=True, slots=True)
class RunReport:
    """One of them.

    Attributes:
        title: kind and ``namespace/name``.
        name: ``namespace/name``.
        taken: what the object and its pods tell; None: they are gone.
        use: what is recorded; None: nothing.
        asked: what it asks for.
        missing: why nothing is recorded, as a sentence.
        now: until when what goes on is counted.
    """

    title: str
    name: str
    taken: Taken | None
    use: UsedWorkload | None
    asked: AskedAmounts
    missing: str
    now: datetime

    @property
    def state(self) -> str:
        """Phase and reason, or that the object is gone."""
        if self.taken is not None:
            return self.taken.state
        runs = self.use is not None and self.use.runs
        return "Running, and its object is deleted" if runs else "Ended, and deleted since"

    @property
    def run_seconds(self) -> float | None:
        """From its first GPU to its last, or of its containers where nothing is recorded."""
        use = self.use
        if use is not None and use.started_at is not None:
            return between(use.started_at, self.now if use.runs else use.ended_at)
        return None if self.taken is None else self.taken.run_seconds

    @property
    def held_gpu_hours(self) -> float | None:
        """Of all its pods where it is recorded, else of those that are there."""
        if self.use is not None and self.use.held_gpu_hours is not None:
            return self.use.held_gpu_hours
        return None if self.taken is None else self.taken.held_gpu_hours

    @property
    def cap_mib(self) -> int | None:
        """Memory cap on one GPU."""
        if self.use is not None and self.use.memory.cap is not None:
            return self.use.memory.cap
        return None if self.taken is None else self.taken.cap_mib

    def to_json(self) -> dict[str, Any]:
        """For programs; what is not known is null."""
        use = self.use
        figures: Mapping[str, Any] = {} if self.taken is None else self.taken.to_json(self.name)
        busy, peak = (None, None) if use is None else (use.busy, use.memory.peak)
        return {
            "name": self.name,
            **figures,
            "state": self.state,
            "runSeconds": self.run_seconds,
            "gpuHoursHeld": rounded(self.held_gpu_hours),
            "gpuHoursUsed": None if use is None else rounded(use.used_gpu_hours),
            "efficiencyPercent": None if use is None else use.efficiency_percent,
            "askedGPU": self.asked.gpus or None,
            "askedCPUMilli": self.asked.cpu_milli,
            "askedRAMMiB": self.asked.ram_mib,
            "memoryCapMiB": self.cap_mib,
            "peakMemoryMiB": peak,
            "utilizationPercentMean": None if busy is None else busy.mean,
            "utilizationPercentP50": None if busy is None else busy.p50,
            "utilizationPercentP95": None if busy is None else busy.p95,
            "use": None if use is None else {**use_json(use), "curve": curve_json(use)},
            "notShown": self.missing or None,
        }


def report_of(found: ResolvedTarget, use: UseView, now: datetime) -> RunReport:
    """Of something that is there; of a pod of a workload its use is the workload's."""
    recorded = use.find(found.namespace, *_owner(found))
    if found.job is not None:
        recorded = from_status.together(recorded, from_status.of_job(found.job))
    title = str(found)
    if recorded is not None and found.kind == "pod" and recorded.name != found.name:
        title = (
            f"{found} of {recorded.kind.lower()} {recorded.name}, of which all figures of use are"
        )
    return RunReport(
        title=title,
        name=f"{found.namespace}/{found.name}",
        taken=_with_queue(taken(found.job, found.pods, now), found, recorded),
        use=recorded,
        asked=asked(found.job, found.pods),
        missing="" if recorded is not None else _missing(use, str(found)),
        now=now,
    )


def report_of_gone(use: UsedWorkload, now: datetime) -> RunReport:
    """Of something that is recorded and deleted."""
    return RunReport(
        title=f"{use.kind.lower()} {use.key}",
        name=use.key,
        taken=None,
        use=use,
        asked=AskedAmounts(),
        missing="",
        now=now,
    )


def _with_queue(figures: Taken, found: ResolvedTarget, use: UsedWorkload | None) -> Taken:
    """With how long it waited for its first GPU, where its pods are gone and that is recorded."""
    if found.job is None or use is None or figures.queued_seconds is not None:
        return figures
    created = moment(part(found.job, "metadata").get("creationTimestamp"))
    return replace(figures, queued_seconds=between(created, use.started_at))


def _owner(found: ResolvedTarget) -> tuple[str, str]:
    """Name and kind under which its use is recorded."""
    if found.kind == "pod":
        pod = found.pods[0]
        return holder_of(pod), kind_of_holder(pod)
    return found.name, found.kind


def _missing(use: UseView, title: str) -> str:
    return use.missing or f"Nothing is recorded of {title}: it has not held a GPU for a minute yet."
