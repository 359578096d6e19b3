"""The agent's self-test on this driver: it passes with the library, and fails with an idle one.

What it says decides whether a node takes pods that share a GPU. It is run as the agent runs it,
by its own code, with a library preloaded that it is told of.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpu_check import findings
from gpu_check.building import ROOT
from gpu_check.findings import Finding, ProbeError, SkippedError
from gpu_check.probes import Bench

PROGRAM = Path(__file__).parent / "programs" / "self_test.py"
SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SelfTested:
    """What a self-test said of a library.

    Attributes:
        result, detail: passed, failed or untested, and why.
        closes: the node would take no pods that share a GPU behind the library.
        cap_mib, got_mib: its own cap, and the most that it got.
    """

    result: str
    detail: str
    closes: bool
    cap_mib: int
    got_mib: int


def judge(ours: SelfTested, idle: SelfTested) -> str:
    """What is wrong of the library that is checked, and of one that does nothing.

    Raises:
        SkippedError: one of them could not be tested.
    """
    for tested in (ours, idle):
        if tested.result == "untested":
            raise SkippedError(tested.detail)
    return findings.said(
        "" if ours.result == "passed" else f"the library: {ours.detail}",
        "a node that passes would be closed" if ours.result == "passed" and ours.closes else "",
        "" if idle.result == "failed" else f"an idle library passes: {idle.detail}",
        "" if idle.closes else "a node whose library does nothing would not be closed",
    )


class SelfTestCheck(Bench):
    """Runs both."""

    def findings(self) -> Iterator[Finding]:
        """One."""
        return findings.each([("self-test", "of the agent", self._try)])

    def _try(self, check: str, how: str) -> Finding:
        idle = self.start.programs.idle
        # Where the library is left out there is nothing to preload.
        preloaded = self.make_box(1).environment.get("LD_PRELOAD")
        ours, other = self._tested(Path(preloaded) if preloaded else idle), self._tested(idle)
        figures = {"idle_got_mib": other.got_mib}
        return findings.judged(check, how, judge(ours, other), ours.cap_mib, ours.got_mib, figures)

    def _tested(self, library: Path) -> SelfTested:
        environment = {**self.make_box(None).environment, "PYTHONPATH": str(ROOT / "operator")}
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(library)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        if done.returncode:
            said = findings.last_line(done.stderr)
            raise ProbeError(f"the self-test ended ({done.returncode}): {said}")
        return SelfTested(**json.loads(done.stdout))
