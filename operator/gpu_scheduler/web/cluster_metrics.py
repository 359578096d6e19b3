"""Metrics of nodes, their GPUs and projects, read off the ledger and the last plan."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.web.collector import filled, labelled


def nodes(state: ClusterState, cluster: Cluster, piece_milli: int) -> Iterator[Metric]:
    """Of nodes and devices; ``piece_milli``: smaller free parts of a GPU are pieces."""
    devices = {
        node.name: found[1] for node in cluster.nodes if (found := state.ledger.node(node.name))
    }
    ratio = GaugeMetricFamily(
        "gpusched_gpu_allocated_ratio",
        "Share of a device that is given out.",
        labels=["node", "gpu", "uuid", "model"],
    )
    memory = GaugeMetricFamily(
        "gpusched_gpu_memory_allocated_bytes",
        "Memory of a device that is given out.",
        labels=["node", "gpu", "uuid", "model"],
    )
    held: dict[str, int] = {}
    for n, node in enumerate(cluster.nodes):
        first, held[node.name] = cluster.first[n], 0
        for d, device in enumerate(devices.get(node.name, ()), first):
            milli = DEVICE_MILLI - cluster.free_milli[d]
            held[node.name] += milli
            uuid = "" if device.id == str(device.index) else device.id  # labels know none
            labels = [node.name, str(device.index), uuid, device.model]
            ratio.add_metric(labels, milli / DEVICE_MILLI)
            memory.add_metric(labels, (device.usable_mib - cluster.free_mib[d]) * MIB)
    yield ratio
    yield memory
    counts = ((name, len(each)) for name, each in devices.items())
    yield labelled(GaugeMetricFamily, "gpusched_node_gpus", "GPUs.", "node", counts)
    yield labelled(
        GaugeMetricFamily,
        "gpusched_node_gpus_allocated",
        "Of these, given out.",
        "node",
        ((name, milli / DEVICE_MILLI) for name, milli in held.items()),
    )
    yield GaugeMetricFamily(
        "gpusched_fragmented_gpus",
        "GPUs with a free part below the smallest share that waits; where none does, below 0.5.",
        value=_fragmented(cluster, piece_milli),
    )
    agents = state.nodes.agents
    yield labelled(
        GaugeMetricFamily,
        "gpusched_agent_silent",
        "1 while a node's agent renews its Lease no more: it takes no new pods.",
        "node",
        ((node, float(bool(agents.silence(node)))) for node in sorted(agents.devices)),
    )
    strange = sorted(state.ledger.unlisted.items())
    yield labelled(
        GaugeMetricFamily,
        "gpusched_unlisted_device_milli",
        "Milli-GPU that pods hold on devices that their node does not list; it takes no others.",
        "node",
        ((node, sum(each.values())) for node, each in strange),
    )


def _fragmented(cluster: Cluster, piece_milli: int) -> int:
    return sum(
        cluster.dev_healthy[d] and 0 < cluster.free_milli[d] < piece_milli
        for n, node in enumerate(cluster.nodes)
        if not node.unschedulable
        for d in range(cluster.first[n], cluster.first[n + 1])
    )


def projects(
    state: ClusterState, cluster: Cluster, shares: Mapping[ProjectName, int]
) -> Iterator[Metric]:
    """Of projects; ``shares``: their fair shares in milli-GPU."""
    known = {name: record.project for name, record in sorted(state.projects.records.items())}
    held = {name: cluster.allocated_milli.get(name, 0) for name in known}
    table: tuple[tuple[str, str, Mapping[ProjectName, int]], ...] = (
        ("fair_share", "Due.", {name: shares.get(name, 0) for name in known}),
        ("quota", "Guaranteed.", {name: each.quota_milli for name, each in known.items()}),
        (
            "limit",
            "Most that it may hold; absent: no limit.",
            {n: each.limit_milli for n, each in known.items() if each.limit_milli is not None},
        ),
        ("allocated", "Held.", held),
        (
            "borrowed",
            "Of these, above the quota.",
            {name: max(0, held[name] - each.quota_milli) for name, each in known.items()},
        ),
    )
    for name, text, milli in table:
        gpus = (([of], each / DEVICE_MILLI) for of, each in milli.items())
        family = GaugeMetricFamily(f"gpusched_project_{name}_gpus", text, labels=["project"])
        yield filled(family, gpus)
