"""The objects that a simulation starts from: what the API server holds, plus and minus what-ifs.

Bodies are JSON as the API server shows them, by kind, namespace and name. Nothing here reads a
cluster or a file. ``cluster_read`` and ``what_if`` fill it, ``simulated_cluster`` reads it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpu_scheduler.api.unstructured import Body

NAMESPACED = ("GPUJob", "Pod", "Job", "PodGroup")


class SimulationError(ValueError):
    """Nothing can be simulated; the message says what is wrong and where."""


@dataclass(frozen=True, order=True, slots=True)
class Ref:
    """Names one object; ``namespace`` is empty for a kind that has none."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}"


def ref_of(kind: str, body: Body) -> Ref:
    """The name of an object as the API server shows it."""
    meta = body["metadata"]
    return Ref(kind, meta.get("namespace", "") if kind in NAMESPACED else "", meta["name"])


def owner_uid(body: Body) -> str:
    """The uid of the object that controls this one; empty when nobody does."""
    owners = body["metadata"].get("ownerReferences") or ()
    return next((str(o["uid"]) for o in owners if o.get("controller")), "")


@dataclass(slots=True)
class Objects:
    """What there is.

    Attributes:
        bodies: the objects.
        changes: the what-ifs, in words, in order.
        added: objects that were added.
        lost_nodes: nodes that were taken away.
    """

    bodies: dict[Ref, Body] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    added: set[Ref] = field(default_factory=set)
    lost_nodes: set[str] = field(default_factory=set)

    def of(self, kind: str) -> Iterator[Body]:
        """All objects of a kind."""
        return (body for ref, body in self.bodies.items() if ref.kind == kind)

    def of_same_kind(self, ref: Ref) -> Iterator[Ref]:
        """The names of all objects of the kind and namespace of one."""
        return (r for r in self.bodies if (r.kind, r.namespace) == (ref.kind, ref.namespace))

    def put(self, kind: str, body: Body) -> None:
        """Add an object, in place of one of the same name."""
        self.bodies[ref_of(kind, body)] = body

    def owned_by(self, uid: str) -> list[Ref]:
        """The objects that one controls, and those that these control."""
        own = [ref for ref, body in self.bodies.items() if owner_uid(body) == uid]
        return own + [
            ref for each in own for ref in self.owned_by(str(self.bodies[each]["metadata"]["uid"]))
        ]
