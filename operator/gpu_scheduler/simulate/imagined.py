"""Jobs and pods that do not exist: what a GPUJob would get, and what comes after a pod that goes.

They are what the API server would return, as far as a plan depends on it: requests default to
limits; a LimitRange and the overhead of a RuntimeClass are not added. Pure.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from gpu_scheduler.api import names
from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.parts import PodSet, parts
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.jobs.malformed import malformed
from gpu_scheduler.jobs.next_pod import UnreadableError, next_pod
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.jobs.users_path import users_words
from gpu_scheduler.jobs.write_path import WritePath, choose, claims
from gpu_scheduler.kube.objects import (
    Affinity,
    NodeSelector,
    OwnerReference,
    Pod,
    PodStatus,
    Required,
)
from gpu_scheduler.simulate.cluster_objects import SimulationError
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.slim import INDEX

ClassOf = Callable[[str], str]
"""The DeviceClass that serves an extended resource; empty: none does."""


def jobs_of(job: GPUJobRecord, project: ProjectName, class_of: ClassOf) -> list[Body]:
    """The Jobs that a GPUJob would get, as JSON.

    Raises:
        SimulationError: no pod can be made of a template.
    """
    assert job.spec is not None
    return [_job_of(job, job.spec, part, project, class_of) for part in parts(job.spec)]


def _job_of(
    job: GPUJobRecord, spec: GPUJobSpec, part: PodSet, project: ProjectName, class_of: ClassOf
) -> Body:
    pod_spec = (part.spec.template or {}).get("spec") or {}
    for problem in malformed("spec", pod_spec):
        raise SimulationError(users_words(spec, part.role, problem))
    bound = dict.fromkeys(claims(pod_spec), "")  # claims are not read here
    path, _ = choose(pod_spec, bound, class_of)
    inputs = RenderInput(
        name=job.name,
        namespace=job.namespace,
        uid=job.uid,
        spec=spec,
        role=part.role,
        labels=job.labels,
        project=project,
        path=path,
        has_runtime_class=False,
        has_priority_class=False,
    )
    made = _created(render(inputs), job.created)
    try:
        next_pod(made)
    except UnreadableError as error:
        raise SimulationError(users_words(spec, part.role, error.problem)) from None
    return made


def _created(body: dict[str, Any], created: str) -> Body:
    meta = body["metadata"]
    uid = f"what-if-job-{meta['namespace']}-{meta['name']}"
    return {**body, "metadata": {**meta, "uid": uid, "creationTimestamp": created}}


def first_indexes(job: Body) -> range:
    """Indexes of the pods that a new Job starts with."""
    spec = job["spec"]
    completions = spec.get("completions") or 1
    return range(min(spec.get("parallelism", 1), completions))


def pod_of(job: Body, index: int, suffix: str, created: str) -> Pod:
    """A pod that waits, of a Job as JSON; ``suffix`` ends its name and uid."""
    meta, pod = job["metadata"], next_pod(job, created)
    owner = OwnerReference("Job", meta["name"], meta["uid"], controller=True)
    made = msgspec.structs.replace(
        pod.metadata,
        name=f"{meta['name']}-{index}-{suffix}",
        uid=f"{meta['uid']}-{index}-{suffix}",
        annotations={**pod.metadata.annotations, INDEX: str(index)},
        owner_references=(owner,),
    )
    return msgspec.structs.replace(pod, metadata=made)


def again(pod: Pod, suffix: str, created: str) -> Pod:
    """The pod that the controller of one that goes makes in its place; it waits.

    ``suffix`` ends its name and uid.
    """
    meta, spec = pod.metadata, pod.spec
    kept = {key: word for key, word in meta.annotations.items() if key != names.ALLOCATION}
    made = msgspec.structs.replace(
        meta,
        name=f"{meta.name}-{suffix}",
        uid=f"{meta.uid}-{suffix}",
        annotations=kept,
        creation_timestamp=created,
        deletion_timestamp="",
    )
    released = meta.labels.get(names.LABEL_PATH) == WritePath.GATE
    waits = msgspec.structs.replace(
        spec,
        node_name="",
        scheduler_name=names.SCHEDULER_NAME,
        affinity=_unpinned(spec.affinity) if released else spec.affinity,
    )
    return Pod(made, waits, PodStatus(phase="Pending"))


def _unpinned(affinity: Affinity | None) -> Affinity | None:
    """Without the node that the release of a pod behind our gate tied it to: the last field."""
    demanded = affinity.node_affinity if affinity is not None else None
    required = demanded.required_during_scheduling_ignored_during_execution if demanded else None
    if affinity is None or required is None:
        return affinity
    terms = [
        msgspec.structs.replace(each, match_fields=each.match_fields[:-1])
        for each in required.node_selector_terms
    ]
    left = tuple(each for each in terms if each.match_expressions or each.match_fields)
    nodes = Required[NodeSelector](NodeSelector(left)) if left else None
    return msgspec.structs.replace(affinity, node_affinity=nodes)


def placed(pod: Pod, place: Assignment, now: str) -> Pod:
    """The pod once it runs where the plan put it."""
    added = annotations(place.node, place.devices)
    return Pod(
        msgspec.structs.replace(pod.metadata, annotations={**pod.metadata.annotations, **added}),
        msgspec.structs.replace(pod.spec, node_name=place.node, scheduling_gates=()),
        PodStatus(phase="Running", start_time=now),
    )
