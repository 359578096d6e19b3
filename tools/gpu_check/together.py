"""Several processes of one box: their sum, their sudden death, and a cap that changes meanwhile."""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from gpu_check import findings
from gpu_check.findings import GRANULE_MIB, POOL_GRANULE_MIB, Figures, Finding, SkippedError
from gpu_check.nvml import Watch
from gpu_check.probes import MIB, PIECES_MIB, Bench, Probe

PROCESSES = 4
SUM_PIECE_MIB = 8
CHURNED = ("alloc", "async", "vmm", "graph")
CHURN_PIECE_MIB = 8
FREED_SECONDS = 2.0  # by the driver, of a process that was killed
FOLLOWS_SECONDS = 2.0  # libgpucap looks at the file ten times a second
SEED = 615


@dataclass(frozen=True, slots=True)
class TogetherCheck(Bench):
    """Checks with several processes.

    Attributes:
        context_mib: what NVML shows of a process that holds a context alone.
        rounds: of sudden death.
    """

    context_mib: int
    rounds: int

    def findings(self) -> Iterator[Finding]:
        """All of them."""
        several = f"{PROCESSES} processes"
        return findings.each(
            [
                ("sum", several, self._sum),
                ("sigkill", several, self._sigkill),
                ("sigkill", "its child lives", self._outlived),
                ("live limit", "1 process", self._live),
            ]
        )

    def _start(self, stack: ExitStack, count: int, cap_mib: int, context_mib: int) -> list[Probe]:
        box = self.make_box(cap_mib, context_mib)
        return [stack.enter_context(self.start(box)) for _ in range(count)]

    def _sum(self, check: str, how: str) -> Iterator[Finding]:
        """They take at the same time; contexts are charged what they cost; NVML is watched."""
        cap = self.cap_mib + PROCESSES * self.context_mib
        watch, highest, got = Watch(self.nvml), 0.0, [0.0] * PROCESSES
        with ExitStack() as stack:
            probes = self._start(stack, PROCESSES, cap, self.context_mib)
            pids = [probe.process.pid for probe in probes]
            taking = list(range(PROCESSES))
            while taking and sum(got) < self.cap_mib + 2 * PIECES_MIB[0]:
                # Little at a time, so that all of them take all the while.
                for number in taking:
                    probes[number].tell("take", "alloc", SUM_PIECE_MIB * MIB, 2)
                for number in list(taking):
                    pieces, answer = probes[number].answer()
                    got[number] += pieces * SUM_PIECE_MIB
                    if answer:
                        taking.remove(number)
                outside = watch.held_mib(pids)
                highest = max(highest, outside or 0.0)
        charged = sum(got) + PROCESSES * self.context_mib
        figures: Figures = {"allocated_mib": sum(got), "context_mib": self.context_mib}
        note = ""
        if charged > cap:
            note = f"together they got {charged - cap:g} MiB more than the cap"
        elif cap - charged >= SUM_PIECE_MIB:
            note = f"refused {cap - charged:g} MiB below the cap"
        yield findings.judged(check, how, note, cap, charged, figures)

        def by_nvml(check: str, how: str) -> Finding:
            if self.nvml is None:
                raise SkippedError("there is no NVML")
            over = highest - cap
            note = f"NVML saw {over:g} MiB more than the cap, by {watch.by}"
            note = note if over > POOL_GRANULE_MIB else ""
            figures: Figures = {"outside_highest_mib": highest, "outside_by": watch.by}
            return findings.judged(check, how, note, cap, highest, figures)

        yield from findings.each([(f"{check} by NVML", how, by_nvml)])

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
        killed = self.rounds * PROCESSES
        figures = {"killed": killed, "slowest_answer_seconds": round(slowest, 4)}
        found = findings.judged(check, how, note, self.cap_mib, taken.mib, figures)
        well = f"{killed} processes killed, nothing lost, nobody waited"
        return found if note else replace(found, note=well)

    def _outlived(self, check: str, how: str) -> Finding:
        """One is killed whose forked child has the driver's descriptors; another one takes."""
        box, most = self.make_box(self.cap_mib), self.cap_mib + 2 * PIECES_MIB[0]
        with self.start(box) as other:
            watch = Watch(self.nvml)
            with self.start(box) as holder:
                held = holder.fill("alloc", self.cap_mib // 2).mib
                child = int(holder.ask("fork")[0])
                holder.kill()
            try:
                kept = self._kept_mib(watch, holder)
                beside = other.fill("alloc", most).mib
            finally:
                os.kill(child, signal.SIGKILL)
            until, taken = time.monotonic() + FREED_SECONDS, beside
            while self.cap_mib - taken >= GRANULE_MIB and time.monotonic() < until:
                taken += other.fill("alloc", most - taken).mib
        over = (held if kept is None or kept >= GRANULE_MIB else 0) + beside - self.cap_mib
        lost = self.cap_mib - taken
        note = findings.said(
            f"{over:g} MiB more than the cap while the child lived" if over > 0 else "",
            f"{lost:g} MiB were lost" if lost >= GRANULE_MIB else "",
        )
        figures: Figures = {"held_mib": held, "kept_mib": kept, "beside_mib": beside}
        return findings.judged(check, how, note, self.cap_mib, taken, figures)

    def _kept_mib(self, watch: Watch, dead: Probe) -> float | None:
        """What the device has of it, with its context, once that is free or stays."""
        until = time.monotonic() + FREED_SECONDS
        while (kept := watch.held_mib([dead.process.pid])) and time.monotonic() < until:
            time.sleep(0.05)
        return kept

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
        note = findings.said(
            "" if grew is not None else f"the larger limit was not seen in {FOLLOWS_SECONDS:g} s",
            "" if shrank is not None else f"the smaller one was not seen in {FOLLOWS_SECONDS:g} s",
            f"got {second:g} MiB of {more}" if abs(second - more) >= GRANULE_MIB else "",
            "above the smaller limit it got more" if beyond.mib else "",
            f"a free above the smaller limit: CUresult {dropped:.0f}" if dropped else "",
        )
        seen = {"seen_after_seconds": grew, "smaller_seen_after_seconds": shrank}
        return findings.judged(check, how, note, more, second, {"before_mib": first, **seen})

    def _wait_for_total(self, probe: Probe, total_mib: int) -> float | None:
        """After how many seconds it is seen; the last look comes when the time is over."""
        began = time.monotonic()
        while True:
            late = time.monotonic() - began >= FOLLOWS_SECONDS
            if probe.see().total_mib == total_mib:
                return round(time.monotonic() - began, 3)
            if late:
                return None
            time.sleep(0.02)
