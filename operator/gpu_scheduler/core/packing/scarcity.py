"""The scarcity term: nodes that the workload needs more of than there is are not given away.

Spread what each pod shape of the target workload wants, scaled so that all together fill the
cluster, over the nodes that could run it, in proportion to their GPUs. Where more is wanted than
there is, the excess is the scarcity of the node. Constraints of every sort count: models, GPUs per
node, CPU and memory. Ours; docs/packing.md says what it is worth.
"""

from collections.abc import Sequence

import numpy as np

from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.assign import charge
from gpu_scheduler.core.model.devices import accepts
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.snapshot import NodeShape, Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing.target_workload import TargetWorkload

MOST = 100.0  # times what there is: keeps the score within its bits


def scarcity_milli(workload: TargetWorkload, snapshot: Snapshot) -> Ints:
    """Excess demand of each node, in thousandths of what the node has.

    A pod pays it in milli-GPU: on a node that is wanted by half more than there is, placing costs
    as much as 500 milli more of fragmentation.
    """
    nodes = snapshot.cluster.nodes
    shape = np.array(snapshot.node_shape, dtype=np.int64)
    cpu = np.array([node.cpu_milli for node in nodes], dtype=np.int64)
    memory = np.array([node.memory_bytes for node in nodes], dtype=np.int64)
    each = np.array([len(k) * DEVICE_MILLI for k in snapshot.node_shapes], dtype=np.int64)
    supply = each[shape] if len(shape) else np.zeros(0, dtype=np.int64)
    wanted, runs = _wanted(workload, snapshot.node_shapes, shape, cpu, memory)
    total = sum(wanted)
    scale = float(supply.sum()) / total if total else 0.0
    pressure = np.zeros(len(nodes))
    for milli, where in zip(wanted, runs, strict=True):
        pressure[where] += milli * scale / max(1.0, float(supply[where].sum()))
    excess: Ints = np.rint(np.clip(pressure - 1.0, 0.0, MOST) * 1000).astype(np.int64)
    return excess


def _wanted(
    workload: TargetWorkload, shapes: Sequence[NodeShape], shape: Ints, cpu: Ints, memory: Ints
) -> tuple[list[int], list[Flags]]:
    """Milli-GPU wanted by each pod shape that some node could run, and those nodes."""
    wanted, runs = [], []
    for pod_shape, count in workload.wanted:
        if not pod_shape.devices:
            continue
        costs = np.array([milli_on(pod_shape, k) for k in shapes], dtype=np.int64)
        where = (cpu >= pod_shape.cpu_milli) & (memory >= pod_shape.memory_bytes)
        if len(shape):
            where &= costs[shape] > 0
        if where.any():
            wanted.append(int(costs[shape[where]].min()) * count)
            runs.append(where)
    return wanted, runs


def milli_on(pod_shape: PodShape, shape: NodeShape) -> int:
    """Milli-GPU that a pod with one request takes on an empty node of a kind; 0 = cannot run."""
    request = pod_shape.devices[0]
    takes = [charge(request, d.usable_mib) for d in shape if accepts(pod_shape, d)]
    takes = sorted(milli for milli in takes if milli <= DEVICE_MILLI)[: request.count]
    return sum(takes) if len(takes) == request.count else 0
