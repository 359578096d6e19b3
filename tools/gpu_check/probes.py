"""A probe: a process in a box that takes and gives back device memory as it is told.

Commands and answers are those of probe/commands.h. Whatever happens to the process (a crash,
silence) becomes a ProbeError with a sentence, so that one bad row never ends the whole check.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpu_check.boxes import Box, MakeBox
from gpu_check.building import Programs
from gpu_check.findings import ProbeError
from gpu_check.nvml import Nvml

MIB = 1 << 20
RESOLUTIONS = ("linked", "dlopen", "ctypes", "procaddress")
PIECES_MIB = (128, 32, 8, 2)  # ever smaller, so that what is left at the end is less than a granule
ANSWER_SECONDS = 30.0
OUT_OF_MEMORY = 2


@dataclass(frozen=True, slots=True)
class View:
    """What a process sees of the device, in MiB; 0: it could not ask."""

    free_mib: float
    total_mib: float
    device_total_mib: float
    nvml_total_mib: float
    nvml_total_v2_mib: float
    nvml_free_mib: float

    @property
    def totals(self) -> set[float]:
        """Every size of the device that it is told."""
        device = {self.total_mib, self.device_total_mib}
        return device | {self.nvml_total_mib, self.nvml_total_v2_mib}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a process got, and the driver's last word."""

    mib: float
    answer: int


class Probe:
    """A running probe; the program must have been started with pipes."""

    def __init__(self, command: Sequence[str], box: Box, complaints: Path) -> None:
        self.complaints = complaints
        with complaints.open("wb") as stderr:
            self.process = subprocess.Popen(
                command,
                env=box.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
            )
        self._pending = b""

    def ask(self, *words: object, seconds: float = ANSWER_SECONDS) -> list[float]:
        """Give a command and wait for its answer.

        Raises:
            ProbeError: the process ended, or said nothing in time and was killed.
        """
        self.tell(*words)
        return self.answer(seconds=seconds)

    def tell(self, *words: object) -> None:
        """Give a command."""
        assert self.process.stdin
        try:
            self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        except BrokenPipeError:
            raise ProbeError(self._end()) from None

    def answer(self, seconds: float = ANSWER_SECONDS) -> list[float]:
        """Wait for the answer to an earlier command.

        Raises:
            ProbeError: as for ask.
        """
        line = self._line(seconds)
        try:
            return [float(word) for word in line.split()]
        except ValueError:
            raise ProbeError(f"unexpected answer {line!r}") from None

    def ok(self, command: str) -> None:
        """Give a command that is answered with a CUresult, and insist on success.

        Raises:
            ProbeError: another CUresult.
        """
        (result,) = self.ask(command)
        if result:
            raise ProbeError(f"{command}: CUresult {result:.0f}")

    def has(self, symbol: str) -> bool:
        """Whether the driver has this function."""
        return self.ask("has", symbol) == [1]

    def take(self, row: str, piece_mib: int, most: int) -> Taken:
        """Take pieces until refused."""
        pieces, answer = self.ask("take", row, piece_mib * MIB, most)
        return Taken(pieces * piece_mib, int(answer))

    def fill(self, row: str, most_mib: float) -> Taken:
        """Take ever smaller pieces until the driver refuses the smallest, or most_mib are there."""
        got, answer = 0.0, 0
        for piece in PIECES_MIB:
            pieces = int((most_mib - got) // piece)
            if pieces <= 0:
                break
            taken = self.take(row, piece, pieces)
            got, answer = got + taken.mib, taken.answer
        return Taken(got, answer)

    def see(self) -> View:
        """What the process sees of the device."""
        return View(*(value / MIB for value in self.ask("see")))

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Let it end by itself; after some seconds without mercy."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process.stdout.close()

    def _line(self, seconds: float) -> str:
        assert self.process.stdout
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.kill()
                    raise ProbeError(f"no answer within {seconds:g} s; killed")
                piece = os.read(self.process.stdout.fileno(), 65536)
                if not piece:
                    raise ProbeError(self._end())
                self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace")

    def _end(self) -> str:
        code = self.process.wait()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = [
            line
            for line in self.complaints.read_text(errors="replace").splitlines()
            if not line.startswith("not found: ")
        ]
        return f"the process ended ({how}){': ' + said[-1] if said else ''}"


@dataclass(frozen=True, slots=True)
class ProbeStarter:
    """Starts probes."""

    programs: Programs

    @contextmanager
    def __call__(
        self, box: Box, resolution: str = "linked", *, context: bool = True
    ) -> Iterator[Probe]:
        """A probe whose driver is initialised, with a context; it ends with the block.

        Raises:
            ProbeError: it does not start.
        """
        complaints = box.folder / f"stderr-{time.monotonic_ns()}"
        probe = Probe([*box.wrapper, *self.command(resolution)], box, complaints)
        try:
            probe.ok("start")
            if context:
                probe.ok("context")
            yield probe
        finally:
            probe.close()

    def command(self, resolution: str) -> list[str]:
        """The command line of a probe."""
        if resolution == "ctypes":
            script = Path(__file__).parent / "programs" / "ctypes_probe.py"
            return [sys.executable, str(script), str(self.programs.probe_library)]
        return [str(self.programs.probe), resolution]


@dataclass(frozen=True, slots=True)
class Bench:
    """What a check works with.

    Attributes:
        start, make_box: how processes are started, and in what.
        nvml: who looks from outside; None: nobody.
        cap_mib: of the boxes.
    """

    start: ProbeStarter
    make_box: MakeBox
    nvml: Nvml | None
    cap_mib: int
