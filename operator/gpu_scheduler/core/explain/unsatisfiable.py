"""Why no node of the cluster could hold a pod, even when empty: the first thing that is missing.

Asked in the order in which a user can act on the answer: GPUs at all, model, compute capability,
memory of a GPU, number of GPUs per node, node selection, CPU and memory. Where another number of
GPUs would do, the nearest ones are named: a node gives any number up to what it has, unless its
GPUs are of a class that offers certain numbers only.
"""

from collections import Counter
from collections.abc import Sequence

from gpu_scheduler.core.explain.resource_words import resources
from gpu_scheduler.core.model import fit, wording
from gpu_scheduler.core.model.catalogue import either
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.devices import Chooser, qualifies
from gpu_scheduler.core.model.pod_request import holds
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.snapshot import DeviceType, NodeShape, Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.products import means, spelt


def missing(chooser: Chooser, snapshot: Snapshot) -> str:
    """A sentence that names what no node has."""
    pod_shape = chooser.pod_shape
    suits = [chooser.fits_empty(shape) for shape in range(len(snapshot.node_shapes))]
    with_devices = [
        node
        for node, shape in zip(snapshot.cluster.nodes, snapshot.node_shape, strict=True)
        if suits[shape]
    ]
    if not with_devices:
        nodes = (node for node in snapshot.cluster.nodes if node.not_listed)
        hidden = [f"{node.name} {node.not_listed}" for node in nodes]
        said = [f"needs {wording.needs(pod_shape)}", _missing_devices(chooser, snapshot)]
        return "; ".join((*said, wording.names(hidden, "; ")) if hidden else said)
    matching = [node for node in with_devices if fit.matches(pod_shape.where, node)]
    if not matching:
        return f"needs {wording.needs(pod_shape)}; {_refusals(pod_shape, with_devices)}"
    return _missing_resources(pod_shape, matching) + _would_fit(pod_shape, snapshot)


def _missing_devices(chooser: Chooser, snapshot: Snapshot) -> str:
    pod_shape = chooser.pod_shape
    if not snapshot.cluster.nodes:
        return "the cluster has no nodes"
    devices = sorted({device for shape in snapshot.node_shapes for device in shape})
    if not devices:
        hidden = any(node.foreign or node.not_listed for node in snapshot.cluster.nodes)
        return "no node lists a GPU" if hidden else "the cluster has no GPU nodes"
    named = [d for d in devices if not pod_shape.models or _is_one_of(pod_shape.models, d)]
    if not named:
        models = sorted({device.model for device in devices})
        return f"no GPU is of that model; models in the cluster: {', '.join(models)}"
    suited = [device for device in named if qualifies(pod_shape, device)]
    if not suited:
        wanted, highest = pod_shape.min_compute, max(device.compute for device in named)
        return (
            f"compute capability {wanted[0]}.{wanted[1]} is asked for,"
            f" the highest there is {highest[0]}.{highest[1]}"
        )
    largest = max(device.usable_mib for device in suited)
    if any(request.mib > largest for request in pod_shape.devices):
        return f"the largest such GPU has {largest} MiB usable"
    if nearest := _nearest(pod_shape, snapshot):
        return nearest
    most = max(len(chooser.eligible(shape)) for shape in range(len(snapshot.node_shapes)))
    whole = sum(r.count for r in pod_shape.devices if r.milli == DEVICE_MILLI)
    if max(whole, *(request.count for request in pod_shape.devices)) > most:
        return f"no node has more than {wording.gpu_count(most)} of that kind"
    return (
        "no node can hold these together, even when empty:"
        f" at most {wording.gpu_count(most)} of that kind on a node"
    )


def _possible(pod_shape: PodShape, snapshot: Snapshot) -> list[int]:
    """The numbers of whole GPUs that some node could give to the pod; rising."""
    shapes = {
        shape
        for node, shape in zip(snapshot.cluster.nodes, snapshot.node_shape, strict=True)
        if holds(pod_shape, node) and fit.matches(pod_shape.where, node)
    }
    return sorted(
        {count for shape in shapes for count in _of_shape(pod_shape, snapshot.node_shapes[shape])}
    )


def _nearest(pod_shape: PodShape, snapshot: Snapshot) -> str:
    """'nodes give 2 or 4 T4; 3 is not possible on any node'; empty when the number is no matter."""
    wanted, found = _wanted_whole(pod_shape), _possible(pod_shape, snapshot)
    if not wanted or not found or wanted in found:
        return ""
    around = _around(wanted, found, pod_shape, snapshot)
    return f"nodes give {around}; {wanted} is not possible on any node"


def _would_fit(pod_shape: PodShape, snapshot: Snapshot) -> str:
    """'; 4 V100 would fit', where CPU and memory stand in the way; empty when nothing would."""
    wanted, found = _wanted_whole(pod_shape), _possible(pod_shape, snapshot)
    return f"; {_around(wanted, found, pod_shape, snapshot)} would fit" if wanted and found else ""


def _wanted_whole(pod_shape: PodShape) -> int:
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


def _is_one_of(models: Sequence[str], device: DeviceType) -> bool:
    return any(means(model, device.model) for model in models)


def _refusals(pod_shape: PodShape, nodes: Sequence[NodeInfo]) -> str:
    """How many nodes fall away for which cause."""
    causes = Counter(refusal(pod_shape, node) for node in nodes)
    listed = ", ".join(
        f"{count} {cause}" for cause, count in sorted(causes.items(), key=lambda c: (-c[1], c[0]))
    )
    such = " with such GPUs" if pod_shape.devices else ""
    return f"of {wording.nodes(len(nodes))}{such}: {listed}"


def refusal(pod_shape: PodShape, node: NodeInfo) -> str:
    """Why a pod does not accept a node, of one that it does not."""
    if not fit.selector_holds(pod_shape.where, node):
        labels = ", ".join(f"{key}={value}" for key, value in pod_shape.where.selector)
        return f"without the labels of the node selector ({labels})"
    if not fit.affinity_holds(pod_shape.where, node):
        return "outside the required node affinity"
    taint = fit.untolerated(pod_shape.where, node)
    if taint is None:
        raise ValueError(f"node {node.name} matches")
    value = f"={taint.value}" if taint.value else ""
    return f"with the taint {taint.key}{value}:{taint.effect}, not tolerated"


def too_small(pod_shape: PodShape, node: NodeInfo) -> str:
    """What one node has too little of, even when empty; empty: it has enough of each."""
    for each in resources(pod_shape):
        total = each.amount(node)
        if total < each.amount(pod_shape):
            return f"has {each.there(total)} {each.name} in all"
    return "" if node.pods else "takes no pods at all"


def _missing_resources(pod_shape: PodShape, nodes: Sequence[NodeInfo]) -> str:
    for each in resources(pod_shape):
        need, most = each.amount(pod_shape), max(each.amount(node) for node in nodes)
        if need > most:
            return (
                f"needs {each.needed(need)} {each.name}; the largest of the"
                f" {wording.nodes(len(nodes))} that it may use has {each.there(most)}"
            )
    if not any(node.pods for node in nodes):
        those = f"the {wording.nodes(len(nodes))} that it may use"
        return f"needs 1 pod slot; the largest of {those} has 0"
    return (
        f"needs {wording.needs(pod_shape)}, {wording.cpu(pod_shape.cpu_milli)} CPU and"
        f" {wording.memory(pod_shape.memory_bytes)} memory; no single node has all of that"
    )
