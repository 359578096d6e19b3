"""Tries the driver's own limit: a small one on the agent's own cgroup, and a probe inside it.

The agent itself holds no GPU memory, so its cgroup is free to be limited for a moment. Called by
the agent at its start, where the driver has such limits at all, and by the self-test on demand.
"""

import os
from pathlib import Path

from gpu_scheduler.agent import cgroup_tree
from gpu_scheduler.agent.kernel_limits import LIMIT_MAX, DriverLimits, LimitError
from gpu_scheduler.agent.selftest import LIMIT_MIB, Layer, Run, judge
from gpu_scheduler.core.model.units import MIB


def kernel_layer(limits: DriverLimits, root: Path, uuid: str, run: Run) -> Layer:
    """Whether the driver stops a process at a limit.

    Args:
        limits: The driver's functions.
        root: Of the node's cgroups.
        uuid: The device to try with.
        run: Starts the probe.
    """
    folder = cgroup_tree.leaf_of_process(os.getpid(), root)
    if folder is None:
        return Layer("kernel", "untested", f"the agent's own cgroup is not below {root}")
    try:
        limits.set(uuid, folder, LIMIT_MIB * MIB)
    except LimitError as error:
        return Layer("kernel", "failed", str(error))
    try:
        return judge("kernel", run("driver", {"CUDA_VISIBLE_DEVICES": uuid}))
    finally:
        limits.set(uuid, folder, LIMIT_MAX)
