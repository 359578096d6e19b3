"""The pod that a Job would make next, as the API server would return it, for a plan.

Requests default to limits; what a LimitRange, the overhead of a RuntimeClass or a webhook adds is
not known. A template that cannot be read gives no pod: one that asks for less than it says would be
planned where it may not be. Pure; called for pods that are planned before they exist, and by the
simulator.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gpu_scheduler.api.problem import Problem
from gpu_scheduler.kube.objects import Container, Meta, Pod, PodSpec, PodStatus

# In these, null is the empty text, or none of an amount; elsewhere it is as if it were absent.
_TEXTS = ("nodeSelector", "matchLabels")
_AMOUNTS = ("requests", "limits", "overhead")
_LISTS_OF_TEXTS = ("values", "matchLabelKeys", "mismatchLabelKeys", "namespaces")

# On these no plan depends, whatever stands there.
_UNREAD = ("env", "volumes", "volumeMounts", "command", "args", "image")
_WORDS = "cannot be read as that of a pod: {}"
_OF_JOBS = ("batch.kubernetes.io/job-name", "job-name")


class UnreadableError(ValueError):
    """A template that no pod can be made of.

    Attributes:
        problem: what is wrong, with its place below the template.
    """

    def __init__(self, field: str, message: str) -> None:
        self.problem = Problem(field, message)
        super().__init__(str(self.problem))


def next_pod(job: Mapping[str, Any], created: str = "") -> Pod:
    """A pod that waits, of a Job as JSON, without uid, owner and index; its name is the Job's.

    Raises:
        UnreadableError: the template is none of a pod.
    """
    meta, template = job["metadata"], job["spec"]["template"]
    return Pod(
        Meta(
            name=meta["name"],
            namespace=meta["namespace"],
            creation_timestamp=created,
            labels=_marks(template, "labels") | dict.fromkeys(_OF_JOBS, meta["name"]),
            annotations=_marks(template, "annotations"),
        ),
        _spec(template.get("spec") or {}),
        PodStatus(phase="Pending"),
    )


def like(pod: Pod, namespace: str, job: str, labels: Mapping[str, str], created: str) -> Pod:
    """The next pod of another Job of the same template: ``job`` is its name, ``labels`` its own."""
    named = dict.fromkeys(_OF_JOBS, job)
    meta = msgspec.structs.replace(
        pod.metadata,
        name=job,
        namespace=namespace,
        creation_timestamp=created,
        labels={**pod.metadata.labels, **labels, **named},
    )
    return msgspec.structs.replace(pod, metadata=meta)


def _marks(template: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Labels or annotations, which rendering has made an object of."""
    found = (template.get("metadata") or {}).get(kind) or {}
    for key, value in found.items():
        if not isinstance(value, str | None):
            raise UnreadableError(f"metadata.{kind}[{key}]", "must be a string")
    return {key: value or "" for key, value in found.items()}


def _spec(template: Mapping[str, Any]) -> PodSpec:
    try:
        found = msgspec.convert(_as_read(template), PodSpec)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        what, _, where = str(error).partition(" - at `$")
        raise UnreadableError(f"spec{where.removesuffix('`')}", _WORDS.format(what)) from None
    return msgspec.structs.replace(
        found,
        containers=tuple(map(_defaulted, found.containers)),
        init_containers=tuple(map(_defaulted, found.init_containers)),
    )


def _as_read(value: Any, key: str = "") -> Any:
    """JSON as the API server reads it: null for what is absent, numbers for amounts."""
    if isinstance(value, Mapping):
        if key in _TEXTS:
            return {k: "" if v is None else v for k, v in value.items()}
        if key in _AMOUNTS:
            return {k: _amount(v) for k, v in value.items()}
        kept = {k: v for k, v in value.items() if v is not None and k not in _UNREAD}
        return {k: _as_read(v, k) for k, v in kept.items()}
    if isinstance(value, list):
        empty: Any = "" if key in _LISTS_OF_TEXTS else {}
        return [empty if each is None else _as_read(each) for each in value]
    return value


def _amount(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number else "0" if value is None else value


def _defaulted(container: Container) -> Container:
    resources = container.resources
    requests = {**resources.limits, **resources.requests}
    return msgspec.structs.replace(
        container, resources=msgspec.structs.replace(resources, requests=requests)
    )
