"""How many pods of a size would start now, and where: what ``kubectl gpu fit`` prints.

The planner is given a GPUJob that does not exist, behind all that wait already, and nobody gives
way to it. The answer, and its ``-o json``::

    {asks, namespace, project, count, fits, enough, borrows, reason, message,
     nodes: [{node, pods, gpu, devices: [{number, device, model, pods, gpu}]}]}

``count`` is what was asked for, ``enough`` whether so many fit; both are null without a number.
``borrows``: how much the project would hold above its quota. ``reason`` and ``message``: why not
more start, in the planner's words; empty where that was not asked for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import DeviceRequest, JobKey, ProjectName
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.simulate.cluster_objects import Objects
from gpu_scheduler.simulate.imagined import first_indexes, pod_of
from gpu_scheduler.simulate.operator_rules import DEFAULT, OPERATOR_NAMESPACE, OperatorRules
from gpu_scheduler.simulate.planned import Planned, plan_scene
from gpu_scheduler.simulate.simulated_cluster import (
    NEW,
    SimulatedCluster,
    add_gpujob,
    device_numbers,
    scene_of,
)
from gpu_scheduler.state.jobs.job import GPUJobRecord

Json = dict[str, Any]

MOST_PODS = 10_000  # that are imagined
_NAME = "kubectl-gpu-fit"


@dataclass(frozen=True, slots=True)
class Size:
    """What one pod asks for, as in a GPUJob; None, or empty: it is not said.

    Attributes:
        gpu: a share of one GPU, or whole GPUs.
        gpu_memory: device memory, instead.
        devices: on how many GPUs.
        models: any of these.
        cpu: of the node.
        memory: of the node.
        selector: labels of nodes.
    """

    gpu: float | int | None = None
    gpu_memory: str | None = None
    devices: int | None = None
    models: Sequence[str] = ()
    cpu: str | None = None
    memory: str | None = None
    selector: Mapping[str, str] = field(default_factory=dict)

    def spec(self) -> Json:
        """As the spec of a GPUJob."""
        asked = {"cpu": self.cpu, "memory": self.memory}
        requests = {name: amount for name, amount in asked.items() if amount is not None}
        resources = {"resources": {"requests": requests}} if requests else {}
        said = {
            "gpu": self.gpu,
            "gpuMemory": self.gpu_memory,
            "gpuDevices": self.devices,
            "gpuModels": list(self.models) or None,
        }
        spec: Json = {name: value for name, value in said.items() if value is not None}
        if not self.selector:
            return {**spec, "image": "fit", **resources}
        containers = [{"name": "main", "image": "fit", **resources}]
        selector = dict(self.selector)
        return {**spec, "template": {"spec": {"nodeSelector": selector, "containers": containers}}}


def fit(
    objects: Objects,
    size: Size,
    namespace: str,
    count: int | None,
    now: str,
    rules: OperatorRules = DEFAULT,
) -> Json:
    """How many pods of a size would start now.

    Args:
        objects: of the cluster.
        size: of each pod.
        namespace: in which they would be.
        count: how many are wanted; None: as many as there is room for.
        now: RFC 3339.
        rules: by which the operator plans.

    Raises:
        SimulationError: no GPUJob can ask for that.
    """
    simulated = scene_of(objects, OPERATOR_NAMESPACE, now)
    job = add_gpujob(simulated, _body(size, namespace, now, simulated))
    requests = next(iter(job.requests.values())).devices
    most = min(MOST_PODS, _most(simulated.state.snapshot(), requests) + 1)
    _more(simulated, job, most if count is None else min(most, count))
    planned = plan_scene(simulated, now, rules, evictions=False)
    places = [place for place in planned.plan.assignments if place.job == job.key]
    stopped = next((each for each in simulated.stopped if each.job == job.key), None)
    wait = stopped or planned.plan.waits.of(job.key)
    project = simulated.state.projects.owner(namespace)
    said = wait if wait is not None and (count is None or len(places) < count) else None
    return {
        "asks": _asks(size, planned, job),
        "namespace": namespace,
        "project": None if project is None else str(project),
        "count": count,
        "fits": len(places),
        "enough": None if count is None else len(places) >= count,
        "borrows": gpu_from_milli(_borrows(planned, project, places)),
        "nodes": _nodes(planned, places),
        "reason": str(said.reason) if said is not None else "",
        "message": said.message if said is not None else "",
    }


def _body(size: Size, namespace: str, now: str, simulated: SimulatedCluster) -> Json:
    name = _NAME
    while JobKey(f"{namespace}/{name}") in simulated.state.gpujobs:
        name += "-x"
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": now}
    return {"apiVersion": API_VERSION, "kind": "GPUJob", "metadata": meta, "spec": size.spec()}


def _most(cluster: Cluster, requests: Sequence[DeviceRequest]) -> int:
    """No more than so many pods find free devices and pod slots."""
    request = requests[0]
    found = 0
    for milli, mib in zip(cluster.free_milli, cluster.free_mib, strict=True):
        if request.mib:
            found += max(0, mib) // request.mib
        elif mib > 0:
            found += max(0, milli) // request.milli
    slots = sum(max(0, free) for free in cluster.free_pods)
    return min(slots, found // max(1, request.count))


def _more(simulated: SimulatedCluster, job: GPUJobRecord, pods: int) -> None:
    """So many pods in all: beside those that the job has."""
    for uid, body in simulated.templates.items():
        if uid in {own.uid for own in simulated.state.workloads.jobs(job.key)}:
            simulated.state.decisions.widening[uid] = pods
            for index in range(len(first_indexes(body)), pods):
                simulated.see(pod_of(body, index, NEW, job.created))


def _asks(size: Size, planned: Planned, job: GPUJobRecord) -> str:
    waiting = planned.jobs.get(job.key)
    if waiting is not None:
        return wording.needs(waiting.pods[0].pod_shape)
    return size.gpu_memory or f"{size.gpu} GPU"


def _borrows(planned: Planned, name: ProjectName | None, places: Sequence[Assignment]) -> int:
    project = planned.projects.get(name) if name is not None else None
    if project is None:
        return 0
    taken = sum(allocated.milli for place in places for allocated in place.devices)
    held = planned.session.snapshot.allocated_milli(project.name)
    return min(taken, max(0, held - project.quota_milli))


def _nodes(planned: Planned, places: Sequence[Assignment]) -> list[Json]:
    """Where they would start, those nodes first that take most."""
    numbers, pods = device_numbers(planned.before), Counter(place.node for place in places)
    by_device: dict[str, dict[str, list[int]]] = {node: {} for node in pods}
    for place in places:
        for allocated in place.devices:
            by_device[place.node].setdefault(allocated.device, []).append(allocated.milli)
    found = []
    for node, count in sorted(pods.items(), key=lambda item: (-item[1], item[0])):
        shares = sorted(
            (*numbers[node, device], device, milli) for device, milli in by_device[node].items()
        )
        found.append(
            {
                "node": node,
                "pods": count,
                "gpu": gpu_from_milli(sum(sum(milli) for *_, milli in shares)),
                "devices": [
                    {
                        "number": number,
                        "device": device,
                        "model": model,
                        "pods": len(milli),
                        "gpu": gpu_from_milli(sum(milli)),
                    }
                    for number, model, device, milli in shares
                ],
            }
        )
    return found
