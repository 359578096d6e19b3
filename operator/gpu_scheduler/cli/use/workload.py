"""What a GPUUsage says of one workload, as a value. Pure.

Read leniently, as an operator of another version may have written it: a field that is not there, or
of another kind, is None or empty, which is shown as unknown and never as 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gpu_scheduler.api.unstructured import Body, listed, part, text

_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyFigures:
    """Share of time, in percent, in which its kernels ran; None: not known."""

    now: int | None = None
    mean: int | None = None
    p50: int | None = None
    p95: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFigures:
    """Device memory, MiB: now of all its GPUs; peak and cap of the fullest one."""

    now: int | None = None
    peak: int | None = None
    cap: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFigures:
    """CPU and memory of its nodes; a limit that is None: one of its containers has none."""

    cpu_milli: int | None = None
    cpu_limit_milli: int | None = None
    ram_mib: int | None = None
    ram_limit_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFigures:
    """Sums of one role; None: not known."""

    name: str
    gpu_seconds: int | None = None
    used_gpu_seconds: int | None = None
    mean: int | None = None
    peak: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFigures:
    """Of a gang's pods the one that uses its GPUs least; percent, None: not known."""

    pod: str
    mean: int | None = None
    median: int | None = None
    ranks: int = 0


@dataclass(frozen=True, slots=True)
class AdviceFigures:
    """One thing to change: which rule says so, since when, in words, and the line that does it."""

    rule: str
    since: datetime | None
    message: str
    command: str


@dataclass(frozen=True, slots=True)
class CurveFigures:
    """Its life, the oldest point first; None where nobody knows. CPU: of one core."""

    step_seconds: int
    busy_percent: tuple[int | None, ...]
    memory_mib: tuple[int | None, ...]
    cpu_percent: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedWorkload:
    """A GPUJob, or who owns pods that ask for a share by themselves.

    Attributes:
        type: training, interactive or service.
        runs: whether it holds GPUs now.
        pods: that hold GPUs, or held some.
        milli: milli-GPU that it holds; of one that ended: held at most.
        gpu_seconds: GPUs × seconds that it held; None: not known.
        used_gpu_seconds: of these used: time with its kernels, at most the share; None: not known.
        idle_since: no kernel of it was seen since then; None: it is not idle, or nobody knows.
        idle_gpu_seconds: of those that it held, without any kernel; None: it has not ended, or
            nobody knows.
        roles: its sums by role; empty: it has none.
        slowest: for whom the other pods wait; None: it is no gang of several, or nobody knows.
        observed_at: of which moment the figures are.
    """

    namespace: str
    kind: str
    name: str
    project: str = ""
    type: str = ""
    runs: bool = False
    pods: int = 0
    milli: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    gpu_seconds: int | None = None
    used_gpu_seconds: int | None = None
    busy: BusyFigures = BusyFigures()
    memory: MemoryFigures = MemoryFigures()
    host: HostFigures = HostFigures()
    idle_since: datetime | None = None
    idle_gpu_seconds: int | None = None
    advice: tuple[AdviceFigures, ...] = ()
    curve: CurveFigures | None = None
    roles: tuple[RoleFigures, ...] = ()
    slowest: RankFigures | None = None
    observed_at: datetime | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def held_gpu_hours(self) -> float | None:
        """GPUs × hours that it held."""
        return None if self.gpu_seconds is None else self.gpu_seconds / _HOUR

    @property
    def used_gpu_hours(self) -> float | None:
        """Of these used: time with its kernels, at most the share, as the bars of ``top`` show."""
        return None if self.used_gpu_seconds is None else self.used_gpu_seconds / _HOUR

    @property
    def efficiency_percent(self) -> int | None:
        """GPU-hours used ÷ held; None: one of them is not known."""
        held, used = self.held_gpu_hours, self.used_gpu_hours
        if not held or used is None:
            return None
        return min(100, round(100 * used / held))


