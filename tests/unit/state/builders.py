"""Builders of what the watch shows, as JSON decoded the way the reflector does it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.api.names import ALLOCATION, GATE, LABEL_JOB, NARROWED, SCHEDULER_NAME
from gpu_scheduler.core.model.decision import Assignment, DeviceAllocation
from gpu_scheduler.core.model.request import JobKey, PodUID, Project, ProjectName
from gpu_scheduler.kube.objects import Job, Node, Pod
from gpu_scheduler.runtime.informers.custom_resources import gpujob_record
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.jobs.projects import ProjectRecord

GIB = 1 << 30
USABLE_MIB = 40960
CREATED = "2026-01-01T00:00:00Z"


def half(device: str = "0", milli: int = 500) -> tuple[DeviceAllocation, ...]:
    """A share of one device for container 0."""
    return (DeviceAllocation(0, device, milli, milli * USABLE_MIB // 1000),)


def _requests(cpu: str, memory: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}}


def make_pod(
    name: str = "job-0",
    *,
    uid: str = "",
    version: int = 1,
    namespace: str = "team-a",
    job: str | None = "job-uid",
    index: int = 0,
    path: str = "bind",
    gates: tuple[str, ...] | None = None,
    node: str = "",
    devices: tuple[DeviceAllocation, ...] = (),
    allocated_node: str = "",
    phase: str = "Pending",
    deleting: bool = False,
    cpu: str = "1",
    memory: str = "1Gi",
    created: str = CREATED,
    containers: list[dict[str, Any]] | None = None,
    init_containers: list[dict[str, Any]] | None = None,
    ran: bool = False,
    conditions: tuple[dict[str, str], ...] = (),
    annotations_: dict[str, str] | None = None,
    limit_seconds: int | None = None,
    finalizers: Sequence[str] = (),
    **status: Any,
) -> Pod:
    """A pod of Job ``job`` (None: of nobody); ``path``: bind, gate, or other (default scheduler).

    ``devices`` become the allocation, on ``allocated_node`` or else on ``node``.
    """
    meta: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": created,
        "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
    }
    if job is not None:
        meta["ownerReferences"] = [{"kind": "Job", "name": "job", "uid": job, "controller": True}]
    if devices:
        meta["annotations"] |= annotations(allocated_node or node, devices)
    meta["annotations"] |= annotations_ or {}
    if deleting:
        meta["deletionTimestamp"] = CREATED
    if finalizers:
        meta["finalizers"] = [*finalizers]
    held = (GATE,) if gates is None and path == "gate" else gates or ()
    spec = {
        "schedulerName": SCHEDULER_NAME if path == "bind" else "default-scheduler",
        "schedulingGates": [{"name": gate} for gate in held],
        "nodeName": node,
        "containers": containers or [_requests(cpu, memory)],
        "initContainers": init_containers or [],
        "activeDeadlineSeconds": limit_seconds,
    }
    seen = {
        "phase": phase,
        "conditions": list(conditions),
        "containerStatuses": [{"name": "main"}] if ran else [],
        **status,
    }
    return msgspec.json.decode(
        msgspec.json.encode({"metadata": meta, "spec": spec, "status": seen}), type=Pod
    )


def forged(node: str = "a") -> dict[str, str]:
    """An allocation annotation that somebody else wrote."""
    return {ALLOCATION: annotations(node, half())[ALLOCATION]}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available",
}


def make_node(
    name: str = "a",
    gpus: int = 2,
    *,
    cpu: str = "64",
    memory: str = "256Gi",
    pods: str = "110",
    ready: bool = True,
    cordoned: bool = False,
    taints: tuple[dict[str, str], ...] = (),
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    **meta: Any,
) -> Node:
    """A node whose GPUs are known from GPU feature discovery's labels.

    ``allocatable``: what it has besides, such as GPUs of the device plugin.
    """
    gfd = {
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB",
        "nvidia.com/gpu.memory": str(USABLE_MIB),
        "nvidia.com/gpu.compute.major": "8",
        "nvidia.com/gpu.compute.minor": "0",
    }
    body = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {**gfd, **(labels or {})}}
        | meta,
        "spec": {"unschedulable": cordoned, "taints": list(taints)},
        "status": {
            "allocatable": {
                "cpu": cpu,
                "memory": memory,
                "ephemeral-storage": "100Gi",
                "pods": pods,
                **(allocatable or {}),
            },
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    return msgspec.convert(body, Node)


def make_job(
    name: str = "job",
    *,
    uid: str = "job-uid",
    owner: str = "",
    owner_uid: str = "gpujob-uid",
    namespace: str = "team-a",
    version: int = 1,
    parallelism: int = 1,
    completions: int = 1,
    suspend: bool = False,
    deleting: bool = False,
    active: int = 0,
    ready: int = 0,
    narrowed: bool = False,
    succeeded: int | None = None,
    failed: int = 0,
    failed_indexes: str = "",
    completed_indexes: str = "",
    ended: str = "",
    message: str = "",
    ended_at: str = "2026-01-01T01:00:00Z",
    labelled: bool = True,
) -> Job:
    """The batch/v1 Job of GPUJob ``owner``; ``ended``: Complete (all of it by default), Failed."""
    if succeeded is None:
        succeeded = completions if ended == "Complete" else 0
    owners = [{"kind": "GPUJob", "name": owner or name, "uid": owner_uid, "controller": True}]
    condition = {
        "type": ended,
        "status": "True",
        "message": message,
        "lastTransitionTime": ended_at,
    }
    body = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": str(version),
            "labels": {LABEL_JOB: owner or name} if labelled else {},
            "ownerReferences": owners if owner_uid else [],
        }
        | ({"deletionTimestamp": CREATED} if deleting else {})
        | ({"annotations": {NARROWED: "true"}} if narrowed else {}),
        "spec": {"parallelism": parallelism, "completions": completions, "suspend": suspend},
        "status": {
            "active": active,
            "ready": ready,
            "succeeded": succeeded,
            "failed": failed,
            "failedIndexes": failed_indexes,
            "completedIndexes": completed_indexes,
            "conditions": [condition] if ended else [],
        },
    }
    return msgspec.convert(body, Job)


def gpujob_body(
    name: str = "job",
    *,
    uid: str = "gpujob-uid",
    namespace: str = "team-a",
    generation: int = 1,
    version: int = 1,
    created: str = CREATED,
    status: dict[str, Any] | None = None,
    deleting: bool = False,
    finalizers: tuple[str, ...] = (),
    **spec: Any,
) -> dict[str, Any]:
    """A GPUJob as JSON; 0.5 of a GPU unless ``spec`` says otherwise (None: nothing)."""
    spec = {key: value for key, value in spec.items() if value is not None}
    amount = {} if {"gpu", "gpuMemory", "containers", "roles"} & spec.keys() else {"gpu": 0.5}
    source = {} if "template" in spec else {"image": "registry/x:1"}
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "generation": generation,
        "resourceVersion": str(version),
        "creationTimestamp": created,
        "finalizers": list(finalizers),
    }
    if deleting:
        meta["deletionTimestamp"] = CREATED
    return {"metadata": meta, "spec": {**source, **amount, **spec}, "status": status or {}}


def make_gpujob(name: str = "job", **settings: Any) -> GPUJobRecord:
    """The record of ``gpujob_body``."""
    return gpujob_record(gpujob_body(name, **settings))


def make_project(
    name: str = "team-a",
    *namespaces: str,
    quota_milli: int = 8000,
    limit_milli: int | None = None,
    created: str = CREATED,
    problem: str = "",
    generation: int = 1,
) -> ProjectRecord:
    """A project that claims ``namespaces``, by default the one of its own name."""
    project = Project(ProjectName(name), quota_milli, limit_milli)
    return ProjectRecord(
        project, namespaces or (name,), created, generation, f"uid-{name}", problem
    )


def make_assignment(
    pod: str = "job-0",
    node: str = "a",
    devices: tuple[DeviceAllocation, ...] | None = None,
    job: str = "team-a/job",
) -> Assignment:
    """A decision about pod ``pod``."""
    return Assignment(
        JobKey(job), PodUID(f"uid-{pod}"), node, half() if devices is None else devices
    )
