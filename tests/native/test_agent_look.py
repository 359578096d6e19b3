"""Looks of the agent at real processes on pretended devices: layers, watchdog, kill, true-up."""

import ctypes
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.native.agent_node import AgentNode, pod_uid, ready, stay
from tests.native.build import NativeBuild
from tests.native.container import offsets
from tests.native.cuda import Cuda
from tests.native.fake_gpu import MIB, FakeGPU

from gpu_scheduler.agent import ledger

pytestmark = pytest.mark.library_first

Start = Callable[..., "subprocess.Popen[str]"]
DYNAMIC_SYMBOLS = 11  # a kind of section


def hold(mib: int) -> None:
    cuda = Cuda()
    cuda.allocate(mib)
    ready()
    stay()


def load_by_itself(counted_mib: int, mib: int) -> None:
    """Call the driver at an address that no loader was asked for."""
    cuda = Cuda()
    cuda.allocate(counted_mib)
    file, start = driver_in_memory()
    own = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(
        start + symbol(Path(file), b"cuMemAlloc_v2")
    )
    place = ctypes.c_uint64()
    assert own(ctypes.addressof(place), mib * MIB) == 0
    ready()
    stay()


def driver_in_memory() -> tuple[str, int]:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcuda" in line:
            return line.split()[-1], int(line.partition("-")[0], 16)
    raise AssertionError("the driver is not loaded")


def symbol(file: Path, name: bytes) -> int:
    """Its address in an ELF file of 64 bits, from the dynamic symbols."""
    elf = file.read_bytes()
    at, size, count = (
        struct.unpack_from(f, elf, o)[0] for f, o in (("Q", 40), ("H", 58), ("H", 60))
    )
    for section in range(count):
        kind, _, _, offset, length, link = struct.unpack_from("=4xIQQQQI", elf, at + section * size)
        if kind != DYNAMIC_SYMBOLS:
            continue
        (names,) = struct.unpack_from("=Q", elf, at + link * size + 24)
        for entry in range(offset, offset + length, 24):
            text, _, _, _, value, _ = struct.unpack_from("=IBBHQQ", elf, entry)
            if elf[names + text :].startswith(name + b"\0"):
                return int(value)
    raise AssertionError(f"{file} has no {name!r}")


