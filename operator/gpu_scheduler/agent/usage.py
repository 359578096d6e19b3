"""Who is on which device: processes of a sample, matched with the containers of this node.

A pure function of the sample and of what the pods were granted. A process belongs to a container
only on devices that this container was granted; elsewhere it is foreign, as is everything that no
allocation explains. Daemons of the driver are known by name, but in the namespace of a project a
name proves nothing.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gpu_scheduler.agent.cgroup import Owner, owner
from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.sampler import DeviceProcess, Sample
from gpu_scheduler.api.gpunode import ForeignProcess
from gpu_scheduler.api.orders import Neighbour
from gpu_scheduler.core.model.units import MIB

_ROUND_MIB = 64  # what is reported of foreign memory, so that small changes are no news
_NAME_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Use:
    """What a container holds of one device it was granted."""

    uuid: str
    cap_mib: int
    processes: tuple[DeviceProcess, ...]
    readable: bool = True  # the device answered, so that no process means no memory

    @property
    def used_mib(self) -> int | None:
        """MiB in use; None when the driver does not answer or knows it of none of them."""
        if not self.readable:
            return None
        known = [p.used_bytes for p in self.processes if p.used_bytes is not None]
        if not known and self.processes:
            return None
        return -(-sum(known) // MIB)

    @property
    def busy_ratio(self) -> float | None:
        """Share of time in which a kernel of it ran, 0 to 1; None when the driver cannot tell."""
        shares = [p.busy_ratio for p in self.processes if p.busy_ratio is not None]
        if not self.readable or len(shares) < len(self.processes):
            return None
        return min(1.0, sum(shares))


@dataclass(frozen=True, slots=True)
class Beside:
    """A process of an ephemeral container that is on a device of its pod, where no cap holds it."""

    uuid: str
    name: str  # of the ephemeral container
    gpu_process: DeviceProcess


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """A container and its devices."""

    container: GpuContainer
    uses: tuple[Use, ...]
    beside: tuple[Beside, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """UID of its pod, and its number there."""
        return self.container.key

    @property
    def processes(self) -> tuple[DeviceProcess, ...]:
        """Its processes on any device, each once."""
        return tuple({p.pid: p for use in self.uses for p in use.processes}.values())

    @property
    def busy_ratio(self) -> float | None:
        """The mean over its devices; None when the driver cannot tell for one of them."""
        shares = [use.busy_ratio for use in self.uses]
        known = [each for each in shares if each is not None]
        return sum(known) / len(known) if known and len(known) == len(shares) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """Everything on this node's devices."""

    containers: tuple[ContainerUse, ...]
    foreign: dict[str, list[ForeignProcess]]  # by uuid
    unnamed: frozenset[int] = frozenset()  # pids of those in a pod that the operator did not name


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What tells our own and the driver's processes from strangers.

    Attributes:
        daemons: Commands of the driver's own daemons.
        own_pod: UID of the agent's pod, empty outside of one.
        own_cgroup: ``/proc/self/cgroup`` of the agent.
    """

    daemons: Collection[str] = ()
    own_pod: str = ""
    own_cgroup: str = ""


def usage(
    sample: Sample,
    pods: Mapping[str, tuple[GpuContainer, ...]],
    others: Mapping[str, Neighbour],
    around: Surroundings,
) -> Usage:
    """Match the processes of a sample with the containers that were granted devices."""
    uuid_of = {str(d.facts.index): d.facts.uuid for d in sample.devices}
    granted = _granted(pods, uuid_of)
    held: dict[tuple[str, int], dict[str, list[DeviceProcess]]] = {}
    foreign: dict[str, list[ForeignProcess]] = {}
    beside: dict[tuple[str, int], list[Beside]] = {}
    unnamed: set[int] = set()
    for device in sample.devices:
        uuid = device.facts.uuid
        for gpu_process in device.processes:
            of = owner(gpu_process.process.cgroup) if gpu_process.process is not None else None
            theirs = granted.get((of.pod_uid, uuid), []) if of is not None else []
            container = _container(of, theirs)
            if container is not None:
                by_device = held.setdefault(container.key, {})
                by_device.setdefault(uuid, []).append(gpu_process)
                continue
            if (near := _beside(of, theirs)) is not None:
                holder, name_of_it = near
                beside.setdefault(holder.key, []).append(Beside(uuid, name_of_it, gpu_process))
            name = _foreign_name(gpu_process, of, pods, others, around)
            if name is not None:
                foreign.setdefault(uuid, []).append(_foreign(gpu_process, name))
                if of is not None and of.pod_uid not in pods and of.pod_uid not in others:
                    unnamed.add(gpu_process.pid)
    readable = {d.facts.uuid for d in sample.devices if d.readable}
    containers = []
    for container in (each for group in pods.values() for each in group if not each.ended):
        by_device = held.get(container.key, {})
        caps = {uuid_of.get(device, device): cap for device, cap in container.own.caps_mib.items()}
        uses = tuple(
            Use(uuid, cap, tuple(by_device.get(uuid, ())), uuid in readable)
            for uuid, cap in caps.items()
        )
        near_it = tuple(beside.get(container.key, ()))
        containers.append(ContainerUse(container, uses, near_it))
    return Usage(tuple(containers), foreign, frozenset(unnamed))


def _granted(
    pods: Mapping[str, tuple[GpuContainer, ...]], uuid_of: Mapping[str, str]
) -> dict[tuple[str, str], list[GpuContainer]]:
    """The containers that were granted a device, by their pod's UID and the device's."""
    found: dict[tuple[str, str], list[GpuContainer]] = {}
    for uid, group in pods.items():
        for each in group:
            for uuid in {uuid_of.get(device, device) for device in each.own.caps_mib}:
                found.setdefault((uid, uuid), []).append(each)
    return found


def _container(of: Owner | None, granted: list[GpuContainer]) -> GpuContainer | None:
    """Whose a process is, of the containers of its pod that were granted the device it is on."""
    if of is None:
        return None
    for container in granted:
        if container.own.id == of.container_id:
            return container
    # The kubelet has not yet told the container's id (or tells a restarted one's late). With one
    # candidate there is no doubt whose it is.
    unnamed = [c for c in granted if not c.own.id or of.container_id is None]
    if of.container_id in (unnamed[0].pod.ephemeral if unnamed else ()):
        return None
    return unnamed[0] if len(unnamed) == 1 else None


def _beside(of: Owner | None, granted: list[GpuContainer]) -> tuple[GpuContainer, str] | None:
    """Beside which of these a process of an ephemeral container is, and that one's name."""
    if of is None or of.container_id is None:
        return None
    for each in granted:
        if name := each.pod.ephemeral.get(of.container_id):
            return each, name
    return None


