"""The Indexed batch/v1 Job of a GPUJob, or of one of its roles: a pure function of its input.

Equal input gives equal output, and nothing passed in is changed. The default devices of every GPU
container are ``void``, which the write that places the pod overrides: an allocation that is missing
never means "all GPUs".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import (
    CONDITION_DISRUPTION,
    CONDITION_PRUNED,
    CONDITION_TIME_LIMIT,
    DEFAULT_CONTAINER,
    LABEL_FIRST_RANK,
    LIMIT_OF_TEMPLATE,
    RENDERED,
    RUNTIME_CLASS,
    segment_name,
)
from gpu_scheduler.api.numbering import FIRST_INIT
from gpu_scheduler.api.parts import PodSet, is_distributed, is_gang, parts
from gpu_scheduler.api.pod_env import Env
from gpu_scheduler.api.requests import device_requests, program_containers
from gpu_scheduler.api.roles import Framework
from gpu_scheduler.api.segments import SEGMENT_TRIALS, Segment
from gpu_scheduler.jobs import cap, checkpoint, equip, report_token
from gpu_scheduler.jobs.distributed import peer_env, peer_framework_env
from gpu_scheduler.jobs.drift import digest
from gpu_scheduler.jobs.env import identity
from gpu_scheduler.jobs.hparams import fail_fast_rules, inject, segment_annotations
from gpu_scheduler.jobs.marks import for_jobs, for_pods, inherited, merged, own_labels
from gpu_scheduler.jobs.owner import owner_reference
from gpu_scheduler.jobs.scheduling import schedule
from gpu_scheduler.jobs.template import pod_template
from gpu_scheduler.jobs.write_path import WritePath

# The first rule that matches decides. An eviction is nobody's fault, even after the time limit.
_FAILURE_POLICY = (("Ignore", CONDITION_DISRUPTION), ("FailIndex", CONDITION_TIME_LIMIT))
# Before those: a trial that was told to stop is over, even if somebody evicts its pod then.
_PRUNED = ("FailIndex", CONDITION_PRUNED)


@dataclass(frozen=True, slots=True)
class RenderInput:
    """All that a rendered Job depends on."""

    name: str
    namespace: str
    uid: str  # of the GPUJob, which owns the Job
    spec: GPUJobSpec  # of the GPUJob, with all its roles
    project: str
    path: WritePath
    has_runtime_class: bool  # the cluster has the RuntimeClass ``runtime_class``
    has_priority_class: bool  # the chart's priority class is installed
    runtime_class: str = RUNTIME_CLASS
    cap_image: cap.CapImage | None = None  # delivers libgpucap; None: frameworks are only told
    role: str = ""  # which Job; empty where the GPUJob has no roles
    segment: Segment | None = None  # which Job of a sweep; None: its first
    labels: tuple[tuple[str, str], ...] = ()  # of the GPUJob, which the Job inherits

    @property
    def part(self) -> PodSet:
        """What of the GPUJob this Job is."""
        return next(part for part in parts(self.spec) if part.role == self.role)

    @property
    def trials(self) -> Segment | None:
        """The trials of this Job; None where the GPUJob is no sweep."""
        if self.spec.sweep is None:
            return None
        return self.segment or Segment(0, 0, min(SEGMENT_TRIALS, self.spec.total_pods))


def render(job: RenderInput) -> dict[str, Any]:
    """The Job as JSON, ready to be created.

    Raises:
        ValueError: the spec asks for GPUs in a way that ``api.validate`` refuses.
    """
    part, spec, trials = job.part, job.spec, job.trials
    # Without one of its members a gang gets nowhere: the first index that is given up ends it.
    ends_with_one = {"maxFailedIndexes": 0} if is_gang(spec) else {}
    job_spec = {
        "completionMode": "Indexed",
        "parallelism": min(part.spec.parallelism, trials.size) if trials else part.spec.parallelism,
        "completions": trials.size if trials else part.pods,
        "suspend": spec.suspend,
        "backoffLimitPerIndex": spec.retries,
        **ends_with_one,
        # A pod holds its GPUs until it has ended; only then may its successor exist.
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": _failure_rules(spec)},
        "template": _template(job, part),
    }
    metadata = {
        "name": segment_name(job.name, trials.number) if trials else part.job_name(job.name),
        "namespace": job.namespace,
        "labels": inherited(dict(job.labels))
        | for_jobs(((part.spec.template or {}).get("metadata") or {}).get("labels"))
        | own_labels(job.name, job.project, part.role),
        "annotations": {RENDERED: digest(job_spec)}
        | (segment_annotations(trials) if trials else {}),
        "ownerReferences": [owner_reference(job.name, job.uid)],
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job_spec}


def _failure_rules(spec: GPUJobSpec) -> list[dict[str, Any]]:
    sweep = spec.sweep
    first = [_PRUNED] if sweep and sweep.early_stopping else []
    codes = (sweep.fail_fast_exit_codes if sweep else None) or ()
    return [
        *(_rule(*each) for each in (*first, *_FAILURE_POLICY)),
        *fail_fast_rules(codes, program_containers(spec)),
    ]


def _rule(action: str, condition: str) -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": condition, "status": "True"}]}


def _template(job: RenderInput, part: PodSet) -> dict[str, Any]:
    template = pod_template(part.spec)
    requests = device_requests(part.spec)
    indices = tuple(request.container for request in requests)
    meta, pod_spec = template["metadata"], template["spec"]
    labels = own_labels(job.name, job.project, part.role)
    if job.spec.framework is Framework.TORCH:
        labels[LABEL_FIRST_RANK] = str(part.first_rank)
    meta["labels"] = for_pods(inherited(dict(job.labels))) | merged(meta.get("labels"), labels)
    meta["annotations"] = merged(meta.get("annotations"), equip.void_annotations(requests))

    told = partial(_identity, job, part)
    equip.fill_containers(pod_spec, requests, capped=job.cap_image is not None, told=told)
    _keep_last_words(pod_spec)
    if job.spec.checkpoint is not None:
        sweep = job.uid if job.spec.sweep is not None else ""
        of = f"{job.namespace}/{job.name}"
        checkpoint.put(pod_spec, job.spec.checkpoint, of, role=part.role, sweep=sweep)
    if job.spec.sweep is not None:
        inject(pod_spec, job.spec.sweep.search().names, indices)
    if report_token.reports(job.spec):
        report_token.put(pod_spec)
    if is_distributed(job.spec):
        pod_spec["subdomain"] = job.name  # the Job controller adds the host name
    equip.deliver(pod_spec, requests, job.cap_image)
    if len(pod_spec["containers"]) > 1 or pod_spec.get("initContainers"):
        main = indices[0] if indices and indices[0] < FIRST_INIT else 0
        name = pod_spec["containers"][main]["name"]
        meta["annotations"] = {DEFAULT_CONTAINER: name} | meta["annotations"]
    pod_spec["restartPolicy"] = "Never"  # podFailurePolicy needs it
    if job.spec.time_limit_seconds is not None:
        pod_spec["activeDeadlineSeconds"] = job.spec.time_limit_seconds
    elif pod_spec.get("activeDeadlineSeconds") is not None:
        meta["annotations"][LIMIT_OF_TEMPLATE] = "true"
    equip.run_by(pod_spec, job.runtime_class if requests and job.has_runtime_class else "")
    schedule(pod_spec, job.path, has_priority_class=job.has_priority_class)
    return template


def _keep_last_words(pod_spec: dict[str, Any]) -> None:
    """The end of a failed container's log becomes its message, where its author said nothing.

    Only where it failed and wrote no termination message, so results of trials are as they were.
    """
    for container in (*(pod_spec.get("initContainers") or ()), *pod_spec["containers"]):
        if "terminationMessagePolicy" not in container:
            container["terminationMessagePolicy"] = "FallbackToLogsOnError"


def _identity(job: RenderInput, part: PodSet, theirs: Sequence[Mapping[str, Any]] | None) -> Env:
    """What a container is told of its job; ``theirs``: its own variables."""
    own = identity(job.name, part.pods)
    if not is_distributed(job.spec):
        return own
    peers = peer_env(job.name, job.spec, part.role)
    return own + peers + peer_framework_env(job.name, job.spec, part.role, theirs or ())
