"""From a cluster's objects to the operator's own state, as if it had watched them.

What the operator would find out when it works on a GPUJob is found out here too: that its
namespace belongs to no project, and which Jobs and pods it would get.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import msgspec

from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube.objects import DeviceClass, Job, Node, Pod, PodGroup
from gpu_scheduler.runtime.informers.custom_resources import CustomResources, gpujob_record
from gpu_scheduler.simulate.cluster_objects import Objects, SimulationError, owner_uid
from gpu_scheduler.simulate.imagined import again, first_indexes, jobs_of, pod_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.jobs.projects import no_project
from gpu_scheduler.state.pods.pod import Stage

T = TypeVar("T")
NEW, AGAIN = "new", "again"  # ends of the names of pods that do not exist
_NOT_PLANNED = (Reason.INVALID, Reason.VOLUME_NOT_MOUNTED)  # what the operator alone can find out


@dataclass(slots=True)
class SimulatedCluster:
    """The state to plan in.

    Attributes:
        state: as the operator would know it.
        templates: Jobs as JSON by uid, for pods that come again.
        shares: pods that ask by themselves and that a controller makes again.
        names: what groups of such pods are called, of those that are gone, too.
        stopped: GPUJobs and such pods that no plan looks at, and why.
    """

    state: ClusterState
    templates: dict[str, Body] = field(default_factory=dict)
    shares: dict[PodUID, Pod] = field(default_factory=dict)
    names: dict[JobKey, str] = field(default_factory=dict)
    stopped: list[Wait] = field(default_factory=list)

    def restart(self, uid: PodUID, now: str) -> None:
        """A pod is gone; its Job, if it is a GPUJob's, makes one for the same index.

        One that asks by itself is made again by its controller, if it has one.
        """
        pod, share = self.state.pods.known.get(uid), self.shares.pop(uid, None)
        self.state.pod_gone(uid)
        suffix = f"{AGAIN}-{uid.count(AGAIN) + 1}" if AGAIN in uid else AGAIN
        job = self.templates.get(pod.job_uid) if pod is not None else None
        if share is not None:
            self.see(again(share, suffix, now))
        elif pod is not None and job is not None and pod.job_uid in self.state.jobs.believed:
            self.state.pod_changed(pod_of(job, pod.index, suffix, now))

    def see(self, pod: Pod) -> None:
        """A pod is there."""
        known = self.state.pod_changed(pod)
        key = self.state.workloads.key_of(known) if known is not None else None
        if known is None or key is None or known.share is None:
            return
        self.names[key] = self.state.groups.name_of(key)
        if known.share.controlled:
            self.shares[known.uid] = pod

    def name_of(self, key: JobKey) -> str:
        """What a GPUJob, or a group of pods without one, is called."""
        return self.names.get(key, key)


def scene_of(
    objects: Objects, holders_in: str, now: str, *, consolidation: bool = False
) -> SimulatedCluster:
    """The state that follows from the objects.

    Args:
        objects: of the cluster, with the what-ifs.
        holders_in: namespace of the operator.
        now: RFC 3339; pods that are started again are of then.
        consolidation: pods may move.

    Raises:
        SimulationError: an object is not what the API server would have stored.
    """
    # What makes such a pod ours depends on the installation; the operator has said what it lacks.
    state = ClusterState(
        holders_in, consolidation=consolidation, lacks=lambda pod, asked: _refused(pod)
    )
    for found in _typed(objects.of("DeviceClass"), DeviceClass):
        state.device_class_changed(found)
    for group in _typed(objects.of("PodGroup"), PodGroup):
        state.groups.pod_groups.put(group)
    custom_resources = CustomResources(state, changed=lambda key: None)
    for kind, changed in (
        ("GPUClass", custom_resources.gpuclass),
        ("GPUProject", custom_resources.project),
        ("GPUNode", custom_resources.node),
        ("GPUJob", custom_resources.gpujob),
    ):
        for body in objects.of(kind):
            changed(body)
    for node in _typed(objects.of("Node"), Node):
        state.nodes.changed(node)
    simulated = SimulatedCluster(state)
    for body in objects.of("Job"):
        simulated.templates[body["metadata"]["uid"]] = body
    for job in _typed(objects.of("Job"), Job):
        state.job_changed(job)
    for pod in _typed(objects.of("Pod"), Pod):
        simulated.see(pod)
    _lose(simulated, objects.lost_nodes, now)
    own: dict[str, set[str]] = {}
    for body in simulated.templates.values():
        own.setdefault(owner_uid(body), set()).add(body["metadata"]["name"])
    for record in state.gpujobs.values():
        _look_at(simulated, record, own.get(record.uid, set()))
    for work in state.groups.records.values():
        if state.waiting.has_pods(work.key) and (problem := _problem(state, work)):
            reason = work.problem_as if work.problem else Reason.INVALID
            _stop(simulated, work.key, reason, problem)
    return simulated


def add_gpujob(simulated: SimulatedCluster, body: Body) -> GPUJobRecord:
    """One more GPUJob, with the Jobs and pods that it would get.

    Raises:
        SimulationError: the API server would refuse it.
    """
    record = gpujob_record(body, simulated.state.classes)
    if record.complaint or record.unknown:
        raise SimulationError(record.complaint or record.unknown)
    simulated.state.gpujob_changed(record)
    _look_at(simulated, record, set())
    return record


DeviceNumbers = dict[tuple[str, str], tuple[int, str]]


def device_numbers(cluster: Cluster) -> DeviceNumbers:
    """By node and device, the device's number on the node and its model.

    Without an agent devices are known by their numbers, which are the same on every node.
    """
    return {
        (node.name, cluster.dev_id[d]): (d - cluster.first[n], cluster.dev_model[d])
        for n, node in enumerate(cluster.nodes)
        for d in range(cluster.first[n], cluster.first[n + 1])
    }


def _typed(bodies: Iterable[Body], type: type[T]) -> Iterator[T]:
    for body in bodies:
        try:
            # By way of JSON: part of a pod stays undecoded.
            yield msgspec.json.decode(msgspec.json.encode(body), type=type)
        except msgspec.ValidationError as error:
            meta = body["metadata"]
            raise SimulationError(f"{type.__name__} {meta['name']}: {error}") from None


def _lose(simulated: SimulatedCluster, nodes: set[str], now: str) -> None:
    for pod in [pod for pod in simulated.state.pods.known.values() if pod.node in nodes]:
        simulated.restart(pod.uid, now)


def _refused(pod: Pod) -> str:
    """Why the operator does not plan a pod that asks by itself, as it says on the pod."""
    return next(
        (
            said
            for each in pod.status.conditions
            if (each.type, each.status) == ("PodScheduled", "False")
            and each.reason in _NOT_PLANNED
            and (said := _lasting(each.message.removeprefix(f"{each.reason}: ")))
        ),
        "",
    )


def _lasting(said: str) -> str:
    """What was said of an object, unless it is about its namespace, which we judge ourselves."""
    return "" if said.startswith("metadata.namespace:") else said


def _problem(state: ClusterState, job: GPUJobRecord) -> str:
    """Why a GPUJob, or a group of pods without one, is not planned; empty when it is."""
    project = state.projects.owner(job.namespace)
    if job.problem or job.unknown:
        return job.problem or job.unknown
    if project is None:
        return no_project(job.namespace)
    unusable = state.projects.records[project].problem
    return f"GPUProject {project} cannot be used: {unusable}" if unusable else ""


def _look_at(simulated: SimulatedCluster, job: GPUJobRecord, own: set[str]) -> None:
    """What the operator does when it works on a GPUJob, whose own Jobs have these names."""
    state = simulated.state
    if job.deleting or job.finished:
        return
    project, problem = state.projects.owner(job.namespace), _problem(state, job)
    reason, said = Reason.INVALID, job.status.get("reason")
    if not problem and not own and said in _NOT_PLANNED:
        reason, problem = Reason(said), _lasting(str(job.status.get("message", "")))
    if problem or job.spec is None or project is None:
        return _stop(simulated, job.key, reason, problem)
    if job.spec.suspend:
        return _stop(simulated, job.key, Reason.SUSPENDED, "spec.suspend is true")
    if not own or job.spec.roles is not None:
        try:
            bodies = jobs_of(job, project, state.device_classes.class_of)
        except SimulationError as error:
            return _stop(simulated, job.key, Reason.INVALID, str(error))
        for body in bodies:
            if body["metadata"]["name"] not in own:
                _imagine(simulated, body, job.created)
    if own:
        _complete(simulated, job)
    return None


def _complete(simulated: SimulatedCluster, job: GPUJobRecord) -> None:
    """The pods that Jobs which exist would make, if all that their GPUJob asks for had a place."""
    state, room = simulated.state, dict[str, int]()
    for own in job.own(state.workloads.jobs(job.key)):
        if own.role not in job.requests or own.ended or own.uid not in simulated.templates:
            continue
        state.decisions.widening[own.uid] = job.requests[
            own.role
        ].at_once  # as wide as its pods would have it
        live = {pod.index for pod in state.pods.of_job(own.uid) if pod.stage is not Stage.ENDED}
        left = room.setdefault(own.role, job.requests[own.role].at_once) - len(live)
        over = {*own.completed, *own.lost, *live}
        missing = islice((index for index in own.indexes if index not in over), max(0, left))
        for index in missing:
            body = simulated.templates[own.uid]
            state.pod_changed(pod_of(body, index, NEW, job.created))
            left -= 1
        room[own.role] = left


def _imagine(simulated: SimulatedCluster, body: Body, created: str) -> None:
    """A Job that the operator would create, and the pods that it would start with."""
    simulated.templates[body["metadata"]["uid"]] = body
    simulated.state.job_changed(next(_typed([body], Job)))
    for index in first_indexes(body):
        simulated.state.pod_changed(pod_of(body, index, NEW, created))


def _stop(simulated: SimulatedCluster, key: JobKey, reason: Reason, message: str) -> None:
    simulated.stopped.append(Wait(key, reason, message, 0))
