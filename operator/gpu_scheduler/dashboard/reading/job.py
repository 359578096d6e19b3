"""What is said of one workload alone: facts, its life so far, where it is, what it did."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpu_scheduler.api.gpujob import FINISHED
from gpu_scheduler.api.gpuusage import Workload
from gpu_scheduler.api.job_usage import JobUsage
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.dashboard.content.words import amount
from gpu_scheduler.dashboard.picture import JobDetail
from gpu_scheduler.dashboard.rows import CurveRow, Placed, RankRow, RanksRow, SlowestRow, Step, Used
from gpu_scheduler.runtime.usage.curve import RankCurves
from gpu_scheduler.runtime.usage.works import LiveWork, busy_of, sum_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, epoch_seconds
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.usage.answer import ShareUse

_MOST_PODS = 64
_HOUR = 3600
_CONDITIONS = {
    ("Accepted", "False"): "waits",
    ("CannotStart", "True"): "waits",
    ("InDoubt", "True"): "waits",
    ("SetAside", "True"): "waits",
    ("Placed", "True"): "placed",
    ("Placed", "False"): "waits",
    ("Complete", "True"): "ended",
    ("Failed", "True"): "ended",
}
_NOTE = (
    "Of each kind of step the last one is known: conditions keep when they changed last, and "
    "Events of the namespace tell of an hour."
)


def job_detail(
    state: ClusterState,
    job: GPUJobRecord,
    work: LiveWork | None,
    kept: Workload | None,
    ranks: RankCurves | None,
) -> JobDetail:
    """Of a GPUJob, or of a group of pods.

    Args:
        state: the cluster.
        job: its record.
        work: what of it holds GPUs.
        kept: what GPUUsage says of it.
        ranks: how each of its pods used its GPUs, where these wait for each other.
    """
    is_gpujob = job.key in state.gpujobs
    return JobDetail(
        facts=_facts(job),
        steps=_steps(job, work),
        steps_note=_NOTE if is_gpujob else "",
        placed=tuple(_placed(state, work)) if work is not None else (),
        slowest=_slowest(kept) if work is not None else None,
        curve=_curve(kept),
        ranks=_ranks(ranks),
        used=_used(kept, job.status),
        may_suspend=is_gpujob and job.spec is not None and job.status.get("phase") not in FINISHED,
        suspended=is_gpujob and job.spec is not None and bool(job.spec.suspend),
    )


def _facts(job: GPUJobRecord) -> tuple[str, ...]:
    spec = job.spec
    if spec is None:
        return ("its spec cannot be read",)
    found = [f"priority {spec.priority}", str(spec.type)]
    for name, role in job.requests.items():
        each = sum(d.count * d.milli for d in role.devices) / DEVICE_MILLI
        pods = f"{role.at_once} × " if role.at_once > 1 else ""
        if each:
            many = f"{amount(each)} GPU{'s' if each > 1 else ''}"
            found.append(f"{f'{name}: ' if name else ''}{pods}{many}")
    if spec.image:
        found.append(f"image {spec.image}")
    return tuple(found)


def _steps(job: GPUJobRecord, work: LiveWork | None) -> tuple[Step, ...]:
    steps = [Step(at=job.created_seconds, kind="submitted", words="submitted")]
    for each in job.status.get("conditions") or ():
        kind = _CONDITIONS.get((str(each.get("type")), str(each.get("status"))))
        at = epoch_seconds(str(each.get("lastTransitionTime") or ""))
        if kind is None or not at:
            continue
        words = str(each.get("reason") or each.get("type"))
        steps.append(Step(at=at, kind=kind, words=words, detail=str(each.get("message") or "")))
    starts = [each for pod in _pods(work) if (each := epoch_seconds(pod.started))]
    if starts:
        number = len(starts)
        words = "started" if number == 1 else f"{number} pods started, the first then"
        steps.append(Step(at=min(starts), kind="runs", words=words))
    reason = str(job.status.get("reason") or "")
    if reason and job.status.get("phase") not in FINISHED and not starts:
        detail = str(job.status.get("message") or "")
        steps = [s for s in steps if s.kind != "waits" or s.words != reason]
        at = max((s.at for s in steps), default=job.created_seconds)
        steps.append(Step(at=at, kind="waits", words=reason, detail=detail))
    return tuple(sorted(steps, key=lambda step: step.at))


def _pods(work: LiveWork | None) -> Iterable[PodRecord]:
    return (pod for pod, _ in work.pods) if work is not None else ()


def _placed(state: ClusterState, work: LiveWork) -> Iterable[Placed]:
    ordered = sorted(work.pods, key=lambda each: each[0].index)
    for pod, shares in ordered[:_MOST_PODS]:
        yield _one(state, pod, shares)


def _one(state: ClusterState, pod: PodRecord, shares: tuple[ShareUse, ...]) -> Placed:
    charge = state.ledger.held(pod.uid)
    devices = state.ledger.resolved(charge.node, charge.devices) if charge is not None else ()
    known = state.ledger.node(pod.node)
    indexes = {device.id: device.index for device in known[1]} if known is not None else {}
    numbers = {indexes[allocated.device] for allocated in devices if allocated.device in indexes}
    own = state.jobs.believed.get(pod.job_uid)
    first = shares[0] if shares else None
    return Placed(
        pod=pod.name,
        role=own.role if own is not None else "",
        node=pod.node,
        devices=tuple(sorted(numbers)),
        gpus=sum(allocated.milli for allocated in devices) / DEVICE_MILLI,
        started=epoch_seconds(pod.started) or None if pod.stage is Stage.RUNNING else None,
        busy=busy_of(shares),
        memory_mib=sum_of(shares, "memory_mib"),
        cap_mib=sum(allocated.mib for allocated in devices) or None,
        cpu_cores=_cores(first.cpu_milli if first is not None else None),
        cpu_limit=_cores(first.cpu_limit_milli if first is not None else None),
        ram_mib=first.ram_mib if first is not None else None,
        ram_limit_mib=first.ram_limit_mib if first is not None else None,
    )


def _cores(milli: float | None) -> float | None:
    return None if milli is None else milli / 1000


def _curve(kept: Workload | None) -> CurveRow | None:
    if kept is None or kept.curve is None:
        return None
    curve = kept.curve
    return CurveRow(
        start=epoch_seconds(kept.started_at or ""),
        step_seconds=curve.step_seconds,
        busy=_points(curve.busy_percent, 100),
        memory_mib=_points(curve.memory_mib),
        cpu_cores=_points(curve.cpu_percent or (), 100),
        cpu_limit=_cores(kept.host.cpu_limit_milli),
    )


def _ranks(ranks: RankCurves | None) -> RanksRow | None:
    if ranks is None:
        return None
    pods = ranks.shown()
    return RanksRow(
        start=ranks.began,
        step_seconds=ranks.step_seconds,
        pods=tuple(RankRow(pod=pod, busy=_points(pods[pod], 100)) for pod in sorted(pods)),
    )


def _slowest(kept: Workload | None) -> SlowestRow | None:
    if kept is None or kept.slowest_rank is None:
        return None
    rank = kept.slowest_rank
    return SlowestRow(pod=rank.pod, mean=rank.mean_percent / 100, median=rank.median_percent / 100)


def _points(values: Sequence[int], unit: int = 1) -> tuple[float | None, ...]:
    return tuple(None if each < 0 else each / unit for each in values)


def _used(kept: Workload | None, status: Mapping[str, Any]) -> Used | None:
    """What GPUUsage says while it is there, and else what its status kept."""
    if kept is not None and kept.gpu_seconds:
        busy, memory = kept.busy, kept.memory_mib
        return Used(
            gpu_hours=kept.gpu_seconds / _HOUR,
            used_gpu_hours=_hours(kept.used_gpu_seconds),
            idle_gpu_hours=None,
            mean=_ratio(busy.mean),
            p50=_ratio(busy.p50),
            p95=_ratio(busy.p95),
            peak_mib=memory.peak,
            cap_mib=memory.cap,
        )
    told = status.get("usage")
    if not told:
        return None
    usage = JobUsage.model_validate(told)
    return Used(
        gpu_hours=usage.gpu_seconds / _HOUR,
        used_gpu_hours=_hours(usage.used_gpu_seconds),
        idle_gpu_hours=_hours(usage.idle_gpu_seconds),
        mean=_ratio(usage.mean_percent),
        p50=_ratio(usage.p50_percent),
        p95=_ratio(usage.p95_percent),
        peak_mib=usage.peak_mib,
        cap_mib=usage.cap_mib,
    )


def _ratio(percent: int | None) -> float | None:
    return None if percent is None else percent / 100


def _hours(seconds: int | None) -> float | None:
    return None if seconds is None else seconds / _HOUR
