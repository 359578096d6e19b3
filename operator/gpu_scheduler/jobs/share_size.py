"""How much a pod may have that asks by itself: what the chart's policies can look through.

Its bounds are those of the chart (``_cel_bounds.tpl``); tests compare the two (docs/adr/0059).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_scheduler.api import names
from gpu_scheduler.api.numbering import FIRST_INIT, with_fields
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.share_keys import FURTHER, OF_CONTAINER, OWN, PEERS

LISTS = {
    "metadata.annotations": 500,
    "metadata.labels": 500,
    "metadata.ownerReferences": 200,
    "spec.containers": FIRST_INIT,
    "spec.initContainers": FIRST_INIT,
    "spec.schedulingGates": 200,
    "spec.volumes": 500,
}
IN_CONTAINERS = {"env": 2000, "volumeMounts": 1000, "ports": 1000, "resources.limits": 500}
MOST_OF_PATHS, MOST_OF_A_WORD = 50_000, 1800  # characters
_FORMS = [form.pod for form in (OWN, *PEERS.values()) if form.pod is not None]
WORDS = (
    *(key for keys in _FORMS for key in (keys.container, *keys.amounts, keys.devices)),
    *FURTHER,
    names.ASKED,
)


def too_long(metadata: Mapping[str, Any], pod_spec: Mapping[str, Any]) -> Iterator[Problem]:
    """What of a pod, or of a pod template, is longer; its parts have the right form."""
    body = {"metadata": metadata, "spec": pod_spec}
    for path, most in LISTS.items():
        if (count := len(_at(body, path))) > most:
            yield Problem(path, f"has {count} entries; at most {most} are possible")
    containers = [container for _, container in with_fields(pod_spec)]
    for path, most in IN_CONTAINERS.items():
        if (count := sum(len(_at(container, path)) for container in containers)) > most:
            yield Problem(
                f"spec.containers[].{path}",
                f"{count} entries in all containers; at most {most} are possible",
            )
    mounts = (mount for container in containers for mount in _at(container, "volumeMounts"))
    if (count := sum(len(str(mount.get("mountPath"))) for mount in mounts)) > MOST_OF_PATHS:
        yield Problem(
            "spec.containers[].volumeMounts[].mountPath",
            f"{count} characters in all mounts; at most {MOST_OF_PATHS} are possible",
        )
    for key, text in _at(metadata, "annotations").items() if _at(metadata, "annotations") else ():
        if (key in WORDS or OF_CONTAINER.fullmatch(key)) and len(text) > MOST_OF_A_WORD:
            yield Problem(
                f"metadata.annotations[{key}]",
                f"has {len(text)} characters; at most {MOST_OF_A_WORD} can be read",
            )


def _at(of: Mapping[str, Any], path: str) -> Any:
    """A list or map; where it is missing an empty one."""
    found: Any = of
    for key in path.split("."):
        found = (found or {}).get(key)
    return found or ()
