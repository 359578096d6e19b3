"""Small builders for the planner's values: clusters, pod shapes, pods, jobs, projects."""

from collections.abc import Iterable

from gpu_scheduler.core.model.cluster import Cluster, NodeInfo, Taint
from gpu_scheduler.core.model.request import (
    DeviceRequest,
    JobKey,
    NodeFilter,
    PodShape,
    PodUID,
    Project,
    ProjectName,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.model.resources import scalars_of

GIB = 1 << 30

A100 = "NVIDIA-A100-PCIE-40GB"
A30 = "NVIDIA-A30"
USABLE_MIB = {
    A100: 40448,
    A30: 24062,
    "NVIDIA-A100-SXM4-80GB": 81050,
    "Tesla-T4": 15109,
    "Tesla-K80": 11441,
    "Tesla-P4": 7611,
    "Tesla-P100-PCIE-16GB": 16280,
    "Tesla-V100-SXM2-16GB": 16160,
}
COMPUTE = {
    A100: (8, 0),
    A30: (8, 0),
    "NVIDIA-A100-SXM4-80GB": (8, 0),
    "Tesla-T4": (7, 5),
    "Tesla-K80": (3, 7),
    "Tesla-P4": (6, 1),
    "Tesla-P100-PCIE-16GB": (6, 0),
    "Tesla-V100-SXM2-16GB": (7, 0),
}


class ClusterBuilder:
    """Adds nodes one by one; everything free until ``held`` says otherwise."""

    def __init__(self) -> None:
        self._cluster = Cluster()

    def node(
        self,
        name: str,
        gpus: int = 2,
        model: str = A100,
        *,
        models: Iterable[str] | None = None,
        labels: dict[str, str] | None = None,
        taints: tuple[Taint, ...] = (),
        unschedulable: str = "",
        cpu_milli: int = 128_000,
        memory_bytes: int = 512 * GIB,
        pods: int = 110,
        scalars: dict[str, int] | None = None,
        unhealthy: Iterable[int] = (),
    ) -> "ClusterBuilder":
        """A node with ``gpus`` devices of ``model``, or one device per entry of ``models``."""
        c = self._cluster
        info = NodeInfo(
            name=name,
            labels={"kubernetes.io/hostname": name, **(labels or {})},
            taints=taints,
            unschedulable=unschedulable,
            cpu_milli=cpu_milli,
            memory_bytes=memory_bytes,
            ephemeral_bytes=800 * GIB,
            pods=pods,
            scalars=scalars_of(scalars or {}),
        )
        c.add_empty(info)
        sick = set(unhealthy)
        for i, each in enumerate(models if models is not None else [model] * gpus):
            c.dev_id.append(f"{name}/{i}")
            c.dev_model.append(each)
            c.dev_usable_mib.append(USABLE_MIB[each])
            c.dev_compute.append(COMPUTE[each])
            c.dev_healthy.append(i not in sick)
            c.free_milli.append(1000)
            c.free_mib.append(USABLE_MIB[each])
        c.first.append(len(c.dev_id))
        return self

    def held(self, device: str, milli: int, project: str = "other") -> "ClusterBuilder":
        """Give a share of a device (by id, e.g. 'a/0') to a project."""
        c = self._cluster
        d = c.dev_id.index(device)
        c.free_milli[d] -= milli
        c.free_mib[d] -= milli * c.dev_usable_mib[d] // 1000
        name = ProjectName(project)
        c.allocated_milli[name] = c.allocated_milli.get(name, 0) + milli
        key = name, c.dev_model[d]
        c.held_by_model[key] = c.held_by_model.get(key, 0) + milli
        return self

    def allocated(self, project: str, milli: int) -> "ClusterBuilder":
        """Charge a project without a device."""
        self._cluster.allocated_milli[ProjectName(project)] = milli
        return self

    def obj(self) -> Cluster:
        return self._cluster


def dell_saas() -> ClusterBuilder:
    """Four servers with two A100-40 each."""
    builder = ClusterBuilder()
    for i in range(4):
        builder.node(f"dell-{i}")
    return builder


def dell_selfhosted() -> ClusterBuilder:
    """Three servers with two A100-40 each and one with a single A30-24."""
    builder = ClusterBuilder()
    for i in range(3):
        builder.node(f"dell-{i}")
    return builder.node("dell-3", 1, A30)


def pod_shape(
    milli: int = 0,
    *,
    count: int = 1,
    mib: int = 0,
    containers: Iterable[DeviceRequest] | None = None,
    models: tuple[str, ...] = (),
    min_compute: tuple[int, int] = (0, 0),
    cpu_milli: int = 0,
    memory_bytes: int = 0,
    where: NodeFilter | None = None,
    scalars: dict[str, int] | None = None,
) -> PodShape:
    """A pod shape; ``milli`` or ``mib`` make one request for container 0, neither makes none."""
    requests = (DeviceRequest(0, count, milli, mib),) if milli or mib else ()
    return PodShape(
        devices=tuple(containers) if containers is not None else requests,
        models=models,
        min_compute=min_compute,
        cpu_milli=cpu_milli,
        memory_bytes=memory_bytes,
        where=where or NodeFilter(),
        scalars=scalars_of(scalars or {}),
    )


def job(
    name: str,
    what: PodShape,
    pods: int = 1,
    *,
    project: str = "team-a",
    interactive: bool = False,
    priority: int = 50,
    created: float = 0.0,
    avoid: Iterable[str] = (),
) -> WaitingJob:
    """A job with ``pods`` waiting pods of one pod shape, named ``<name>-<index>``."""
    return WaitingJob(
        key=JobKey(f"ns/{name}"),
        project=ProjectName(project),
        pods=tuple(
            WaitingPod(PodUID(f"{name}-{i}"), f"{name}-{i}", what, frozenset(avoid))
            for i in range(pods)
        ),
        interactive=interactive,
        priority=priority,
        created=created,
    )


def project(
    name: str = "team-a",
    quota_milli: int = 1_000_000,
    limit_milli: int | None = None,
    weight: int = 1,
) -> Project:
    return Project(ProjectName(name), quota_milli, limit_milli, weight)


def projects(*those: Project) -> dict[ProjectName, Project]:
    """By name; without arguments one project with room for everything."""
    return {p.name: p for p in those or (project(),)}