def workloads(body: Body) -> Iterator[UsedWorkload]:
    """Those of a GPUUsage; what has no name is left out."""
    status = part(body, "status")
    observed = moment(status.get("observedAt"))
    for each in listed(status, "workloads"):
        if isinstance(each, Mapping) and text(each, "name"):
            yield _workload(text(body, "metadata", "namespace"), each, observed)


def _workload(namespace: str, body: Body, observed: datetime | None) -> UsedWorkload:
    busy, memory, host = part(body, "busy"), part(body, "memoryMiB"), part(body, "host")
    return UsedWorkload(
        namespace=namespace,
        kind=text(body, "kind") or "GPUJob",
        name=text(body, "name"),
        project=text(body, "project"),
        type=text(body, "type"),
        runs=text(body, "state") == "Running",
        pods=whole(body.get("pods")) or 0,
        milli=_milli(body.get("gpus")),
        started_at=moment(body.get("startedAt")),
        ended_at=moment(body.get("endedAt")),
        gpu_seconds=whole(body.get("gpuSeconds")),
        used_gpu_seconds=whole(body.get("usedGPUSeconds")),
        busy=BusyFigures(**{key: percent(busy.get(key)) for key in ("now", "mean", "p50", "p95")}),
        memory=MemoryFigures(**{key: whole(memory.get(key)) for key in ("now", "peak", "cap")}),
        host=HostFigures(
            cpu_milli=whole(host.get("cpuMilli")),
            cpu_limit_milli=whole(host.get("cpuLimitMilli")),
            ram_mib=whole(host.get("ramMiB")),
            ram_limit_mib=whole(host.get("ramLimitMiB")),
        ),
        idle_since=moment(body.get("idleSince")),
        advice=tuple(_advice(each) for each in listed(body, "advice") if text(each, "rule")),
        curve=_curve(part(body, "curve")),
        roles=roles(body),
        slowest=_slowest(part(body, "slowestRank")),
        observed_at=observed,
    )


def roles(body: Body) -> tuple[RoleFigures, ...]:
    """Those of a workload, or of a status' usage."""
    return tuple(
        RoleFigures(
            name=text(each, "name"),
            gpu_seconds=whole(each.get("gpuSeconds")),
            used_gpu_seconds=whole(each.get("usedGPUSeconds")),
            mean=percent(each.get("meanPercent")),
            peak=whole(each.get("peakMiB")),
        )
        for each in listed(body, "roles")
        if text(each, "name")
    )


def _slowest(body: Body) -> RankFigures | None:
    if not text(body, "pod"):
        return None
    mean, middle = percent(body.get("meanPercent")), percent(body.get("medianPercent"))
    ranks = whole(body.get("ranks")) or 0
    return RankFigures(pod=text(body, "pod"), mean=mean, median=middle, ranks=ranks)


def _advice(body: Body) -> AdviceFigures:
    since = moment(body.get("since"))
    return AdviceFigures(text(body, "rule"), since, text(body, "message"), text(body, "command"))


def _curve(body: Body) -> CurveFigures | None:
    busy = tuple(percent(each) for each in listed(body, "busyPercent"))
    memory = tuple(whole(each) for each in listed(body, "memoryMiB"))
    cpu = tuple(whole(each) for each in listed(body, "cpuPercent"))
    step = whole(body.get("stepSeconds"))
    return CurveFigures(step, busy, memory, cpu) if step and (busy or memory) else None


def whole(value: Any) -> int | None:
    """A number that is not negative, rounded; None: it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value) if 0 <= value < float("inf") else None


def percent(value: Any) -> int | None:
    """A whole number from 0 to 100; None: it is none."""
    found = whole(value)
    return found if found is not None and found <= 100 else None


def moment(value: Any) -> datetime | None:
    """A time of the API server; None: it is none."""
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _milli(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return round(1000 * value) if 0 <= value < float("inf") else 0
