"""Whether the parts of a pod template that rendering reads have the form that it expects.

The CRD keeps templates unseen, so anything may stand in them, and a list where an object belongs
would end rendering in a traceback. Whoever has an API server lets it judge the rest
(``runtime.jobs.template_judge``).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_scheduler.api.problem import Problem

_LISTS = ("initContainers", "containers", "volumes", "schedulingGates")
_CONTAINER_LISTS = ("env", "volumeMounts", "ports")
_OBJECTS: dict[str, Any] = {"affinity": {"podAffinity": {}, "podAntiAffinity": {}}}
_CONTAINER_OBJECTS: dict[str, Any] = {"resources": {"requests": {}, "limits": {}}}
_VOLUME_OBJECTS: dict[str, Any] = {"persistentVolumeClaim": {}}


def malformed(field: str, template_pod_spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of form, with ``field`` as the path of the pod spec; null counts as absent."""
    spec = template_pod_spec
    for key in _LISTS:
        yield from _list(f"{field}.{key}", spec.get(key))
    yield from _objects(field, spec, _OBJECTS)
    for kind in ("initContainers", "containers"):
        for index, container in _entries(spec.get(kind)):
            here = f"{field}.{kind}[{index}]"
            for key in _CONTAINER_LISTS:
                yield from _list(f"{here}.{key}", container.get(key))
            yield from _objects(here, container, _CONTAINER_OBJECTS)
    for index, volume in _entries(spec.get("volumes")):
        yield from _objects(f"{field}.volumes[{index}]", volume, _VOLUME_OBJECTS)


def _list(field: str, value: object) -> Iterator[Problem]:
    if value is None:
        return
    if not isinstance(value, list):
        yield Problem(field, "must be a list")
        return
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            yield Problem(f"{field}[{index}]", "must be an object")
        elif not isinstance(entry.get("name", ""), str | None):
            yield Problem(f"{field}[{index}].name", "must be a string")


def _objects(field: str, parent: Mapping[str, Any], known: dict[str, Any]) -> Iterator[Problem]:
    for key, below in known.items():
        value = parent.get(key)
        if isinstance(value, dict):
            yield from _objects(f"{field}.{key}", value, below)
        elif value is not None:
            yield Problem(f"{field}.{key}", "must be an object")


def _entries(value: object) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(value, list):
        yield from ((i, entry) for i, entry in enumerate(value) if isinstance(entry, dict))
