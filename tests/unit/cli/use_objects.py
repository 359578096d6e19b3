"""Three jobs of one namespace, one busy, one idle, one with too much, as the API server has them.

GPUUsages are made by the model, so what the commands read is what the operator writes.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.cli.node_objects import gpunode, node, pod

from gpu_scheduler.api.gpuusage import (
    NAME,
    Advice,
    Busy,
    Curve,
    GPUUsageStatus,
    HostUse,
    MemoryUse,
    Workload,
)
from gpu_scheduler.api.names import API_VERSION

Body = dict[str, Any]
GPUUSAGES = "/apis/gpu-scheduler.io/v1alpha1/gpuusages"
UUIDS = ("GPU-aaaaaaaa", "GPU-bbbbbbbb")


def ago(**span: float) -> str:
    """A time so long ago, and ten seconds for the test itself."""
    then = datetime.now(UTC) - timedelta(**span) - timedelta(seconds=10)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")


def usage(*workloads: Workload, namespace: str = "team-a", omitted: int = 0) -> Body:
    """The GPUUsage of a namespace."""
    status = GPUUsageStatus(
        observed_at=ago(seconds=20),
        gpus=sum(each.gpus for each in workloads if each.state == "Running"),
        workloads=list(workloads),
        omitted=omitted,
    )
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUUsage",
        "metadata": {"name": NAME, "namespace": namespace},
        "status": status.to_json(),
    }


def busy_job(**more: Any) -> Workload:
    """Two hours at 85 %."""
    said: dict[str, Any] = {
        "kind": "GPUJob",
        "name": "train",
        "project": "vision",
        "state": "Running",
        "pods": 1,
        "gpus": 1,
        "started_at": ago(hours=2, minutes=5),
        "gpu_seconds": 7500,
        "used_gpu_seconds": 6375,
        "busy": Busy(now=88, mean=85, p50=90, p95=98),
        "memory_mib": MemoryUse(now=32000, peak=34816, cap=40000),
        "host": HostUse(cpu_milli=6400, cpu_limit_milli=8000, ram_mib=24576, ram_limit_mib=32768),
        "curve": Curve(
            step_seconds=130,
            busy_percent=[-1, 20, *[90] * 50, 40, 60, *[95] * 4],
            memory_mib=[-1, 8000, *[32000] * 50, *[34816] * 6],
        ),
    }
    return Workload(**said | more)


def idle_notebook(**more: Any) -> Workload:
    """Six hours, the last four and a half without a kernel."""
    said: dict[str, Any] = {
        "kind": "StatefulSet",
        "name": "notebook",
        "project": "vision",
        "type": "interactive",
        "state": "Running",
        "pods": 1,
        "gpus": 0.5,
        "started_at": ago(hours=6),
        "gpu_seconds": 10800,
        "used_gpu_seconds": 800,
        "busy": Busy(now=0, mean=4, p50=0, p95=31),
        "memory_mib": MemoryUse(now=2048, peak=6144, cap=20000),
        "host": HostUse(cpu_milli=100, ram_mib=3072, ram_limit_mib=16384),
        "idle_since": ago(hours=4, minutes=30),
        "advice": [
            Advice(
                rule="GPU_IDLE",
                since=ago(hours=3, minutes=30),
                message="no kernel of it has run for 4 h 30 min; give its half of a GPU back",
                command="kubectl scale -n team-a statefulset/notebook --replicas=0",
            )
        ],
    }
    return Workload(**said | more)


def oversized_job(**more: Any) -> Workload:
    """A whole GPU, of which it needs 0.4."""
    said: dict[str, Any] = {
        "kind": "GPUJob",
        "name": "finetune",
        "project": "vision",
        "state": "Running",
        "pods": 1,
        "gpus": 1,
        "started_at": ago(hours=3),
        "gpu_seconds": 10800,
        "used_gpu_seconds": 3240,
        "busy": Busy(now=33, mean=30, p50=32, p95=36),
        "memory_mib": MemoryUse(now=12000, peak=13312, cap=40000),
        "host": HostUse(cpu_milli=2000, cpu_limit_milli=4000, ram_mib=8192, ram_limit_mib=16384),
        "advice": [
            Advice(
                rule="OVERSIZED",
                since=ago(hours=2),
                message="it used at most 36 % of a GPU and 13.0 GiB; a share of 0.4 is enough",
                command="kubectl gpu submit finetune-2 --from finetune -n team-a -g 0.4",
            ),
            Advice(rule="SMALL_BATCH", message="memory is left for a larger batch"),
        ],
        "curve": Curve(
            step_seconds=180, busy_percent=[0, *[32] * 59], memory_mib=[0, *[13312] * 59]
        ),
    }
    return Workload(**said | more)


def job(name: str, phase: str = "Running", **spec: Any) -> Body:
    """A GPUJob of the namespace."""
    resources = {"requests": {"cpu": "4", "memory": "16Gi"}}
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-{name}",
            "creationTimestamp": ago(hours=3, minutes=4),
            "labels": {"team": "a", "gpu-scheduler.io/moved": "yes"},
            "ownerReferences": [{"kind": "CronJob", "name": "nightly", "uid": "u"}],
        },
        "spec": {"image": f"{name}:1", "gpu": 1, "resources": resources, **spec},
        "status": {"phase": phase, "reason": phase, "project": "vision"},
    }


def pods() -> list[Body]:
    """Of the three: train and finetune have a GPU each, the notebook half of a third."""
    owner = {"kind": "StatefulSet", "name": "notebook", "controller": True}
    notebook = pod("notebook-0", "a", ("0", 500), ownerReferences=[owner])
    notebook["metadata"]["labels"]["gpu-scheduler.io/gpu"] = "0.5"
    found = [
        pod("train-0-x", "a", (UUIDS[1], 1000), job="train"),
        pod("finetune-0-x", "b", (UUIDS[0], 1000), job="finetune"),
        notebook,
    ]
    for each in found:
        each["metadata"]["creationTimestamp"] = ago(hours=3, minutes=4)
        placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(hours=3)}
        each["status"]["conditions"] = [placed]
        each["metadata"]["labels"]["gpu-scheduler.io/project"] = "vision"
    return found


def nodes() -> list[Body]:
    """Two, with two GPUs each."""
    return [node("a"), node("b")]


def gpunodes() -> list[Body]:
    """Of the same two; agents that do not tell use."""
    return [gpunode("a", *UUIDS), gpunode("b", *UUIDS)]
