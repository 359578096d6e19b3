"""What an agent tells of programs that once got past their caps, and of others: a line for each.

``python -m tests.native.cap_signals [--library LIBGPUCAP.SO] [--operator FOLDER]`` prints them;
with the library and the operator/ folder of another checkout, what was told there of the same
programs on the same pretended driver.
"""

import _ctypes
import argparse
import ctypes
import mmap
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tests.native.agent_node import AgentNode
from tests.native.build import build
from tests.native.container import Container, build_programs
from tests.native.cuda import MIB, Cuda, Number
from tests.native.fake_gpu import FakeGPU
from tests.native.images import cubin
from tests.native.partner import Partner, hand_over

MODULE = "tests.native.cap_signals"
CAP, CONTEXT = 1024, 300
LOOKS = 4
STATE = ("opt", "gpu-scheduler", "state")  # below the root of a container


@dataclass(frozen=True, slots=True)
class Signals:
    """What was told after a few looks.

    Attributes:
        charged_mib: by the ledger, when the programs have what they get.
        device_mib: memory of the device in use.
        used_mib: of the container, in the GPUNode's and the series' sense.
        processes: of the container on the device.
        foreign: processes there that nobody explains.
        isolation: the layer in place.
        above_cap: whether it is told to be above its cap.
        busy: share of time; None: the driver cannot tell.
        context_mib: what a context takes on the device; None: not known.
    """

    charged_mib: float | None
    device_mib: float
    used_mib: int | None
    processes: int
    foreign: int
    isolation: str | None
    above_cap: bool
    busy: float | None
    context_mib: int | None

    def words(self) -> list[str]:
        return ["–" if (v := getattr(self, f.name)) is None else str(v) for f in fields(self)]


def look(pids: Sequence[int], root: str) -> list[Any]:
    """In a process of its own, with the agent's code."""
    roots = dict.fromkeys(pids, root)
    found = AgentNode(dict.fromkeys(pids, 1), {1: CAP}, roots=roots).look(LOOKS)
    (use,) = found.usage.containers
    (share,) = use.uses
    report = found.verdicts[use.key]
    contexts = list(found.contexts_mib.values())
    return [
        share.used_mib,
        len(share.processes),
        sum(len(each) for each in found.usage.foreign.values()),
        report.isolation,
        use.key in found.over,
        share.busy_ratio,
        contexts[0] if contexts else None,
    ]


@dataclass(slots=True)
class Scene:
    """A container with programs in it."""

    box: Container
    stack: ExitStack
    pids: list[int] = field(default_factory=list)

    def partner(self, **environment: str) -> Partner:
        made = self.stack.enter_context(Partner(self.box, **environment))
        self.pids.append(made.pid)
        return made

    def program(self, function: str, *arguments: object, **environment: str) -> None:
        """One that says a line when it has what it gets, and stays."""
        command = FakeGPU.child(f"{MODULE}:{function}", *arguments)
        process = self.box.start(command, **environment)
        self.stack.callback(process.communicate)
        self.stack.callback(process.kill)
        assert process.stdout
        if process.stdout.readline():
            self.pids.append(process.pid)


def _stay() -> None:
    sys.stdout.write("there\n")
    sys.stdout.flush()
    while True:
        signal.pause()


def _context_of(driver: Any) -> None:
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)


def _allocate(driver: Any, mib: int) -> None:
    driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib * MIB))


def closes_and_opens() -> None:
    first: Any = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOW)
    _context_of(first)
    _allocate(first, 300)
    _ctypes.dlclose(first._handle)
    with mmap.mmap(-1, 64 * MIB):  # where it was, most likely
        second: Any = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOW)
        _context_of(second)
        for _ in range(8):
            _allocate(second, 100)
        _stay()


def opens_apart(library: str, way: str) -> None:
    """A library that finds the driver by itself takes up to 64 pieces of 32 MiB."""
    libc: Any = ctypes.CDLL(None)
    libc.dlopen.restype = libc.dlmopen.restype = libc.dlsym.restype = ctypes.c_void_p
    mode = os.RTLD_NOW | (os.RTLD_DEEPBIND if way == "deepbind" else 0)
    handle = (
        libc.dlmopen(ctypes.c_long(-1), library.encode(), mode)
        if way == "dlmopen"
        else libc.dlopen(library.encode(), mode)
    )
    take = libc.dlsym(ctypes.c_void_p(handle), b"take_pieces")
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ulong)(take)(32)
    _stay()


