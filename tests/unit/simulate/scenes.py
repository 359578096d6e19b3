"""Clusters as objects, for questions about what waits: two nodes of two GPUs, and their jobs."""

from typing import Any

from tests.unit.simulate.test_what_if import as_json, cluster, gpujob
from tests.unit.state.builders import make_node, make_pod

from gpu_scheduler.api import names
from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.simulate.cluster_objects import Objects, Ref
from gpu_scheduler.simulate.explanation import Subject, explain
from gpu_scheduler.state.pods.slim import INDEX

NOW = "2026-01-01T01:00:00Z"
CREATED = "2026-01-01T00:00:00Z"
Json = dict[str, Any]

__all__ = ["NOW", "cluster", "holds", "node", "share_pods", "subject", "waits", "why"]


def _job(name: str, status: Json, created: str = CREATED, **spec: Any) -> list[Json]:
    """A GPUJob and its Job."""
    meta = {"namespace": "team-a", "name": name, "creationTimestamp": created}
    owner = {"kind": "GPUJob", "name": name, "uid": f"uid-{name}", "controller": True}
    body = {**gpujob(name, **spec), "metadata": {**meta, "uid": f"uid-{name}"}, "status": status}
    pods = spec.get("parallelism", 1)
    template = {
        "metadata": {},
        "spec": {"schedulerName": names.SCHEDULER_NAME, "containers": [{"name": "main"}]},
    }
    batch = {
        "kind": "Job",
        "metadata": {**meta, "uid": f"uid-job-{name}", "ownerReferences": [owner]},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
        "status": {},
    }
    return [body, batch]


def holds(name: str, *places: tuple[str, str, int], **spec: Any) -> list[Json]:
    """A GPUJob that runs: on which nodes and devices, with how many thousandths."""
    limit = spec.get("timeLimitSeconds")
    found = _job(name, {"phase": "Running"}, parallelism=len(places), **{"gpu": 1, **spec})
    for index, (on, device, milli) in enumerate(places):
        pod = make_pod(
            f"{name}-{index}-x",
            job=f"uid-job-{name}",
            index=index,
            node=on,
            devices=(DeviceAllocation(0, device, milli, milli * 40),),
            phase="Running",
            limit_seconds=limit,
            cpu="1",
            memory="0",
            startTime=CREATED,
        )
        pod.metadata.annotations[INDEX] = str(index)
        pod.metadata.labels[names.LABEL_JOB] = name
        found.append({"kind": "Pod", **as_json(pod)})
    return found


def waits(
    name: str,
    reason: str = "WaitingForGPU",
    message: str = "so it was said",
    *,
    pods: int = 1,
    created: str = CREATED,
    cpu: str = "1",
    phase: str = "Pending",
    doubtful: bool = False,
    **spec: Any,
) -> list[Json]:
    """A GPUJob whose pods wait, with what its status says; ``doubtful``: nobody gives way to it."""
    told: Json = {"phase": phase, "reason": reason, "message": message, "queuePosition": 1}
    if doubtful:
        condition = {"type": "InDoubt", "status": "True", "reason": reason, "message": message}
        told["conditions"] = [condition]
    more = {"parallelism": pods} if pods > 1 else {}
    found = _job(name, told, created, **more, **spec)
    for index in range(pods):
        pod = make_pod(
            f"{name}-{index}-x", job=f"uid-job-{name}", index=index, cpu=cpu, created=created
        )
        pod.metadata.labels[names.LABEL_JOB] = name
        body = {"kind": "Pod", **as_json(pod)}
        selector = (spec.get("template") or {}).get("spec", {}).get("nodeSelector")
        if selector:
            body["spec"]["nodeSelector"] = selector
        found.append(body)
    return found


def node(name: str, gpus: int = 2, **more: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Node", **as_json(make_node(name, gpus, **more))}


def share_pods(
    name: str, *placed: str, waiting: int = 0, gpu: str = "0.5", message: str = ""
) -> list[Json]:
    """Pods of a Deployment's ReplicaSet that ask for a share: on these nodes, or waiting."""
    found = []
    for index in range(len(placed) + waiting):
        on = placed[index] if index < len(placed) else ""
        pod = make_pod(
            f"{name}-5d4f-{index}", job=None, node=on, phase="Running" if on else "Pending"
        )
        body = {"kind": "Pod", **as_json(pod)}
        meta = body["metadata"]
        meta["labels"] = {names.LABEL_SHARE: names.SHARE_MADE, "pod-template-hash": "5d4f"}
        meta["annotations"] = {names.ASKED: f"0:{names.ASK_GPU}={gpu}"}
        if on:
            meta["annotations"] |= annotations(
                on, (DeviceAllocation(0, str(index % 2), 500, 20480),)
            )
        meta["ownerReferences"] = [
            {"kind": "ReplicaSet", "name": f"{name}-5d4f", "uid": f"uid-{name}", "controller": True}
        ]
        if message and not on:
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            body["status"]["conditions"] = [{**condition, "message": message}]
        found.append(body)
    return found


def subject(objects: Objects, kind: str, name: str) -> Subject:
    """What ``find`` would find."""
    pods = [each for each in objects.of("Pod") if each["metadata"]["name"].startswith(f"{name}-")]
    if kind == "pod":
        pods = [objects.bodies[Ref("Pod", "team-a", name)]]
        owner = (pods[0]["metadata"].get("labels") or {}).get(names.LABEL_JOB)
        return Subject(kind, "team-a", name, _body(objects, owner) if owner else None, pods)
    job = _body(objects, name) if kind == "gpujob" else None
    return Subject(kind, "team-a", name, job, pods)


def _body(objects: Objects, name: str) -> Any:
    return objects.bodies[Ref("GPUJob", "team-a", name)]


def why(objects: Objects, name: str, kind: str = "gpujob") -> Json:
    """The explanation."""
    return explain(subject(objects, kind, name), lambda: objects, NOW)
