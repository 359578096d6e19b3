"""A pod that waits, without what no plan and no placement reads: what it costs here no tenant sets.

Arguments, variables, mounts and the annotations of others go. What a plan depends on (labels,
rules about nodes and pods, tolerations, requests) stays, and a pod that says more of it than
``MOST_BYTES`` is not planned. Pure; applied to pods as they come, and to templates.
"""

import msgspec

from gpu_scheduler.api.names import GROUP
from gpu_scheduler.api.share_keys import GANGS, LIMITS_NOT_READ, NOT_READ, OF_CONTAINER
from gpu_scheduler.kube.objects import Container, Meta, Pod, PodSpec

MOST_BYTES = 16 << 10
MOST_ANNOTATION_BYTES = 128 << 10  # of others: as many are left for what a placement says
INDEX = "batch.kubernetes.io/job-completion-index"

_ENCODER = msgspec.json.Encoder()
_READ = frozenset({INDEX, *(size for _, size in GANGS), *NOT_READ, *LIMITS_NOT_READ})


def slim(pod: Pod) -> Pod:
    """The pod with what is read of it; nothing of its rules where ``too_heavy`` says why."""
    meta, spec = pod.metadata, pod.spec
    heavy = bool(too_heavy(pod))
    kept = {} if heavy else {k: v for k, v in meta.annotations.items() if _is_read(k)}
    meta = msgspec.structs.replace(meta, annotations=kept, labels={} if heavy else meta.labels)
    return Pod(meta, PodSpec(scheduler_name=spec.scheduler_name) if heavy else _of_spec(spec))


def too_heavy(pod: Pod) -> str:
    """Why a pod is not planned: it says too much for that; empty = it does not."""
    others = sum(len(k) + len(v) for k, v in pod.metadata.annotations.items() if not _is_read(k))
    if others > MOST_ANNOTATION_BYTES:
        return (
            f"metadata.annotations: {others} characters; at most {MOST_ANNOTATION_BYTES} leave "
            "room for what places the pod: shorten them, or put them into a ConfigMap"
        )
    size = _weight(pod.metadata, pod.spec)
    if size <= MOST_BYTES:
        return ""
    return (
        f"spec: labels, annotations of {GROUP}, node selectors, affinity, tolerations, spread "
        f"constraints and resources have {size} bytes together; at most {MOST_BYTES} can be "
        "planned with: say it in fewer words"
    )


def _weight(meta: Meta, spec: PodSpec) -> int:
    kept = {k: v for k, v in meta.annotations.items() if _is_read(k)}
    resources = [(c.name, c.resources) for c in (*spec.containers, *spec.init_containers)]
    said = (
        *(meta.labels, kept, meta.owner_references, spec.scheduler_name, spec.scheduling_gates),
        *(spec.node_selector, spec.affinity, spec.topology_spread_constraints, spec.tolerations),
        *(resources, spec.overhead, spec.resources),
    )
    return len(_ENCODER.encode(said))


def _is_read(key: str) -> bool:
    return key.startswith(GROUP) or key in _READ or bool(OF_CONTAINER.fullmatch(key))


def _of_spec(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        containers=tuple(map(_of_container, spec.containers)),
        init_containers=tuple(map(_of_container, spec.init_containers)),
        volumes=(),
    )


def _of_container(container: Container) -> Container:
    return Container(
        name=container.name,
        resources=container.resources,
        restart_policy=container.restart_policy,
    )
