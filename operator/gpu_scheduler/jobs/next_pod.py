"""The pod that a Job would make next, as the API server would return it, for a plan.

Requests default to limits; what a LimitRange, the overhead of a RuntimeClass or a webhook adds is
not known. Whatever is in the template, a pod comes out: what of it cannot be read asks for nothing,
and whoever makes the Job hears of it. Pure; called by ``runtime.role_jobs`` for pods that are
planned before they exist, and by the simulator.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gpu_scheduler.kube.objects import Container, Meta, Pod, PodSpec, PodStatus

# On these no plan depends, whatever stands there.
_UNREAD = ("env", "volumes", "volumeMounts", "command", "args", "image")
_OF_JOBS = ("batch.kubernetes.io/job-name", "job-name")


def next_pod(job: Mapping[str, Any], created: str = "") -> Pod:
    """A pod that waits, of a Job as JSON, without uid, owner and index; its name is the Job's."""
    meta, template = job["metadata"], job["spec"]["template"]
    found = template.get("metadata") or {}
    labels = _texts(found.get("labels")) | dict.fromkeys(_OF_JOBS, meta["name"])
    return Pod(
        Meta(
            name=meta["name"],
            namespace=meta["namespace"],
            creation_timestamp=created,
            labels=labels,
            annotations=_texts(found.get("annotations")),
        ),
        _spec(template.get("spec") or {}),
        PodStatus(phase="Pending"),
    )


def like(pod: Pod, job: str, labels: Mapping[str, str], created: str) -> Pod:
    """The next pod of another Job of the same template: ``job`` is its name, ``labels`` its own."""
    named = dict.fromkeys(_OF_JOBS, job)
    meta = msgspec.structs.replace(
        pod.metadata,
        name=job,
        creation_timestamp=created,
        labels={**pod.metadata.labels, **labels, **named},
    )
    return msgspec.structs.replace(pod, metadata=meta)


def _spec(template: Mapping[str, Any]) -> PodSpec:
    spec = {k: v for k, v in template.items() if v is not None and k not in _UNREAD}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [_readable(each) for each in spec[kind]]
    if "overhead" in spec:
        spec["overhead"] = _texts(spec["overhead"])
    if "resources" in spec:
        spec["resources"] = _amounts(spec["resources"])
    try:
        found = msgspec.convert(spec, PodSpec)
    except (msgspec.ValidationError, TypeError, ValueError):
        return PodSpec()
    return msgspec.structs.replace(
        found,
        containers=tuple(map(_defaulted, found.containers)),
        init_containers=tuple(map(_defaulted, found.init_containers)),
    )


def _readable(container: Any) -> Any:
    if not isinstance(container, Mapping):
        return container
    kept = {k: v for k, v in container.items() if v is not None and k not in _UNREAD}
    return kept | ({"resources": _amounts(kept["resources"])} if "resources" in kept else {})


def _amounts(resources: Any) -> Any:
    """Resources with every quantity as text: YAML has numbers, too."""
    if not isinstance(resources, Mapping):
        return {}
    return {kind: _texts(resources.get(kind)) for kind in ("requests", "limits")}


def _texts(found: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, Mapping) else {}


def _defaulted(container: Container) -> Container:
    resources = container.resources
    requests = {**resources.limits, **resources.requests}
    return msgspec.structs.replace(
        container, resources=msgspec.structs.replace(resources, requests=requests)
    )
