"""Random programs in one container, against one rule: ``python -m tests.native.fuzz --seconds 60``.

Several processes of ``programs/fuzz.c`` run at a time, one to four threads each; some are killed
with SIGKILL, some are paused, the cap changes every second, and calls of the driver fail by
themselves. The pretended driver says what the container holds. That is never above the cap, or
where the cap was lowered never above what was charged then; at the end it is nothing, the ledger is
empty and the whole cap is to be had. NATIVE_BUILD names a build with sanitizers (make fuzz).
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.native.build import build
from tests.native.container import Container, build_programs
from tests.native.fake_gpu import MIB, FakeGPU

CONTEXT_MIB = 16
CAPS_MIB = (96, 200, 333, 512, 1024)
PROCESSES = 4
OUT_OF_MEMORY, UNKNOWN = 2, 999
# Until every process has read a new cap, which it looks at every 100 ms, and has ended the call
# that read the one before: on a clock that stands while anybody is stopped.
SETTLED_SECONDS = 0.5
STUCK_SECONDS = 60.0  # after its time was over
DELAY_SECONDS = 0.02


@dataclass
class FuzzResult:
    """What a run came to."""

    seed: int
    processes: dict[str, int] = field(default_factory=lambda: {"ended": 0, "killed": 0})
    samples: int = 0
    caps: int = 0
    injected: int = 0
    compared: int = 0
    most_mib: float = 0.0
    most_above_cap_mib: float = 0.0
    faults: list[str] = field(default_factory=list)


@dataclass
class Program:
    """One process that runs, and what will become of it."""

    process: subprocess.Popen[str]
    command: Sequence[str]
    over_at: float
    kill_at: float | None
    pause: tuple[float, float] | None
    paused: bool = False


def stands_still(pid: int) -> bool:
    """Whether each thread of a process and of its children has stopped, or ended."""
    tasks = list(Path(f"/proc/{pid}/task").glob("*"))
    try:
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks]
        children = [
            int(child) for task in tasks for child in (task / "children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return False  # one of them has just ended
    return set(states) <= set("TtZX") and all(map(stands_still, children))


def groups_that_run() -> set[int]:
    """The process groups of which a process has not ended."""
    groups = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if state not in "ZX":
            groups.add(int(group))
    return groups


class Fuzz:
    """One container and what runs in it."""

    def __init__(self, folder: Path, seed: int, kind: int | None, compared: float) -> None:
        native = build()
        build_programs(native)
        options = {"context_mib": CONTEXT_MIB}
        self._gpu = FakeGPU(folder / "gpu", native, total_mib=8192, options=options)
        # What is charged for a context is what one takes: no agent runs here that would measure it.
        self._box = Container(self._gpu, folder / "box", cap_mib=None, context_mib=CONTEXT_MIB)
        self._kind, self._compared = kind, compared
        self._folder, self._random = folder, random.Random(seed)
        self._programs: list[Program] = []
        self._groups: set[int] = set()  # of all that were started
        self._caps: list[tuple[float, int]] = []
        self._allowed_mib = 0.0
        self._stopped_seconds = 0.0  # of the run, in which anybody was stopped
        self.seen = FuzzResult(seed)

    def run(self, seconds: float, enough: Callable[[FuzzResult], bool]) -> FuzzResult:
        """Until the time is over and enough was seen, or something is wrong."""
        end = time.monotonic() + seconds
        self._set_cap(max(CAPS_MIB))
        next_cap = 0.0
        try:
            while not self.seen.faults:
                if time.monotonic() >= end and (enough(self.seen) or self._is_slow(end)):
                    break
                if self._now() >= next_cap:
                    self._set_cap(self._random.choice(CAPS_MIB))
                    next_cap = self._now() + 1
                if self._random.random() < 0.3:
                    self._gpu.set(
                        self._gpu.uuids[0],
                        "next-error",
                        self._random.choice([OUT_OF_MEMORY, UNKNOWN]),
                    )
                    self.seen.injected += 1
                while len(self._programs) < PROCESSES:
                    self._start()
                self._turn()
            self._finish()
        finally:
            for program in self._programs:
                program.process.kill()
                program.process.communicate()
        return self.seen

    def _is_slow(self, end: float) -> bool:
        """Whether it has gone on for longer than any machine takes."""
        return time.monotonic() > end + STUCK_SECONDS

    def _now(self) -> float:
        """Seconds in which nobody was stopped."""
        return time.monotonic() - self._stopped_seconds

    @contextmanager
    def _stop(self) -> Iterator[None]:
        """Whoever runs stands still meanwhile, or some of them do."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._stopped_seconds += time.monotonic() - began

    def _set_cap(self, mib: int) -> None:
        new = self._box.limit_file.with_name("new-limit")
        new.write_text(str(mib))
        new.replace(self._box.limit_file)
        self._caps.append((self._now(), mib))
        self.seen.caps += 1

    def _start(self) -> None:
        chance = self._random
        milliseconds, threads = chance.randint(50, 4000), chance.choice([1, 1, 2, 4])
        command = [
            str(self._box.programs / "fuzz"),
            str(chance.randrange(1 << 30)),
            str(milliseconds),
            str(threads),
            *([] if self._kind is None else [str(self._kind)]),
        ]
        now, length = time.monotonic(), milliseconds / 1000
        kill_at = now + chance.random() * length if chance.random() < 0.3 else None
        pause = None
        if chance.random() < 0.1:
            begin = now + chance.random() * length
            pause = (begin, begin + chance.random())
        errors = (self._folder / "errors").open("a")
        process = subprocess.Popen(
            command,
            env=self._box.environment,
            stdout=errors,
            stderr=errors,
            text=True,
            start_new_session=True,  # its children stop with it
        )
        errors.close()
        self._groups.add(process.pid)
        self._programs.append(Program(process, command, now + length, kill_at, pause))

    def _turn(self) -> None:
        """Look at everybody, and at what they hold once nobody is paused: with the driver's lock,
        perhaps, which whoever asks the driver waits for."""
        self._look_at_all()
        if self._is_any_paused():
            with self._stop():
                while self._is_any_paused():
                    self._look_at_all()
        if self._random.random() < self._compared and (self._box.state / "ledger").exists():
            self._compare()
        self._sample()

    def _is_any_paused(self) -> bool:
        return any(program.paused for program in self._programs)

    def _look_at_all(self) -> None:
        time.sleep(DELAY_SECONDS)
        for program in list(self._programs):
            self._look_at(program, time.monotonic())

    def _compare(self) -> None:
        """Stop everybody, and compare what each holds by the driver with what it is charged."""
        groups = [program.process.pid for program in self._programs]
        with self._gpu.locked() as state_of_driver, self._stop():
            try:
                for group in groups:
                    os.killpg(group, signal.SIGSTOP)
                while not all(map(stands_still, groups)):
                    time.sleep(DELAY_SECONDS)
                charged = {slot.pid: slot for slot in self._box.ledger().slots}
                state = state_of_driver()
            finally:
                for group in groups:
                    os.killpg(group, signal.SIGCONT)
        self.seen.compared += 1
        for process in state["processes"]:
            for kinds in process["bytes"].values():
                held, slot = sum(kinds.values()) / MIB, charged.get(process["pid"])
                if held > (slot.used_mib + slot.context_mib if slot else 0):
                    self.seen.faults.append(f"{held} MiB are held, charged is {slot}: {kinds}")

    def _look_at(self, program: Program, now: float) -> None:
        process = program.process
        if (code := process.poll()) is not None:
            self._programs.remove(program)
            if code == 0:
                self.seen.processes["ended"] += 1
            elif code == -signal.SIGKILL and program.kill_at is None:
                self.seen.processes["killed"] += 1
            else:
                words = (self._folder / "errors").read_text()[-4000:]
                self.seen.faults.append(f"{' '.join(program.command)} ended with {code}: {words}")
        elif program.kill_at is not None and now >= program.kill_at:
            process.kill()
            program.kill_at = None
        elif program.pause is not None and now >= program.pause[0]:
            program.paused = now < program.pause[1]
            process.send_signal(signal.SIGSTOP if program.paused else signal.SIGCONT)
            program.pause = program.pause if program.paused else None
        elif now > program.over_at + STUCK_SECONDS:
            self.seen.faults.append(f"{' '.join(program.command)} does not end")

    def _sample(self) -> None:
        settled = self._now() - SETTLED_SECONDS
        used = self._gpu.used_mib()
        while len(self._caps) > 1 and self._caps[1][0] < settled:
            del self._caps[0]
        cap = max(mib for _, mib in self._caps)
        above = used - max(cap, self._allowed_mib)
        # What was charged when the cap was lowered may yet be taken, by calls that are under way.
        charged = self._box.ledger().held_mib() if (self._box.state / "ledger").exists() else 0
        self._allowed_mib = max(cap, min(self._allowed_mib, charged))
        self.seen.samples += 1
        self.seen.most_mib = max(self.seen.most_mib, used)
        self.seen.most_above_cap_mib = max(self.seen.most_above_cap_mib, above)
        if above > 0:
            self.seen.faults.append(f"{used} MiB are held, {above} too many:\n{self._who()}")

    def _who(self) -> str:
        """What each process holds by the driver, and by the ledger."""
        lines = [str(slot) for slot in self._box.ledger().slots]
        for process in self._gpu.state()["processes"]:
            for kinds in process["bytes"].values():
                held = {kind: each / MIB for kind, each in kinds.items() if each}
                lines.append(f"{process['pid']}: {sum(held.values())} MiB: {held}")
        return "\n".join(lines)

    def _finish(self) -> None:
        """Everybody ends, and nothing is left."""
        if self.seen.faults:
            return
        while self._programs and not self.seen.faults:
            self._turn()
        stuck = time.monotonic() + STUCK_SECONDS
        while children := groups_that_run() & self._groups:  # of those that were killed
            time.sleep(DELAY_SECONDS)
            if time.monotonic() > stuck:
                self.seen.faults.append(f"children of {children} do not end")
                break
        self._gpu.set(self._gpu.uuids[0], "next-error", 0)
        if held := self._gpu.used_mib():
            self.seen.faults.append(f"{held} MiB are held by nobody")
        cap = max(CAPS_MIB)
        self._set_cap(cap)
        got = self._box.probe("linked", "alloc", 8).pieces
        if got != (cap - CONTEXT_MIB) // 8:
            self.seen.faults.append(f"{got} pieces of 8 MiB are to be had at the end, of {cap} MiB")
        slots = self._box.ledger().slots  # the probe's own, until somebody needs the memory
        if len([slot for slot in slots if slot.used_mib or slot.context_mib]) > 1:
            self.seen.faults.append(f"the ledger is not empty at the end:\n{self._who()}")
        if "damaged" in "".join(self._box.log()):
            self.seen.faults.append("\n".join(self._box.log()))


def fuzz(
    folder: Path,
    seconds: float,
    seed: int,
    *,
    kind: int | None = None,
    compared: float = 0.1,
    enough: Callable[[FuzzResult], bool] = lambda seen: True,
) -> FuzzResult:
    """Run for so long in a folder that is empty.

    Args:
        folder: For the container and the pretended devices.
        seconds: Until nothing more is begun, or longer: until ``enough`` was seen.
        seed: Of what the programs do.
        kind: Of memory, as programs/fuzz.c numbers them; None: all.
        compared: Of the samples, with everybody stopped: what each holds with what it is charged.
    """
    return Fuzz(folder, seed, kind, compared).run(seconds, enough)


def main() -> int:
    """Print what it came to as JSON; 1: something was wrong."""
    options = argparse.ArgumentParser(prog="python -m tests.native.fuzz", description=__doc__)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kind", type=int, help="of memory, see programs/fuzz.c; all by default")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        seen = fuzz(Path(folder), chosen.seconds, chosen.seed, kind=chosen.kind)
    sys.stdout.write(json.dumps(asdict(seen), indent=2) + "\n")
    return 1 if seen.faults else 0


if __name__ == "__main__":
    sys.exit(main())
