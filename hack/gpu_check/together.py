"""Several processes of one box: their sum, their sudden death, and a cap that changes meanwhile."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from gpu_check.boxes import MakeBox
from gpu_check.findings import GRANULE_MIB, POOL_GRANULE_MIB, Finding, Verdict, failed
from gpu_check.nvml import Nvml
from gpu_check.probes import MIB, PIECES_MIB, Probe, ProbeError, ProbeStarter

PROCESSES = 4
SUM_PIECE_MIB = 8
CHURNED = ("alloc", "async", "vmm", "graph")
CHURN_PIECE_MIB = 8
FOLLOWS_SECONDS = 5.0  # libgpucap looks at the file ten times a second
SEED = 615


@dataclass(frozen=True, slots=True)
class TogetherCheck:
    """Checks with several processes.

    Attributes:
        start, make_box, nvml: as for rows; nvml None: nobody looks from outside.
        cap_mib: of the box.
        context_mib: what NVML shows of a process that holds a context alone.
        rounds: of sudden death.
    """

    start: ProbeStarter
    make_box: MakeBox
    nvml: Nvml | None
    cap_mib: int
    context_mib: int
    rounds: int

    def findings(self) -> Iterator[Finding]:
        """All of them."""
        for name, check in (
            ("sum", self._sum),
            ("sigkill", self._sigkill),
            ("live limit", self._live),
        ):
            how = "1 process" if name == "live limit" else f"{PROCESSES} processes"
            try:
                yield check(name, how)
            except (ProbeError, OSError) as error:
                yield failed(name, how, str(error))

    def _start(self, stack: ExitStack, count: int, cap_mib: int, context_mib: int) -> list[Probe]:
        box = self.make_box(cap_mib, context_mib)
        return [stack.enter_context(self.start(box)) for _ in range(count)]

    def _sum(self, check: str, how: str) -> Finding:
        """They take at the same time, contexts are charged what they cost, NVML is watched."""
        cap = self.cap_mib + PROCESSES * self.context_mib
        most = (self.cap_mib + 2 * PIECES_MIB[0]) // SUM_PIECE_MIB
        with ExitStack() as stack:
            probes = self._start(stack, PROCESSES, cap, self.context_mib)
            # Each is told to take little at a time, so that all of them take all the while.
            highest, got = 0.0, [0.0] * PROCESSES
            taking = list(range(PROCESSES))
            while taking and sum(got) < most * SUM_PIECE_MIB:
                for number in taking:
                    probes[number].tell("take", "alloc", SUM_PIECE_MIB * MIB, 2)
                for number in list(taking):
                    pieces, answer = probes[number].answer()
                    got[number] += pieces * SUM_PIECE_MIB
                    if answer:
                        taking.remove(number)
                highest = max(highest, self._outside(probes) or 0.0)
            outside = self._outside(probes)
        over = sum(got) + PROCESSES * self.context_mib - cap
        beyond = highest - cap
        wrong = [
            f"together they got {over:g} MiB more than the cap" if over > 0 else "",
            f"refused {-over:g} MiB below the cap" if -over >= SUM_PIECE_MIB else "",
            f"NVML saw {beyond:g} MiB more than the cap" if beyond > POOL_GRANULE_MIB else "",
        ]
        note = "; ".join(filter(None, wrong))
        unseen = "NVML does not show these processes: their sum was not seen from outside"
        figures = {
            "allocated_mib": sum(got),
            "context_mib": self.context_mib,
            "outside_highest_mib": highest if outside is not None else None,
        }
        verdict = Verdict.FAILED if note else Verdict.HELD
        if not note and outside is None:
            note = unseen
        allocated = sum(got) + PROCESSES * self.context_mib
        return Finding(check, how, verdict, note, cap, allocated, figures)

    def _outside(self, probes: Sequence[Probe]) -> float | None:
        return self.nvml.held_mib([probe.process.pid for probe in probes]) if self.nvml else None

    def _sigkill(self, check: str, how: str) -> Finding:
        """They allocate and free for ever and are killed; one that lives on must never wait."""
        dice = random.Random(SEED)
        box = self.make_box(self.cap_mib)
        slowest = 0.0
        with self.start(box) as survivor:
            for _ in range(self.rounds):
                with ExitStack() as stack:
                    probes = [stack.enter_context(self.start(box)) for _ in CHURNED]
                    for probe, row in zip(probes, CHURNED, strict=True):
                        probe.ask("churn", row, CHURN_PIECE_MIB * MIB)
                    time.sleep(dice.uniform(0.001, 0.03))
                    for probe in dice.sample(probes, len(probes)):
                        probe.process.kill()
                    began = time.monotonic()
                    taken = survivor.take("alloc", GRANULE_MIB, 1)
                    slowest = max(slowest, time.monotonic() - began)
                    if taken.mib:
                        survivor.ask("drop", "alloc", 1)
        with self.start(box) as last:
            taken = last.fill("alloc", self.cap_mib + 2 * PIECES_MIB[0])
        lost = self.cap_mib - taken.mib
        note = ""
        if lost >= GRANULE_MIB:
            note = f"{lost:g} MiB were lost"
        elif -lost >= GRANULE_MIB:
            note = f"got {-lost:g} MiB more than the cap"
        return Finding(
            check,
            how,
            Verdict.FAILED if note else Verdict.HELD,
            note or f"{self.rounds * PROCESSES} processes killed, nothing lost, nobody waited",
            self.cap_mib,
            taken.mib,
            {"killed": self.rounds * PROCESSES, "slowest_answer_seconds": round(slowest, 4)},
        )

    def _live(self, check: str, how: str) -> Finding:
        """The limit grows, then shrinks below what is held; the program holds what it has."""
        more, less = self.cap_mib + 256, self.cap_mib // 2
        box = self.make_box(self.cap_mib)
        with self.start(box) as probe:
            first = probe.fill("alloc", self.cap_mib + 2 * PIECES_MIB[0]).mib
            box.limit_file.write_text(f"{more}\n")
            grew = self._wait_for_total(probe, more)
            second = first + probe.fill("alloc", 256 + 2 * PIECES_MIB[0]).mib
            box.limit_file.write_text(f"{less}\n")
            shrank = self._wait_for_total(probe, less)
            beyond = probe.take("alloc", GRANULE_MIB, 1)
            _, dropped = probe.ask("drop", "alloc", 1)
        wrong = [
            "" if grew is not None else f"the larger limit was not seen in {FOLLOWS_SECONDS:g} s",
            ""
            if shrank is not None
            else f"the smaller limit was not seen in {FOLLOWS_SECONDS:g} s",
            f"got {second:g} MiB of {more}" if abs(second - more) >= GRANULE_MIB else "",
            "above the smaller limit it got more" if beyond.mib else "",
            f"a free above the smaller limit: CUresult {dropped:.0f}" if dropped else "",
        ]
        note = "; ".join(filter(None, wrong))
        return Finding(
            check,
            how,
            Verdict.FAILED if note else Verdict.HELD,
            note,
            more,
            second,
            {"before_mib": first, "seen_after_seconds": grew, "smaller_seen_after_seconds": shrank},
        )

    def _wait_for_total(self, probe: Probe, total_mib: int) -> float | None:
        began = time.monotonic()
        while time.monotonic() - began < FOLLOWS_SECONDS:
            if probe.see().total_mib == total_mib:
                return round(time.monotonic() - began, 3)
            time.sleep(0.02)
        return None
