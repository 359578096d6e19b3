"""What ``top`` shows, read from the cluster; what may not be read is left out, and said."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpu_scheduler.api.names import GROUP, LABEL_PATH, VERSION
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.holders.held import HeldDevice, HeldFraction, held
from gpu_scheduler.cli.holders.left_behind import OutlivingPod, left_behind
from gpu_scheduler.cli.use.read import UseView
from gpu_scheduler.cli.use.read import read as read_use
from gpu_scheduler.kube import errors, paths


@dataclass(frozen=True, slots=True)
class HoldersView:
    """What there is to show.

    Attributes:
        devices: with their holders, and what these use.
        gpunodes: whether any agent has ever reported.
        only: the namespace whose pods alone may be read; empty: all.
        projects: GPUProjects; empty if they were not asked for or may not be read.
        use: what is recorded of the work.
        blind: neither GPUNodes nor Nodes may be read: devices are those that seen pods hold.
        without_projects: they were asked for and may not be read.
        left: pods that hold GPUs of GPUJobs that are deleted.
    """

    devices: Sequence[HeldDevice]
    gpunodes: bool
    only: str = ""
    projects: Sequence[Body] = field(default_factory=tuple)
    use: UseView = field(default_factory=UseView)
    blind: bool = False
    without_projects: bool = False
    left: Sequence[OutlivingPod] = ()


def read(cluster: ClusterAccess, *, projects: bool = False, rooms: bool = False) -> HoldersView:
    """Look once.

    Args:
        cluster: that is asked.
        projects: GPUProjects are wanted too.
        rooms: what is held for pods that have no place yet is wanted too.

    Raises:
        Failed: nothing of it may be read.
        errors.ApiError: the cluster does not answer, or does not let us read pods at all.
    """
    nodes = items(cluster, paths.NODES)
    gpunodes = items(cluster, paths.of_group(GROUP, VERSION, "gpunodes"))
    blind = nodes is None and gpunodes is None
    only = ""
    pods = items(cluster, paths.PODS, LABEL_PATH)
    if pods is None:
        only = cluster.namespace
        pods = _own_pods(cluster, blind=blind)
    gpujobs = _gpujobs(cluster, only) if rooms else ()
    there: list[Body] | None = []
    if projects or only:
        there = items(cluster, paths.of_group(GROUP, VERSION, "gpuprojects"))
    use = read_use(cluster)
    devices = with_use(held(nodes or (), gpunodes or (), pods, gpujobs), use)
    if blind:
        for device in devices:
            device.trouble = ""  # it is not known what the nodes say of it
    return HoldersView(
        devices,
        bool(gpunodes),
        only,
        there or (),
        use,
        blind=blind,
        without_projects=there is None,
        left=left_behind(cluster.client, pods),
    )


def _gpujobs(cluster: ClusterAccess, namespace: str) -> Sequence[Body]:
    """Those that may be read; a cluster without the kind has none."""
    try:
        return items(cluster, paths.of_group(GROUP, VERSION, "gpujobs", namespace)) or ()
    except errors.NotFound:
        return ()


def _own_pods(cluster: ClusterAccess, *, blind: bool) -> list[Body]:
    """Pods of one namespace, where those of all may not be read."""
    try:
        return list(cluster.client.items(paths.core("pods", cluster.namespace), LABEL_PATH))
    except errors.Forbidden:
        if not blind:
            raise
        raise Failed(
            "you may read neither gpunodes.gpu-scheduler.io nor nodes: an administrator lets you "
            f"with rbac.inventoryReaders of the chart; nor pods of namespace {cluster.namespace}: "
            "-n says another one"
        ) from None


def with_use(devices: list[HeldDevice], use: UseView) -> list[HeldDevice]:
    """The same, with what GPUUsage says of holders of whom no agent's GPUNode does."""
    for device in devices:
        device.shares = [_with_use(share, use) for share in device.shares]
    return devices


def _with_use(share: HeldFraction, use: UseView) -> HeldFraction:
    if share.percent is not None:
        return share
    found = use.find(share.namespace, share.name, share.kind)
    return share if found is None else replace(share, percent=found.busy.now)


def items(cluster: ClusterAccess, path: str, selector: str = "") -> list[Body] | None:
    """All of a collection; None: it may not be read."""
    try:
        return list(cluster.client.items(path, selector))
    except errors.Forbidden:
        return None
