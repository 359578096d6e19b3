"""Programs that mean no harm and once got more than their cap, one line for each way.

What opens the driver oddly is a program of its own (``programs/opening.py``). What the agent does
on a node, to look at NVML and write into the ledger, this check does by itself.
"""

import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from gpu_check import findings
from gpu_check.boxes import Box
from gpu_check.findings import GRANULE_MIB, POOL_GRANULE_MIB, Finding, ProbeError, SkippedError
from gpu_check.nvml import Watch
from gpu_check.probes import MIB, OUT_OF_MEMORY, PIECES_MIB, Bench, Probe

OPENED = ("deepbind", "dlmopen", "link", "copy", "descriptor")
MOST_PIECES = 64  # of programs/opening.py
MOST_CONTEXTS = 8  # as many as fitted when each was charged an eighth
PROCESSES = 4
HIDDEN_MIB = 256
UNSLOTTED_AT, UNSLOTTED_UNTIL_AT = 3728, 3856  # native/libgpucap/src/ledger.h
UNSLOTTED_SECONDS = 60


class ForeignCheck(Bench):
    """Runs them."""

    def findings(self) -> Iterator[Finding]:
        """All of them."""
        return findings.each(
            [
                ("reopened driver", "closed, opened again", self._reopened),
                *(("opened driver", way, self._opened) for way in OPENED),
                ("no library", "told by the agent", self._unslotted),
                ("contexts", "1 process", self._contexts),
                ("contexts", f"{PROCESSES} processes", self._contexts_at_once),
            ]
        )

    @property
    def _piece_mib(self) -> int:
        """So large that all that a broken cap may give is little more than the cap."""
        beyond = self.cap_mib + 2 * PIECES_MIB[0]
        return -(-beyond // (MOST_PIECES * GRANULE_MIB)) * GRANULE_MIB

    def _opening(self, box: Box, way: str) -> list[str]:
        """What the program printed.

        Raises:
            ProbeError: it did not come to its end.
        """
        script = Path(__file__).parent / "programs" / "opening.py"
        words = [script, way, self.start.programs.finds, self._piece_mib]
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, env=box.environment, capture_output=True, text=True)
        if done.returncode:
            said = findings.last_line(done.stderr)
            raise ProbeError(f"the process ended ({done.returncode}): {said}")
        return done.stdout.split()

    def _opened(self, check: str, how: str) -> Finding:
        (pieces,) = map(int, self._opening(self.make_box(self.cap_mib), how))
        return self._took(check, how, pieces * self._piece_mib)

    def _took(self, check: str, how: str, got: float, most: float | None = None) -> Finding:
        most = self.cap_mib if most is None else most
        note = ""
        if got > most:
            note = f"got {got - most:g} MiB more than there was"
        elif most - got >= self._piece_mib:
            note = f"refused {most - got:g} MiB below what there was"
        return findings.judged(check, how, note, self.cap_mib, got)

    def _reopened(self, check: str, how: str) -> Finding:
        try:
            (_, after) = self._opening(self.make_box(None), "reopened")
        except ProbeError as error:
            raise SkippedError(f"without the library: {error}") from None
        if after == "stays":
            raise SkippedError("this driver stays when it is closed")
        first, second = map(int, self._opening(self.make_box(self.cap_mib), "reopened"))
        return self._took(check, how, (first + second) * self._piece_mib)

    def _unslotted(self, check: str, how: str) -> Finding:
        """A process without the library holds memory; the others get what is left."""
        box, watch = self.make_box(self.cap_mib), Watch(self.nvml)
        hidden = replace(box, environment={**box.environment, "LD_PRELOAD": ""})
        with self.start(hidden) as holder, self.start(box) as other:
            holder.take("alloc", HIDDEN_MIB, 1)
            held = watch.held_mib([holder.process.pid])
            if held is None or watch.by != "process":
                raise SkippedError("NVML does not tell processes apart here")
            self._write_unslotted(box, held)
            got = other.fill("alloc", self.cap_mib + 2 * PIECES_MIB[0]).mib
        return self._took(check, how, got, max(0.0, self.cap_mib - held))

    def _write_unslotted(self, box: Box, mib: float) -> None:
        """As the agent does; of the ledger's first device."""
        until = int((time.monotonic() + UNSLOTTED_SECONDS) * 1000)
        ledger = box.folder / "ledger"
        if not ledger.exists():
            return  # without the library there is none
        with ledger.open("r+b") as file:
            for at, word in ((UNSLOTTED_AT, int(mib * MIB)), (UNSLOTTED_UNTIL_AT, until)):
                file.seek(at)
                file.write(struct.pack("=Q", word))

    def _contexts(self, check: str, how: str) -> Finding:
        """Nobody has measured one: the first one that is made is."""
        box, watch = self.make_box(self.cap_mib, None), Watch(self.nvml)
        with self.start(box, context=False) as probe:
            before = watch.held_mib([probe.process.pid]) or 0.0
            taken = probe.take("context", 1, MOST_CONTEXTS)
            grown = self._grown(before, watch.held_mib([probe.process.pid]))
        return self._judge_contexts(check, how, [(int(taken.mib), taken.answer)], grown)

    def _contexts_at_once(self, check: str, how: str) -> Finding:
        box, watch = self.make_box(self.cap_mib, None), Watch(self.nvml)
        with ExitStack() as stack:
            probes: list[Probe] = [
                stack.enter_context(self.start(box, context=False)) for _ in range(PROCESSES)
            ]
            pids = [probe.process.pid for probe in probes]
            before = watch.held_mib(pids) or 0.0
            for probe in probes:
                probe.tell("take", "context", 1, MOST_CONTEXTS // PROCESSES)
            answers = [probe.answer() for probe in probes]
            grown = self._grown(before, watch.held_mib(pids))
        made = [(int(count), int(answer)) for count, answer in answers]
        return self._judge_contexts(check, how, made, grown)

    def _grown(self, before: float, outside: float | None) -> float:
        if outside is None:
            raise SkippedError("there is no NVML: nobody knows what they take")
        return outside - before

    def _judge_contexts(
        self, check: str, how: str, made: list[tuple[int, int]], outside: float
    ) -> Finding:
        contexts = sum(count for count, _ in made)
        wrong = [answer for _, answer in made if answer not in (0, OUT_OF_MEMORY)]
        note = ""
        if outside - self.cap_mib > POOL_GRANULE_MIB:
            note = f"{contexts} contexts, {outside - self.cap_mib:g} MiB more than the cap by NVML"
        elif wrong:
            note = f"refused with CUresult {wrong[0]}, not with out-of-memory (2)"
        elif not contexts and outside <= self.cap_mib:
            note = "no context could be made"
        return findings.judged(check, how, note, self.cap_mib, outside, {"contexts": contexts})
