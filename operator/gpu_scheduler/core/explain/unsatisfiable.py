"""Why no node of the cluster could hold a pod, even when empty: the first thing that is missing.

Asked in the order in which a user can act on the answer: GPUs at all, model, compute capability,
memory of a GPU, number of GPUs per node, node selection, CPU and memory. Where another number of
GPUs would do, the nearest ones are named. Called by ``reasons`` for pods that no node could hold.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from gpu_scheduler.core.explain import counts
from gpu_scheduler.core.model import fit, wording
from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.devices import Chooser, qualifies
from gpu_scheduler.core.model.products import means
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.snapshot import DeviceType, Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI


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
        return f"needs {wording.needs(pod_shape)}; {_missing_devices(chooser, snapshot)}"
    matching = [node for node in with_devices if fit.matches(pod_shape.where, node)]
    if not matching:
        return f"needs {wording.needs(pod_shape)}; {_refusals(pod_shape, with_devices)}"
    return _missing_resources(pod_shape, matching) + counts.would_fit(pod_shape, snapshot)


def _missing_devices(chooser: Chooser, snapshot: Snapshot) -> str:
    pod_shape = chooser.pod_shape
    if not snapshot.cluster.nodes:
        return "the cluster has no nodes"
    devices = sorted({device for shape in snapshot.node_shapes for device in shape})
    if not devices:
        hidden = any(node.foreign for node in snapshot.cluster.nodes)
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
    if nearest := counts.nearest(pod_shape, snapshot):
        return nearest
    most = max(len(chooser.eligible(shape)) for shape in range(len(snapshot.node_shapes)))
    whole = sum(r.count for r in pod_shape.devices if r.milli == DEVICE_MILLI)
    if max(whole, *(request.count for request in pod_shape.devices)) > most:
        return f"no node has more than {wording.gpu_count(most)} of that kind"
    return (
        "no node can hold these together, even when empty:"
        f" at most {wording.gpu_count(most)} of that kind on a node"
    )


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


def _missing_resources(pod_shape: PodShape, nodes: Sequence[NodeInfo]) -> str:
    def beyond(
        what: str,
        need: int,
        have: Callable[[NodeInfo], int],
        words: Callable[[int], str],
        words_for_most: Callable[[int], str] | None = None,
    ) -> str:
        most = max(have(node) for node in nodes)
        if need <= most:
            return ""
        return (
            f"needs {words(need)} {what}; the largest of the"
            f" {wording.nodes(len(nodes))} that it may use has {(words_for_most or words)(most)}"
        )

    return (
        beyond("CPU", pod_shape.cpu_milli, lambda n: n.cpu_milli, wording.cpu)
        or beyond(
            "memory", pod_shape.memory_bytes, lambda n: n.memory_bytes, wording.memory, wording.room
        )
        or beyond(
            "ephemeral storage",
            pod_shape.ephemeral_bytes,
            lambda n: n.ephemeral_bytes,
            wording.memory,
            wording.room,
        )
        or beyond("pod slot", 1, lambda n: n.pods, str)
        or (
            f"needs {wording.needs(pod_shape)}, {wording.cpu(pod_shape.cpu_milli)} CPU and"
            f" {wording.memory(pod_shape.memory_bytes)} memory; no single node has all of that"
        )
    )
