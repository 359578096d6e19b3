"""How many unmade pods of a job the planner looks at: not more than could run, and some beside.

A sweep of 100,000 trials at once does not make the planner look at as many: what waits beyond the
next few tells it nothing.
"""

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.window import could_run
from gpu_scheduler.state.jobs.role_requests import RoleRequest

SPARE = 20  # pods beside those that could run


def most_prospective(cluster: Cluster, ceiling_milli: int, ask: RoleRequest) -> int:
    """Pods that the GPUs could hold if they were empty, and ``SPARE``.

    Args:
        cluster: its devices are looked at.
        ceiling_milli: what the project may hold.
        ask: what one pod asks for.
    """
    devices = zip(cluster.dev_model, cluster.dev_usable_mib, strict=True)
    return could_run(ask.devices, ask.models, devices, ceiling_milli) + SPARE
