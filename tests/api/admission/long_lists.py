"""Lists of objects as long as a test wants them; what is in them harms nobody."""

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
OWNER = {"apiVersion": "v1", "kind": "ConfigMap"}
NO_GPU = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
# What is dearest to look at, of what gives no GPU: the policies compare it with a pattern.
DEAR = {
    "name": "NVIDIA_VISIBLE_DEVICES",
    "valueFrom": {
        "fieldRef": {"fieldPath": f"metadata.annotations['gpu-scheduler.io/c{'9' * 12}-devices']"}
    },
}
_TOGETHER = ("spec.containers", "spec.initContainers")  # of which all entries are counted together
SPREAD = 8  # containers that share a list: none of them has too much by itself

_ENTRIES: dict[str, Callable[[int], Any]] = {
    "metadata.annotations": lambda n: (f"x/{n}", ""),
    "metadata.labels": lambda n: (f"x/{n}", ""),
    "metadata.ownerReferences": lambda n: {**OWNER, "name": f"o{n}", "uid": f"{n}"},
    "spec.schedulingGates": lambda n: {"name": f"x/{n}"},
    "spec.template.spec.schedulingGates": lambda n: {"name": f"x/{n}"},
    "spec.volumes": lambda n: {"name": f"v-{n}", "emptyDir": {}},
    "spec.containers": lambda n: {"name": f"c{n}", "image": "x", "env": [NO_GPU]},
    "spec.initContainers": lambda n: {"name": f"i{n}", "image": "x", "env": [NO_GPU]},
    "spec.ephemeralContainers": lambda n: {"name": f"e{n}", "image": "x", "env": [NO_GPU]},
    "status.conditions": lambda n: {"type": f"x/{n}", "status": "True"},
    "env": lambda n: DEAR,
    "envFrom": lambda n: {"configMapRef": {"name": "x"}},
    "volumeMounts": lambda n: {"name": "v", "mountPath": f"/{n}"},
    "ports": lambda n: {"containerPort": n % 65535 + 1},
    "resources.limits": lambda n: (f"x/{n}", "1"),
}  # fmt: skip


MAPS = {path for path, entry in _ENTRIES.items() if isinstance(entry(0), tuple)}


def grow(body: Json, path: str, count: int) -> None:
    """Give a list of an object so many entries in all, those that it has at its end."""
    of, _, inner = path.partition("[].")
    if not inner:
        _put(body, path, [_ENTRIES[path](n) for n in range(count - len(_at(body, path)))])
        return
    kinds = _TOGETHER if of in _TOGETHER else (of,)
    there = (container for kind in kinds for container in _at(body, kind))
    missing = count - sum(len(_at(container, inner)) for container in there)
    containers = []
    for number in range(SPREAD):
        container = {**_ENTRIES[of](0), "name": f"x{number}"}
        if inner == "env":
            container["env"] = []
        _put(container, inner, [_ENTRIES[inner](n) for n in range(number, missing, SPREAD)])
        containers.append(container)
    _put(body, of, containers)


def entry(path: str, number: int) -> Any:
    """One entry of such a list."""
    return _ENTRIES[path](number)


def _at(body: Json, path: str) -> Any:
    found: Any = body
    for key in path.split("."):
        found = (found or {}).get(key)
    return found or ()


def _put(body: Json, path: str, entries: list[Any]) -> None:
    """Put entries in front of a list, or into a map."""
    *above, last = path.split(".")
    for key in above:
        body = body.setdefault(key, {})
    if entries and isinstance(entries[0], tuple):
        body[last] = {**dict(entries), **body.get(last, {})}
    elif entries:
        body[last] = [*entries, *body.get(last, [])]
