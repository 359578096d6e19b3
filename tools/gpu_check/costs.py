"""What the library costs: per allocation, per refusal, per process start, per kernel launch.

Processes with and without it take turns, so that a change of clocks hits both. What they differ by
is compared with the promise; on a noisy machine a difference smaller than the bare runs' own spread
says nothing, and is called so. On the pretended driver times are reported and not judged.
"""

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from gpu_check import findings
from gpu_check.boxes import Box
from gpu_check.findings import GRANULE_MIB, Finding, ProbeError, Verdict
from gpu_check.probes import MIB, OUT_OF_MEMORY, Bench, Probe

ROWS = ("alloc", "async", "vmm")
TURNS = 5
STARTS = 20
BATCHES = 40
LAUNCH_BATCHES = 20
OTHERS = 200
PAIR_US = 1.0  # promised: allocation and free together
REFUSED_US = 20.0
START_MS = 10.0
LAUNCH_PER_CENT = 1.0
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Turns:
    """Figures of processes with and without the library, or whatever `names` says, one a turn."""

    without: Sequence[float]
    with_library: Sequence[float]
    names: tuple[str, str] = ("without", "with")

    @property
    def added(self) -> float:
        """Difference of the medians."""
        return statistics.median(self.with_library) - statistics.median(self.without)

    @property
    def spread(self) -> float:
        """How much the bare runs differ among themselves."""
        return max(self.without) - min(self.without)


def judge(turns: Turns, allowed: float, *, judged: bool) -> tuple[Verdict, str]:
    """The verdict on an added cost, in whatever unit."""
    if not judged:
        return Verdict.MEASURED, "times of the pretended driver are not judged"
    if turns.added <= allowed:
        return Verdict.HELD, ""
    if turns.added <= turns.spread:
        return Verdict.MEASURED, "more than promised, but less than the bare runs differ"
    return Verdict.FAILED, f"added {turns.added:.3g}, promised at most {allowed:.3g}"


@dataclass(frozen=True, slots=True)
class CostCheck(Bench):
    """Measures; judged: False on the pretended driver."""

    judged: bool

    def findings(self) -> Iterator[Finding]:
        """All of them."""
        return findings.each(
            [
                *((f"cost of {row}", "alloc and free", self._pair) for row in ROWS),
                ("cost of a refusal", f"beside {OTHERS}", self._refusal),
                ("cost of a start", "no CUDA", self._process_start),
                ("cost of a start", "with a context", self._context_start),
                ("cost of a launch", "empty kernel", self._launch),
            ]
        )

    def _turns(self, count: int, measure: Callable[[Box], float]) -> Turns:
        without, within = self.make_box(None), self.make_box(self.cap_mib)
        pairs = [(measure(without), measure(within)) for _ in range(count)]
        return Turns([pair[0] for pair in pairs], [pair[1] for pair in pairs])

    def _pair(self, check: str, how: str) -> Finding:
        row = check.rpartition(" ")[2]

        def measure(box: Box) -> float:
            with self.start(box) as probe:
                cost, answer = probe.ask("cost", row, GRANULE_MIB * MIB, BATCHES, seconds=SECONDS)
                if answer:
                    raise ProbeError(f"{row}: CUresult {answer:.0f}")
                return cost / 1000

        return self._finding(check, how, self._turns(TURNS, measure), PAIR_US, "us")

    def _refusal(self, check: str, how: str) -> Finding:
        """With the library: alone in its box, and beside others that have a slot in the ledger."""
        box = self.make_box(self.cap_mib)

        def measure() -> list[float]:
            with self.start(box) as probe:
                return [self._refused(probe) for _ in range(TURNS)]

        alone = measure()
        with ExitStack() as stack:
            self._crowd(stack, box)
            turns = Turns(alone, measure(), ("alone", "beside"))
        return self._finding(check, how, turns, REFUSED_US, "us")

    def _refused(self, probe: Probe) -> float:
        words = ("refuse", "alloc", 2 * self.cap_mib * MIB, BATCHES)
        cost, answer = probe.ask(*words, seconds=SECONDS)
        if answer != OUT_OF_MEMORY:
            raise ProbeError(f"twice the cap was answered with CUresult {answer:.0f}")
        return cost / 1000

    def _crowd(self, stack: ExitStack, box: Box) -> None:
        """They are refused a context, so they hold nothing of the device."""
        too_large = {"GPUCAP_CONTEXT_MIB": str(self.cap_mib + 1)}
        refused = replace(box, environment={**box.environment, **too_large})
        crowd: list[Probe] = []
        for number in range(OTHERS):
            complaints = box.folder / f"stderr-of-{number}"
            probe = Probe(self.start.command("linked"), refused, complaints)
            stack.callback(probe.close)
            probe.tell("start")
            probe.tell("context")
            crowd.append(probe)
        for probe in crowd:
            answers = probe.answer() + probe.answer()
            if answers != [0, OUT_OF_MEMORY]:
                raise ProbeError(f"one of {OTHERS} others was answered {answers}, not refused")

    def _process_start(self, check: str, how: str) -> Finding:
        def measure(box: Box) -> float:
            began = time.perf_counter()
            subprocess.run(self.start.command("nothing"), env=box.environment, timeout=SECONDS)
            return (time.perf_counter() - began) * 1000

        return self._finding(check, how, self._turns(STARTS, measure), START_MS, "ms")

    def _context_start(self, check: str, how: str) -> Finding:
        def measure(box: Box) -> float:
            began = time.perf_counter()
            with self.start(box):
                return (time.perf_counter() - began) * 1000

        return self._finding(check, how, self._turns(TURNS, measure), START_MS, "ms")

    def _launch(self, check: str, how: str) -> Finding:
        def measure(box: Box) -> float:
            with self.start(box) as probe:
                (cost,) = probe.ask("launch", LAUNCH_BATCHES, seconds=SECONDS)
                if not cost:
                    raise ProbeError("the driver took none of the kernels, or would not launch one")
                return cost / 1000

        turns = self._turns(TURNS, measure)
        allowed = statistics.median(turns.without) * LAUNCH_PER_CENT / 100
        return self._finding(check, how, turns, allowed, "us")

    def _finding(self, check: str, how: str, turns: Turns, allowed: float, unit: str) -> Finding:
        verdict, note = judge(turns, allowed, judged=self.judged)
        without = statistics.median(turns.without)
        within = statistics.median(turns.with_library)
        names = (*turns.names, "added", "spread", "allowed")
        values = (without, within, turns.added, turns.spread, allowed)
        figures = {f"{n}_{unit}": round(v, 3) for n, v in zip(names, values, strict=True)}
        text = f"{without:.2f} → {within:.2f} {unit}"
        return Finding(check, how, verdict, f"{text}; {note}" if note else text, figures=figures)
