"""What a GPU container is to libgpucap, without a container: a cap, a state folder, the library.

box = Container(gpu, tmp_path / "box", cap_mib=1024)
box.probe("linked", "alloc", 128).pieces   # takes pieces of 128 MiB until refused: 8
box.ledger().held_mib()                    # what its processes hold, from the ledger file
"""

import fcntl
import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.native.build import NativeBuild
from tests.native.fake_gpu import MIB, FakeGPU

HEADER_BYTES, SLOT_BYTES, SLOTS = 4096, 320, 2048
DEVICES_AT, HELD_AT = 128, 32  # in the header, in a slot
OUT_OF_MEMORY = 2


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What driverprobe printed."""

    pieces: int
    answer: int
    free_mib: float
    total_mib: float


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of the ledger that is taken, for its first device."""

    number: int
    pid: int
    start_time: int
    used_mib: float
    context_mib: float


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger file as it is on disk."""

    content: bytes

    @property
    def slots(self) -> list[Slot]:
        """Those that are taken."""
        found = []
        for number in range(SLOTS):
            at = HEADER_BYTES + number * SLOT_BYTES
            pid, _, start_time = struct.unpack_from("=IIQ", self.content, at)
            used, context = struct.unpack_from("=QQ", self.content, at + HELD_AT)
            if pid:
                found.append(Slot(number, pid, start_time, used / MIB, context / MIB))
        return found

    def held_mib(self) -> float:
        """The sum over its slots."""
        return sum(slot.used_mib + slot.context_mib for slot in self.slots)


@dataclass(slots=True)
class Container:
    """Programs run here have the library preloaded.

    Attributes:
        gpu: the devices.
        folder: of its own: state folder and limit file.
        cap_mib: the cap in the environment; None: not there.
        context_mib: what a context is charged; None: the library's own figure.
        faults: use the build that has fault points.
    """

    gpu: FakeGPU
    folder: Path
    cap_mib: int | str | None = 1024
    context_mib: int | None = 0
    faults: bool = False
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True, exist_ok=True)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / "state"

    @property
    def limit_file(self) -> Path:
        """What the downward API writes; not there until a test writes it."""
        return self.folder / "memory-limit-mib"

    @property
    def library(self) -> Path:
        """libgpucap.so as built."""
        name = "libgpucap-faults.so" if self.faults else "libgpucap.so"
        return self.gpu.build.folder / name

    @property
    def programs(self) -> Path:
        """The test programs, built from tests/native/programs."""
        return self.gpu.build.folder / "programs"

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the container's processes."""
        found = self.gpu.environment
        before = found.get("LD_PRELOAD", "")
        found["LD_PRELOAD"] = f"{before}:{self.library}" if before else str(self.library)
        found["GPUCAP_STATE_DIR"] = str(self.state)
        found["GPUCAP_LIMIT_FILE"] = str(self.limit_file)
        if self.cap_mib is not None:
            found["GPU_MEMORY_LIMIT_MIB"] = str(self.cap_mib)
        if self.context_mib is not None:
            found["GPUCAP_CONTEXT_MIB"] = str(self.context_mib)
        return found | self.extra

    def run(
        self, command: Sequence[str | Path], *, seconds: float = 120, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return self.gpu.run(command, seconds=seconds, **(self.environment | environment))

    def start(self, command: Sequence[str | Path], **environment: str) -> subprocess.Popen[str]:
        """Start a program."""
        return self.gpu.start(command, **(self.environment | environment))

    def probe(
        self, resolution: str, row: str, mib: int, *action: str, **environment: str
    ) -> ProbeResult:
        """Run driverprobe to its end.

        Raises:
            AssertionError: it failed, with its words.
        """
        command = self.probe_command(resolution, row, mib, *action)
        done = self.run(command, **environment)
        assert done.returncode == 0, f"{command}: exit {done.returncode}: {done.stderr}"
        return seen(done.stdout)

    def probe_command(self, resolution: str, row: str, mib: int, *action: str) -> list[str]:
        """The command line of driverprobe."""
        return [str(self.programs / "driverprobe"), resolution, row, str(mib), *action]

    def hold(self, row: str, mib: int, resolution: str = "linked") -> "Holder":
        """Start a process that takes all it gets and keeps it."""
        return Holder(self.start(self.probe_command(resolution, row, mib, "hold")))

    def call(self, function: str, *arguments: object, **environment: str) -> object:
        """Run ``module:function(*arguments)`` in a process of the container; its result."""
        return self.gpu.call(function, *arguments, **(self.environment | environment))

    def ledger(self) -> Ledger:
        """The ledger as it is now."""
        return Ledger((self.state / "ledger").read_bytes())

    def write_context_mib(self, pid: int, mib: int) -> None:
        """Play the agent: write what NVML shows of a process above its allocations."""
        (slot,) = [slot for slot in self.ledger().slots if slot.pid == pid]
        file = os.open(self.state / "ledger", os.O_WRONLY)
        at = HEADER_BYTES + slot.number * SLOT_BYTES + HELD_AT + 8
        os.pwrite(file, struct.pack("=Q", mib * MIB), at)
        os.close(file)

    def log(self) -> list[str]:
        """The lines of the library's log, without time and process id."""
        file = self.state / "libgpucap.log"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line.split("] ", 1)[1] for line in lines]


def build_programs(native: NativeBuild) -> Path:
    """Build tests/native/programs against a build of the fake driver; test workers take turns.

    Raises:
        RuntimeError: the compiler's words.
    """
    folder = Path(__file__).parent / "programs"
    flags = native.sanitizer.flags if native.sanitizer else ""
    with (native.folder / ".programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "-C", folder, f"BUILD={native.folder}", f"EXTRA_CFLAGS={flags}"],
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(f"make -C {folder} failed:\n{done.stdout}{done.stderr}")
    return native.folder / "programs"


def seen(line: str) -> ProbeResult:
    """Read driverprobe's line."""
    pieces, answer, free, total = map(int, line.split())
    return ProbeResult(pieces, answer, free / MIB, total / MIB)


@dataclass(slots=True)
class Holder:
    """A driverprobe that holds what it got; leave the block and it ends."""

    process: subprocess.Popen[str]
    seen: ProbeResult = field(init=False)

    def __post_init__(self) -> None:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"driverprobe ended with {self.process.wait()}"
        self.seen = seen(line)

    def __enter__(self) -> "Holder":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


class Neighbour:
    """A program in a container of its own that takes and releases its share until it is ended."""

    SHARE_MIB = 24  # what programs/neighbour.c takes at a time

    def __init__(self, box: Container) -> None:
        self._process = box.start([box.programs / "neighbour"], FAKEGPU_BESIDE="1")
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line == "ready\n", f"the neighbour ended with {self._process.wait()}"

    def end(self) -> tuple[int, int]:
        """How often it took its share, and how often it was refused."""
        said, errors = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, f"the neighbour ended: {errors}"
        rounds, refused = said.split()
        return int(rounds), int(refused)


def offsets(build_folder: Path) -> dict[str, str]:
    """What the C compiler says of the ledger's layout."""
    done = subprocess.run(
        [build_folder / "ledger-offsets"], capture_output=True, text=True, check=True
    )
    return dict(line.split() for line in done.stdout.splitlines())