def _foreign_name(
    gpu_process: DeviceProcess,
    found: Owner | None,
    pods: Mapping[str, tuple[GpuContainer, ...]],
    others: Mapping[str, Neighbour],
    around: Surroundings,
) -> str | None:
    """What to call a foreign process of a pod's; None for those that are no strangers."""
    if gpu_process.process is None:
        return "(not in /proc)"
    command = gpu_process.process.command
    if found is None:
        if _of_own_pod(gpu_process.process.cgroup, around):
            return None
        return None if command in around.daemons else command
    if found.pod_uid == around.own_pod:
        return None
    if found.pod_uid in pods:
        pod = pods[found.pod_uid][0].pod
        if name := pod.ephemeral.get(found.container_id or ""):
            return f"{command}, ephemeral container {name} of {pod.namespace}/{pod.name}"
        return f"{command}, pod {pod.namespace}/{pod.name}: not its device"
    other = others.get(found.pod_uid)
    if other is None:
        return f"{command}, pod with UID {found.pod_uid}"
    if command in around.daemons and not other.tenant:  # there a name proves nothing
        return None
    holds = f" ({_WHOLE})" if other.whole_gpus else ""
    return f"{command}, pod {other.namespace}/{other.name}{holds}"


_WHOLE = "nvidia.com/gpu"


def _of_own_pod(cgroup: str, around: Surroundings) -> bool:
    """Whether a process without a pod in its path is in the agent's own.

    In a cgroup namespace of its own the agent sees itself as ``/`` and its siblings right below
    their common parent.
    """
    if not around.own_pod or around.own_cgroup.strip() != "0::/":
        return False
    path = cgroup.strip().removeprefix("0::")
    return path == "/" or (path.startswith("/../") and not path.startswith("/../.."))


def _foreign(gpu_process: DeviceProcess, name: str) -> ForeignProcess:
    used = gpu_process.used_bytes
    rounded = None if used is None else -(-used // MIB // _ROUND_MIB) * _ROUND_MIB
    return ForeignProcess(pid=gpu_process.pid, name=name[:_NAME_LENGTH], used_mib=rounded)
