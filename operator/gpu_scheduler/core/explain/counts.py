"""Which numbers of whole GPUs the nodes can give to a pod, and the nearest to the one asked for.

A node gives any number up to what it has, unless its GPUs are of a class that offers certain
numbers only. CPU, memory and node selection of the pod are counted in, so what is named would
really fit on an empty node. Called by ``unsatisfiable``.
"""

from gpu_scheduler.core.model import fit
from gpu_scheduler.core.model.catalogue import either
from gpu_scheduler.core.model.devices import qualifies
from gpu_scheduler.core.model.pod_request import holds
from gpu_scheduler.core.model.products import means, spelt
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.snapshot import NodeShape, Snapshot


def possible(pod_shape: PodShape, snapshot: Snapshot) -> list[int]:
    """The numbers of whole GPUs that some node could give to the pod; rising."""
    shapes = {
        shape
        for node, shape in zip(snapshot.cluster.nodes, snapshot.node_shape, strict=True)
        if holds(pod_shape, node) and fit.matches(pod_shape.where, node)
    }
    return sorted(
        {count for shape in shapes for count in _of_shape(pod_shape, snapshot.node_shapes[shape])}
    )


def nearest(pod_shape: PodShape, snapshot: Snapshot) -> str:
    """'nodes give 2 or 4 T4; 3 is not possible on any node'; empty when the number is no matter."""
    wanted, found = _wanted(pod_shape), possible(pod_shape, snapshot)
    if not wanted or not found or wanted in found:
        return ""
    around = _around(wanted, found, pod_shape, snapshot)
    return f"nodes give {around}; {wanted} is not possible on any node"


def would_fit(pod_shape: PodShape, snapshot: Snapshot) -> str:
    """'; 4 V100 would fit', where CPU and memory stand in the way; empty when nothing would."""
    wanted, found = _wanted(pod_shape), possible(pod_shape, snapshot)
    return f"; {_around(wanted, found, pod_shape, snapshot)} would fit" if wanted and found else ""


def _wanted(pod_shape: PodShape) -> int:
    return pod_shape.whole_devices if len(pod_shape.devices) == 1 else 0


def _of_shape(pod_shape: PodShape, shape: NodeShape) -> set[int]:
    devices = [device for device in shape if qualifies(pod_shape, device)]
    return {
        count
        for count in range(1, len(devices) + 1)
        if count <= sum(1 for d in devices if not d.counts or count in d.counts)
    }


def _around(wanted: int, found: list[int], pod_shape: PodShape, snapshot: Snapshot) -> str:
    below = [count for count in found if count < wanted][-1:]
    above = [count for count in found if count > wanted][:1]
    near = below + above
    return f"{either(near)} {_name(pod_shape, snapshot) or ('GPU' if near[-1] == 1 else 'GPUs')}"


def _name(pod_shape: PodShape, snapshot: Snapshot) -> str:
    """The models asked for as their product names spell them; empty where any will do."""
    products = sorted({device.model for shape in snapshot.node_shapes for device in shape})
    names = []
    for part in pod_shape.models:
        product = next((p for p in products if means(part, p)), None)
        if product is not None:
            names.append(spelt(part, product))
    return " or ".join(names)
