"""Where pods stand in a manifest: a pod itself, or pod templates at any depth of any kind.

A Deployment, a CronJob, a RayCluster and a PyTorchJob all have them in other places and under other
names; what is one shows in its form.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LocatedTemplate:
    """A pod or pod template inside a manifest.

    Attributes:
        field: its path in the manifest, such as ``spec.template``; empty for a pod.
        body: the part itself; what is changed in it is changed in the manifest.
        controlled: somebody makes pods of it, and makes them again.
    """

    field: str
    body: dict[str, Any]
    controlled: bool


def templates(manifest: Any) -> Iterator[LocatedTemplate]:
    """The pods of a manifest, in its order; of a List those of its items."""
    if not isinstance(manifest, dict):
        return
    if manifest.get("kind") == "Pod" and _has_containers(manifest):
        owners = (manifest.get("metadata") or {}).get("ownerReferences") or ()
        yield LocatedTemplate("", manifest, any(owner.get("controller") for owner in owners))
        return
    yield from _below(manifest, "")


def _below(node: Any, field: str) -> Iterator[LocatedTemplate]:
    if isinstance(node, list):
        for index, each in enumerate(node):
            if isinstance(each, dict) and each.get("kind") == "Pod":
                for pod in templates(each):
                    yield LocatedTemplate(f"{field}[{index}]", pod.body, pod.controlled)
            else:
                yield from _below(each, f"{field}[{index}]")
    elif isinstance(node, dict):
        if _has_containers(node):
            yield LocatedTemplate(field, node, controlled=True)
            return
        for key, each in node.items():
            yield from _below(each, f"{field}.{key}" if field else str(key))


def _has_containers(node: dict[str, Any]) -> bool:
    spec = node.get("spec")
    return isinstance(spec, dict) and isinstance(spec.get("containers"), list)
