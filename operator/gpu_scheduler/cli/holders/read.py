"""What ``top`` shows, read from the cluster; what may not be read is left out, and said."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu_scheduler.api.names import GROUP, LABEL_PATH, VERSION
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.holders.held import HeldDevice, held
from gpu_scheduler.cli.where import ClusterAccess
from gpu_scheduler.kube import errors, paths


@dataclass(frozen=True, slots=True)
class HoldersView:
    """What there is to show.

    Attributes:
        devices: with their holders.
        gpunodes: whether any agent has ever reported.
        only: the namespace whose pods alone may be read; empty: all.
        projects: GPUProjects; empty if they were not asked for or may not be read.
    """

    devices: Sequence[HeldDevice]
    gpunodes: bool
    only: str = ""
    projects: Sequence[Body] = field(default_factory=tuple)


def read(cluster: ClusterAccess, *, projects: bool = False) -> HoldersView:
    """Look once.

    Raises:
        Failed: neither Nodes nor GPUNodes may be read.
        errors.ApiError: the cluster does not answer, or does not let us read pods at all.
    """
    nodes = items(cluster, paths.NODES)
    gpunodes = items(cluster, paths.of_group(GROUP, VERSION, "gpunodes"))
    if nodes is None and gpunodes is None:
        raise Failed(
            "you may read neither gpunodes.gpu-scheduler.io nor nodes: an administrator lets you "
            "with rbac.inventoryReaders of the chart; kubectl gpu list shows your own jobs"
        )
    only = ""
    pods = items(cluster, paths.PODS, LABEL_PATH)
    if pods is None:
        only = cluster.namespace
        pods = list(cluster.client.items(paths.core("pods", only), LABEL_PATH))
    there = (
        items(cluster, paths.of_group(GROUP, VERSION, "gpuprojects")) if projects or only else ()
    )
    return HoldersView(held(nodes or (), gpunodes or (), pods), bool(gpunodes), only, there or ())


def items(cluster: ClusterAccess, path: str, selector: str = "") -> list[Body] | None:
    """All of a collection; None: it may not be read."""
    try:
        return list(cluster.client.items(path, selector))
    except errors.Forbidden:
        return None
