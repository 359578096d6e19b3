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
from gpu_scheduler.core.model.request import PodKind
from gpu_scheduler.core.model.snapshot import DeviceKind, Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI


def missing(chooser: Chooser, snapshot: Snapshot) -> str:
    """A sentence that names what no node has."""
    pod_kind = chooser.pod_kind
    suits = [chooser.fits_empty(kind) for kind in range(len(snapshot.kinds))]
    with_devices = [
        node
        for node, kind in zip(snapshot.cluster.nodes, snapshot.kind, strict=True)
        if suits[kind]
    ]
    if not with_devices:
        return f"needs {wording.needs(pod_kind)}; {_missing_devices(chooser, snapshot)}"
    matching = [node for node in with_devices if fit.matches(pod_kind.where, node)]
    if not matching:
        return f"needs {wording.needs(pod_kind)}; {_refusals(pod_kind, with_devices)}"
    return _missing_resources(pod_kind, matching) + counts.would_fit(pod_kind, snapshot)


def _missing_devices(chooser: Chooser, snapshot: Snapshot) -> str:
    pod_kind = chooser.pod_kind
    if not snapshot.cluster.nodes:
        return "the cluster has no nodes"
    devices = sorted({device for kind in snapshot.kinds for device in kind})
    if not devices:
        hidden = any(node.foreign for node in snapshot.cluster.nodes)
        return "no node lists a GPU" if hidden else "the cluster has no GPU nodes"
    named = [d for d in devices if not pod_kind.models or _is_one_of(pod_kind.models, d)]
    if not named:
        models = sorted({device.model for device in devices})
        return f"no GPU is of that model; models in the cluster: {', '.join(models)}"
    suited = [device for device in named if qualifies(pod_kind, device)]
    if not suited:
        wanted, highest = pod_kind.min_compute, max(device.compute for device in named)
        return (
            f"compute capability {wanted[0]}.{wanted[1]} is asked for,"
            f" the highest there is {highest[0]}.{highest[1]}"
        )
    largest = max(device.usable_mib for device in suited)
    if any(request.mib > largest for request in pod_kind.devices):
        return f"the largest such GPU has {largest} MiB usable"
    if nearest := counts.nearest(pod_kind, snapshot):
        return nearest
    most = max(len(chooser.eligible(kind)) for kind in range(len(snapshot.kinds)))
    whole = sum(r.count for r in pod_kind.devices if r.milli == DEVICE_MILLI)
    if max(whole, *(request.count for request in pod_kind.devices)) > most:
        return f"no node has more than {wording.gpu_count(most)} of that kind"
    return (
        "no node can hold these together, even when empty:"
        f" at most {wording.gpu_count(most)} of that kind on a node"
    )


def _is_one_of(models: Sequence[str], device: DeviceKind) -> bool:
    return any(means(model, device.model) for model in models)


def _refusals(pod_kind: PodKind, nodes: Sequence[NodeInfo]) -> str:
    """How many nodes fall away for which cause."""
    causes = Counter(refusal(pod_kind, node) for node in nodes)
    listed = ", ".join(
        f"{count} {cause}" for cause, count in sorted(causes.items(), key=lambda c: (-c[1], c[0]))
    )
    such = " with such GPUs" if pod_kind.devices else ""
    return f"of {wording.nodes(len(nodes))}{such}: {listed}"


def refusal(pod_kind: PodKind, node: NodeInfo) -> str:
    """Why a pod does not accept a node, of one that it does not."""
    if not fit.selector_holds(pod_kind.where, node):
        labels = ", ".join(f"{key}={value}" for key, value in pod_kind.where.selector)
        return f"without the labels of the node selector ({labels})"
    if not fit.affinity_holds(pod_kind.where, node):
        return "outside the required node affinity"
    taint = fit.untolerated(pod_kind.where, node)
    if taint is None:
        raise ValueError(f"node {node.name} matches")
    value = f"={taint.value}" if taint.value else ""
    return f"with the taint {taint.key}{value}:{taint.effect}, not tolerated"


def _missing_resources(pod_kind: PodKind, nodes: Sequence[NodeInfo]) -> str:
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
        beyond("CPU", pod_kind.cpu_milli, lambda n: n.cpu_milli, wording.cpu)
        or beyond(
            "memory", pod_kind.memory_bytes, lambda n: n.memory_bytes, wording.memory, wording.room
        )
        or beyond(
            "ephemeral storage",
            pod_kind.ephemeral_bytes,
            lambda n: n.ephemeral_bytes,
            wording.memory,
            wording.room,
        )
        or beyond("pod slot", 1, lambda n: n.pods, str)
        or (
            f"needs {wording.needs(pod_kind)}, {wording.cpu(pod_kind.cpu_milli)} CPU and"
            f" {wording.memory(pod_kind.memory_bytes)} memory; no single node has all of that"
        )
    )
