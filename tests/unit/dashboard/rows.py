"""Rows of a picture, with what a test does not care about filled in."""

from typing import Any

from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.rows import (
    AdviceRow,
    DeviceRow,
    EarlierRow,
    HealthRow,
    IdleRow,
    JobRow,
    NodeRow,
    Placed,
    ProcessRow,
    ProjectRow,
    QueueRow,
    ShareRow,
    SweepRow,
    WorkRef,
    XidRow,
)
from gpu_scheduler.usage.figures import GpuState

NOW = 1_800_000_000.0
HOUR = 3600.0


def ref(name: str = "train", namespace: str = "team-a", kind: str = "GPUJob") -> WorkRef:
    return WorkRef(namespace=namespace, kind=kind, name=name)


def job(name: str = "train", namespace: str = "team-a", **said: Any) -> JobRow:
    known: dict[str, Any] = {
        "ref": ref(name, namespace, said.pop("kind", "GPUJob")), "project": "vision",
        "type": "training", "phase": "Running", "reason": "", "message": "", "asked": 0.5,
        "held": 0.5, "running": 1, "succeeded": 0, "pods": 1, "node": "a", "created": NOW - HOUR,
        "ended": None, "busy": 0.28, "memory_mib": 1024.0, "idle_since": None, "advice": "",
        "sweep": False,
    }  # fmt: skip
    return JobRow(**known | said)


def queued(name: str = "next", namespace: str = "team-a", **said: Any) -> QueueRow:
    known: dict[str, Any] = {
        "ref": ref(name, namespace), "project": "vision", "type": "training", "priority": "50",
        "position": 1, "each": "0.5", "pods": 1, "gpus": 0.5, "reason": "WaitingForQuota",
        "message": "vision uses 4 of its limit 4", "since": NOW - 600, "mends": False,
    }  # fmt: skip
    return QueueRow(**known | said)


def project(name: str = "vision", **said: Any) -> ProjectRow:
    known: dict[str, Any] = {
        "name": name, "quota": 4.0, "limit": None, "fair_share": 4.0, "held": 2.0, "borrowed": 0.0,
        "borrowed_since": None, "busy": 1.0, "idle": 0.0, "pending": 0.0, "waiting": 0,
        "running": 3, "namespaces": ("team-a",),
    }  # fmt: skip
    return ProjectRow(**known | said)


def share(name: str = "train", namespace: str = "team-a", **said: Any) -> ShareRow:
    known: dict[str, Any] = {
        "ref": ref(name, namespace), "project": "vision", "pod": f"{name}-0", "gpus": 0.5,
        "busy": 0.3, "memory_mib": 1024.0, "cap_mib": 20480, "idle_since": None,
    }  # fmt: skip
    return ShareRow(**known | said)


def device(*shares: ShareRow, **said: Any) -> DeviceRow:
    free = round(1 - sum(each.gpus for each in shares), 3)
    known: dict[str, Any] = {
        "index": 0, "uuid": "GPU-0", "model": "NVIDIA A100", "memory_mib": 40960, "problem": "",
        "free": free, "busy": 0.3, "memory_used_mib": 2048.0, "celsius": 61.0,
        "shares": shares,
    }  # fmt: skip
    return DeviceRow(**known | said)


def health(**said: Any) -> HealthRow:
    known: dict[str, Any] = {
        "watts": 240.0, "slowed": (), "nvlink_mib_a_second": 12.0,
        "xids": (XidRow(code=31, times=2),), "uncorrected_ecc": 0,
        "remapped_after_corrected": 1, "remapped_after_uncorrected": 0, "remap_failed": False,
    }  # fmt: skip
    return HealthRow(**known | said)


def process(pid: int = 4711, name: str = "train", namespace: str = "team-a") -> ProcessRow:
    return ProcessRow(
        pid=pid, ref=ref(name, namespace), pod=f"{name}-0", container="main", memory_mib=900.0,
        busy=0.3,
    )  # fmt: skip


def earlier(name: str = "train", namespace: str = "team-a") -> EarlierRow:
    return EarlierRow(ref=ref(name, namespace), gpus=0.5, pods=2, since=NOW - HOUR, until=NOW)


def node(name: str = "a", *devices: DeviceRow, **said: Any) -> NodeRow:
    known: dict[str, Any] = {
        "name": name, "model": "NVIDIA A100", "memory_mib": 40960, "closed": "", "agent": "ok",
        "labels": {}, "free": sum(each.free for each in devices), "cpu_free": 8.0,
        "cpu_total": 64.0, "devices": devices,
    }  # fmt: skip
    return NodeRow(**known | said)


def idle(name: str = "notebook", namespace: str = "team-a", **said: Any) -> IdleRow:
    known: dict[str, Any] = {
        "ref": ref(name, namespace), "project": "vision", "type": "interactive", "gpus": 1.5,
        "idle_since": NOW - 3 * HOUR, "gpu_hours": 4.5, "command": "kubectl gpu suspend",
    }  # fmt: skip
    return IdleRow(**known | said)


def advice(name: str = "train", namespace: str = "team-a", **said: Any) -> AdviceRow:
    known: dict[str, Any] = {
        "ref": ref(name, namespace), "project": "vision", "rule": "DATA_BOUND", "since": NOW,
        "message": "its CPUs are full", "command": "",
    }  # fmt: skip
    return AdviceRow(**known | said)


def sweep(name: str = "search", namespace: str = "team-a", **said: Any) -> SweepRow:
    known: dict[str, Any] = {
        "ref": ref(name, namespace), "project": "vision", "phase": "Running", "objective": "loss",
        "goal": "minimize", "trials": 20,
        "counts": {"waiting": 10, "running": 4, "succeeded": 5, "pruned": 0, "failed": 1},
        "best": None, "message": "", "created": NOW - HOUR,
    }  # fmt: skip
    return SweepRow(**known | said)


def placed(pod: str = "train-0", **said: Any) -> Placed:
    known: dict[str, Any] = {
        "pod": pod, "role": "", "node": "a", "devices": (3,), "gpus": 0.5, "started": NOW - HOUR,
        "busy": 0.28, "memory_mib": 1024.0, "cap_mib": 20480, "cpu_cores": 1.0, "cpu_limit": 4.0,
        "ram_mib": 100.0, "ram_limit_mib": 1000.0,
    }  # fmt: skip
    return Placed(**known | said)


def parts(**gpus: float) -> dict[GpuState, float]:
    return {state: gpus.get(state.name.lower(), 0.0) for state in GpuState}


def picture(**said: Any) -> Picture:
    known: dict[str, Any] = {"at": NOW, "idle_seconds": 3600}
    return Picture(**known | said)
