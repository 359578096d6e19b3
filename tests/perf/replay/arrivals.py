"""Streams of pods for the published protocol: everybody arrives, nobody leaves.

Nodes in a random order, which decides between equal scores. The pods of the trace in a random
order, then more of them, drawn with replacement, until they ask for ``arrive`` times the GPUs there
are; a trace that asks for more loses random pods. Source: Weng et al., USENIX ATC 2023, section 6,
and the scripts published with it. The seed decides everything.
"""

from collections.abc import Sequence
from random import Random

from tests.perf.replay.trace import TraceNode

from gpu_scheduler.core.model.cluster import Cluster, NodeInfo
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.units import DEVICE_MILLI

_USABLE_MIB = 16_000  # traces do not know the memory of devices
_NO_LIMIT = 1 << 50


def cluster_of(nodes: Sequence[TraceNode]) -> Cluster:
    """An empty cluster of these nodes, in this order."""
    cluster = Cluster()
    for node in nodes:
        info = NodeInfo(
            name=node.name,
            cpu_milli=node.cpu_milli,
            memory_bytes=node.memory_bytes,
            ephemeral_bytes=_NO_LIMIT,
            pods=_NO_LIMIT,
        )
        cluster.add_empty(info)
        cluster.dev_id += [f"{node.name}/{i}" for i in range(node.gpus)]
        cluster.dev_model += [node.model] * node.gpus
        cluster.dev_usable_mib += [_USABLE_MIB] * node.gpus
        cluster.dev_compute += [(0, 0)] * node.gpus
        cluster.dev_healthy += [True] * node.gpus
        cluster.free_milli += [DEVICE_MILLI] * node.gpus
        cluster.free_mib += [_USABLE_MIB] * node.gpus
        cluster.first.append(len(cluster.dev_id))
    return cluster


def in_random_order(nodes: Sequence[TraceNode], random: Random) -> list[TraceNode]:
    """The nodes, shuffled."""
    return random.sample(nodes, len(nodes))


def arriving(
    pods: Sequence[PodShape], capacity_milli: int, arrive: float, random: Random
) -> list[PodShape]:
    """The pods in the order in which they arrive.

    Args:
        pods: those of the trace.
        capacity_milli: milli-GPU of the cluster.
        arrive: demand in the end, in capacities.
        random: decides the order and the draws.
    """
    most = round(arrive * capacity_milli)
    stream = random.sample(pods, len(pods))
    demand = sum(pod.nominal_milli for pod in stream)
    if not demand:
        return stream
    while demand > most:
        demand -= stream.pop(random.randrange(len(stream))).nominal_milli
    while True:
        pod = random.choice(pods)
        if demand + pod.nominal_milli > most:
            return stream
        demand += pod.nominal_milli
        stream.append(pod)
