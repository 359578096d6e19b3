"""Containers, processes and samples for tests."""

from pathlib import Path
from typing import Any

from tests.unit.agent.fake_driver import MIB, facts, gpu

from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.procfs import Process, ProcFS
from gpu_scheduler.agent.sampler import DeviceProcess, DeviceSample, Sample
from gpu_scheduler.agent.usage import ContainerUse, Use
from gpu_scheduler.api.orders import Neighbour, OrderedContainer, OrderedPod, Orders

POD = "0d2f1a5e-1111-4222-8333-444455556666"
OTHER_POD = "9d2f1a5e-1111-4222-8333-444455556666"
CONTAINER = "c" * 64


def cgroup(pod: str = POD, container: str = CONTAINER) -> str:
    slice_ = f"kubepods-burstable-pod{pod.replace('-', '_')}.slice"
    return f"0::/../../{slice_}/cri-containerd-{container}.scope\n"


HOST = "0::/../../../../system.slice/some.service\n"


def seen(
    pid: int = 100,
    mib: int | None = 1000,
    *,
    in_cgroup: str | None = None,
    command: str = "python",
    started: int = 7,
) -> DeviceProcess:
    process = Process(pid, started, command, cgroup() if in_cgroup is None else in_cgroup)
    return DeviceProcess(pid, None if mib is None else mib * MIB, process)


def container(
    *,
    caps: dict[str, int] | None = None,
    promised: bool = True,
    uid: str = POD,
    container_id: str = CONTAINER,
    index: int = 0,
    ended: bool = False,
    namespace: str = "team-a",
    kill: bool = False,
) -> GpuContainer:
    caps_mib = {gpu(0): 20000} if caps is None else caps
    own = OrderedContainer(index, "main", caps_mib, container_id, promised)
    pod = OrderedPod(uid, namespace, "train-0", (own,), job="train", project="project-a", kill=kill)
    return GpuContainer(pod, own, ended)


def use(
    *processes: DeviceProcess, cap_mib: int = 20000, of: GpuContainer | None = None
) -> ContainerUse:
    return ContainerUse(of or container(), (Use(gpu(0), cap_mib, processes),))


def sample(*on_first: DeviceProcess, on_second: tuple[DeviceProcess, ...] = ()) -> Sample:
    first = DeviceSample(facts(0), None, facts(0).memory, processes=on_first)
    second = DeviceSample(facts(1), None, facts(1).memory, processes=on_second)
    return Sample(0.0, "570.86.15", (first, second))


def proc(
    root: Path, pid: int, *, text: str | None = None, started: int = 7, maps: str = ""
) -> ProcFS:
    """A proc file system with one more process."""
    folder = root / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    before = " ".join(["S", *(["0"] * 18)])
    (folder / "stat").write_text(f"{pid} (python) {before} {started} 0 0\n")
    (folder / "cgroup").write_text(cgroup() if text is None else text)
    (folder / "maps").write_text(maps)
    (folder / "status").write_text(f"Name:\tpython\nNSpid:\t{pid}\t{pid + 1000}\n")
    return ProcFS(root)


def orders(*pods: OrderedPod, others: tuple[Neighbour, ...] = (), **changes: Any) -> Orders:
    """What the operator says of node n1, whose GPUNode and Lease are not there yet."""
    return Orders(**{"node_uid": "node-uid", "v": 1, "pods": pods, "others": others, **changes})


def ordered(
    uid: str = POD, *, caps: dict[str, int] | None = None, kill: bool = False, **changes: Any
) -> OrderedPod:
    """A pod of ours with one container that has the first device."""
    held = OrderedContainer(0, "main", caps or {gpu(0): 20000}, CONTAINER, promised=True)
    return OrderedPod(
        uid=uid,
        namespace="team-a",
        name="train-0",
        containers=changes.pop("containers", (held,)),
        job="train",
        project="project-a",
        kill=kill,
    )