def loads_modules() -> None:
    cuda, image = Cuda(), cubin({".nv.global": 200 * MIB})
    for _ in range(8):
        cuda.cuModuleLoadData(Number(), image)
    _stay()


def makes_contexts() -> None:
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    for _ in range(8):
        cuda.cuCtxCreate_v2(Number(), 0, 0)
    _stay()


def fills(how: str) -> None:
    cuda = Cuda()
    for _ in range(64):
        if how == "pool":
            cuda.cuMemAllocAsync(Number(), 32 * MIB, None)
        else:
            cuda.cuMemAlloc_v2(Number(), 32 * MIB)
    _stay()


def _plain(scene: Scene) -> None:
    scene.program("fills", "plain")


def _pool(scene: Scene) -> None:
    scene.program("fills", "pool")


def _two(scene: Scene) -> None:
    scene.partner().allocate(100)
    scene.partner().allocate(200)


def _reopened(scene: Scene) -> None:
    scene.program("closes_and_opens")


def _apart(way: str) -> Callable[[Scene], None]:
    def start(scene: Scene) -> None:
        scene.program("opens_apart", str(scene.box.programs / "libfinds.so"), way)

    return start


def _without_library(scene: Scene) -> None:
    scene.partner(LD_PRELOAD="").allocate(400)
    scene.partner().allocate(100)


def _modules(scene: Scene) -> None:
    scene.program("loads_modules")


def _contexts(scene: Scene) -> None:
    scene.box.context_mib = None
    scene.program("makes_contexts")


def _exported(scene: Scene) -> None:
    maker, importer = scene.partner(), scene.partner()
    handle = maker.create(200)
    importer.import_(hand_over(maker, maker.export(handle), importer))
    maker.release(handle)
    while maker.allocate_answer(32) == 0:
        pass


SCENES: dict[str, Callable[[Scene], None]] = {
    "fills its cap": _plain,
    "fills its cap from a pool": _pool,
    "two processes": _two,
    "1 closes the driver and opens it again": _reopened,
    "2 RTLD_DEEPBIND": _apart("deepbind"),
    "2 dlmopen": _apart("dlmopen"),
    "3 one of two without the library": _without_library,
    "4 modules with variables": _modules,
    "5 contexts": _contexts,
    "6 exported, imported, released": _exported,
}


@dataclass(slots=True)
class OtherContainer(Container):
    """With the library of another checkout."""

    other: str = ""

    @property
    def library(self) -> Path:
        return Path(self.other) if self.other else self.gpu.build.folder / "libgpucap.so"


def signals(
    name: str, gpu: FakeGPU, folder: Path, library: str = "", operator: str = ""
) -> Signals:
    """Start a scene's programs and look at them."""
    root = folder / "root"
    box = OtherContainer(gpu, root.joinpath(*STATE[:-1]), CAP, CONTEXT, other=library)
    path = {"PYTHONPATH": f"{operator}:{os.environ.get('PYTHONPATH', '')}"} if operator else {}
    with ExitStack() as stack:
        scene = Scene(box, stack)
        SCENES[name](scene)
        found = gpu.call(f"{MODULE}:look", scene.pids, str(root), **path)
        charged = box.ledger().held_mib() if (box.state / "ledger").exists() else None
        return Signals(charged, gpu.used_mib(), *found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default="", help="libgpucap.so of another checkout")
    parser.add_argument("--operator", default="", help="operator/ of another checkout")
    chosen = parser.parse_args()
    native = build()
    build_programs(native)
    sys.stdout.write(" | ".join(["program", *(f.name for f in fields(Signals))]) + "\n")
    for name in SCENES:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "gpu").mkdir()
            gpu = FakeGPU(Path(folder) / "gpu", native)
            found = signals(name, gpu, Path(folder), chosen.library, chosen.operator)
        sys.stdout.write(" | ".join([name, *found.words()]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