class Tenants:
    """Processes with the library, as a container gets it, and without."""

    def __init__(self, gpu: FakeGPU, folder: Path) -> None:
        self.gpu, self.folder = gpu, folder
        self.children: list[subprocess.Popen[str]] = []

    def capped(self, mib: int, *, cap_mib: int) -> int:
        return self._capped("hold", mib, cap_mib=cap_mib)

    def loading_by_itself(self, mib: int, *, cap_mib: int) -> int:
        """A program whose driver the library knows, and which calls it past the library as well."""
        return self._capped("load_by_itself", cap_mib // 2, mib, cap_mib=cap_mib)

    def _capped(self, what: str, *mib: int, cap_mib: int) -> int:
        root = self.root(len(self.children))
        state = root.joinpath(*ledger.FOLDER)
        state.mkdir(parents=True)
        return self._started(
            self.gpu.start_call(
                f"tests.native.test_agent_look:{what}",
                *mib,
                LD_PRELOAD=str(self.gpu.build.folder / "libgpucap.so"),
                GPU_MEMORY_LIMIT_MIB=str(cap_mib),
                GPUCAP_STATE_DIR=str(state),
                GPUCAP_LIMIT_FILE=str(root / "none"),
            )
        )

    def evading(self, mib: int) -> int:
        """A program that no preloaded library stops, though it is preloaded."""
        return self._started(
            self.gpu.start(
                [self.gpu.build.evader, mib],
                LD_PRELOAD=str(self.gpu.build.folder / "libgpucap.so"),
                GPU_MEMORY_LIMIT_MIB="1000",
                GPUCAP_STATE_DIR=str(self.folder),
            )
        )

    def bare(self, mib: int) -> int:
        return self._started(self.gpu.start_call("tests.native.test_agent_look:hold", mib))

    def working(self, mib: int, percent: int) -> int:
        """A program that keeps its devices busy for this part of the time."""
        return self._started(
            self.gpu.start_call("tests.native.test_agent_look:hold", mib, FAKEGPU_BUSY=str(percent))
        )

    def root(self, number: int) -> Path:
        return self.folder / f"root-{number}"

    def _started(self, child: "subprocess.Popen[str]") -> int:
        self.children.append(child)
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line.startswith(("ready", "holding")), line
        return child.pid


@pytest.fixture
def tenants(gpu: FakeGPU, tmp_path: Path) -> Iterator[Tenants]:
    found = Tenants(gpu, tmp_path)
    yield found
    for child in found.children:
        child.kill()
        child.communicate()


def shown(
    pods: dict[str, int], caps: dict[str, int], looks: int, kills: bool, roots: dict[str, str]
) -> dict[str, Any]:
    """What the last of some looks says; JSON has turned the numbers of pids into text."""
    node = AgentNode(
        {int(pid): pod for pid, pod in pods.items()},
        {int(pod): cap for pod, cap in caps.items()},
        kills=kills,
        roots={int(pid): root for pid, root in roots.items()},
    )
    found = node.look(looks)
    return {
        "isolation": {uid: v.isolation for (uid, _), v in found.verdicts.items()},
        "messages": {uid: v.message for (uid, _), v in found.verdicts.items()},
        "over": {uid: over.message for (uid, _), over in found.over.items()},
        "used": {c.container.pod.uid: c.uses[0].used_mib for c in found.usage.containers},
        "busy": {c.container.pod.uid: c.uses[0].busy_ratio for c in found.usage.containers},
        "devices_busy": [d.load.busy_ratio for d in found.sample.devices],
        "foreign": {u: [p.pid for p in each] for u, each in found.usage.foreign.items()},
        "killed": list(found.killed),
    }


def look(
    gpu: FakeGPU,
    pods: dict[int, int],
    caps: dict[int, int],
    *,
    looks: int = 1,
    kills: bool = False,
    roots: Mapping[int, str] = MappingProxyType({}),
) -> dict[str, Any]:
    found: dict[str, Any] = gpu.call(
        "tests.native.test_agent_look:shown", pods, caps, looks, kills, dict(roots)
    )
    return found


def test_a_process_with_the_library_is_held_by_it(gpu: FakeGPU, tenants: Tenants) -> None:
    pid = tenants.capped(1000, cap_mib=4000)
    found = look(gpu, {pid: 1}, {1: 4000})
    assert found["isolation"] == {pod_uid(1): "interposer"}
    assert found["used"] == {pod_uid(1): 1300}


def test_a_process_without_it_is_found_at_the_first_look(gpu: FakeGPU, tenants: Tenants) -> None:
    capped, bare = tenants.capped(1000, cap_mib=4000), tenants.bare(100)
    found = look(gpu, {capped: 1, bare: 2}, {1: 4000, 2: 4000})
    assert found["isolation"] == {pod_uid(1): "interposer", pod_uid(2): "unprotected"}
    assert f"process {bare} " in found["messages"][pod_uid(2)]


def test_an_evader_is_over_its_cap_within_three_looks_and_its_neighbour_is_not(
    gpu: FakeGPU, tenants: Tenants
) -> None:
    evader, neighbour = tenants.evading(8000), tenants.capped(1000, cap_mib=4000)
    pods, caps = {evader: 1, neighbour: 2}, {1: 1000, 2: 4000}
    assert look(gpu, pods, caps, looks=2)["over"] == {}
    over = look(gpu, pods, caps, looks=3)["over"]
    assert list(over) == [pod_uid(1)]
    assert "holds 8300 MiB" in over[pod_uid(1)]
    assert "its cap is 1000 MiB" in over[pod_uid(1)]


@pytest.mark.parametrize("how", ["static driver", "own loader"])
def test_who_gets_past_the_library_is_called_unprotected_within_three_looks(
    gpu: FakeGPU, tenants: Tenants, how: str
) -> None:
    """Though every process has it mapped, and the library knows one of the two as its own."""
    if how == "static driver":
        evader, root = tenants.evading(8000), {}
    else:
        evader = tenants.loading_by_itself(8000, cap_mib=1000)
        root = {evader: str(tenants.root(0))}
    neighbour = tenants.capped(1000, cap_mib=4000)
    root[neighbour] = str(tenants.root(1))
    found = look(gpu, {evader: 1, neighbour: 2}, {1: 1000, 2: 4000}, looks=3, roots=root)
    assert found["isolation"] == {pod_uid(1): "unprotected", pod_uid(2): "interposer"}
    assert "got past libgpucap" in found["messages"][pod_uid(1)]
    assert list(found["over"]) == [pod_uid(1)]


def test_a_cap_that_is_lowered_below_what_is_held_leaves_the_layer_in_place(
    gpu: FakeGPU, tenants: Tenants
) -> None:
    pid = tenants.capped(3000, cap_mib=4000)
    found = look(gpu, {pid: 1}, {1: 1000}, looks=3, roots={pid: str(tenants.root(0))})
    assert list(found["over"]) == [pod_uid(1)]
    assert found["isolation"] == {pod_uid(1): "interposer"}


def test_the_policy_kill_ends_the_evader_and_nobody_else(gpu: FakeGPU, tenants: Tenants) -> None:
    evader, neighbour = tenants.evading(8000), tenants.capped(1000, cap_mib=4000)
    found = look(gpu, {evader: 1, neighbour: 2}, {1: 1000, 2: 4000}, looks=4, kills=True)
    assert found["killed"] == [evader]
    assert tenants.children[0].wait(60) == -9
    assert tenants.children[1].poll() is None
    assert gpu.used_mib() == 1300


def test_who_is_busy_on_a_device_that_two_share_is_told_and_so_is_the_device(
    gpu: FakeGPU, tenants: Tenants
) -> None:
    busy, idle = tenants.working(100, 70), tenants.working(100, 0)
    found = look(gpu, {busy: 1, idle: 2}, {1: 4000, 2: 4000})
    assert found["busy"] == {pod_uid(1): pytest.approx(0.7, abs=0.05), pod_uid(2): 0.0}
    assert found["devices_busy"] == [pytest.approx(0.7, abs=0.05)]


def test_a_process_of_no_pod_is_a_stranger(gpu: FakeGPU, tenants: Tenants) -> None:
    stranger = tenants.bare(100)
    assert look(gpu, {}, {1: 4000})["foreign"] == {gpu.uuids[0]: [stranger]}


def true_up(pid: int, root: str, looks: int) -> list[int]:
    """What the ledger says of the process after each look: allocations and context, MiB."""
    node = AgentNode({pid: 1}, {1: 4000}, roots={pid: root})
    started = node.sampler._procfs.started(pid)
    assert started is not None
    found = []
    for _ in range(looks):
        node.look()
        with ledger.open_inside(Path(root)) as opened:
            slot = opened.find(pid, started)
            assert slot is not None
            (device,) = opened.devices().values()
            used, context = opened.held(slot, device)
            found.append((used // MIB, context // MIB))
    return [each for pair in found for each in pair]


def test_the_librarys_estimate_of_a_context_is_replaced_by_what_nvml_shows(
    gpu: FakeGPU, tenants: Tenants
) -> None:
    pid = tenants.capped(1000, cap_mib=8000)
    root = str(tenants.root(0))
    first, second = 1, 3
    found = gpu.call("tests.native.test_agent_look:true_up", pid, root, 2)
    assert found[0] == found[2] == 1000
    assert found[first] == 512, "the estimate, as long as one look might be wrong"
    assert found[second] == 300, "what a context of the pretended driver costs"


def test_the_agents_offsets_are_those_of_the_library(native: NativeBuild) -> None:
    said = offsets(native.folder)
    ours = {
        "magic": ledger.MAGIC.rstrip(b"\0").decode(),
        "version": ledger.VERSION,
        "file_bytes": ledger.FILE_BYTES,
        "header_bytes": ledger.HEADER_BYTES,
        "slot_bytes": ledger.SLOT_BYTES,
        "slot_count": ledger.SLOTS,
        "device_count": ledger.DEVICES,
        "header.version": len(ledger.MAGIC),
        "header.slots_seen": ledger.SLOTS_SEEN_AT,
        "header.device": ledger.DEVICE_TABLE_AT,
        "header.keeps_marks": ledger.KEEPS_MARKS_AT,
        "header.mark": ledger.MARKS_AT,
        "header.unslotted": ledger.UNSLOTTED_AT,
        "header.unslotted_until": ledger.UNSLOTTED_UNTIL_AT,
        "mark.bytes": ledger.MARK_BYTES,
        "mark.peak_bytes": 0,
        "mark.refused": 8,
        "device.bytes": ledger.DEVICE_BYTES,
        "device.uuid": 0,
        "device.in_use": 16,
        "slot.pid": 0,
        "slot.start_time": ledger.SLOT_START_TIME_AT,
        "slot.device": ledger.SLOT_DEVICES_AT,
        "held.bytes": ledger.HELD_BYTES,
        "held.used_bytes": 0,
        "held.context_bytes": ledger.HELD_CONTEXT_AT,
    }
    assert {name: str(value) for name, value in ours.items()}.items() <= said.items()
