"""The two outputs: a table for people, written as findings come, and one JSON report.

The report has every figure, what was skipped and why, and where it was taken. Its layout is told by
``schema_version``; fields are added, never renamed, within a version.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from gpu_check.findings import Finding, Verdict
from gpu_check.machine import Machine

SCHEMA_VERSION = 1
WIDTHS = (17, 15, 8, 8, 9)


def _cells(*cells: object) -> str:
    *fixed, note = cells
    padded = [f"{cell!s:<{width}}" for cell, width in zip(fixed, WIDTHS, strict=True)]
    return " ".join([*padded, str(note)]).rstrip()


class Table:
    """Writes a line as soon as it is known."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def head(self, machine: Machine) -> None:
        """What it runs on, and the columns."""
        where = f"{machine.gpu}, driver {machine.driver or '?'}, CUDA {machine.cuda}"
        print(f"{where}{' (PRETENDED)' if machine.pretended else ''}\n", file=self._out)
        print(_cells("check", "how", "cap MiB", "got MiB", "verdict", "note"), file=self._out)

    def line(self, finding: Finding) -> None:
        """One finding."""
        got = "" if finding.got_mib is None else f"{finding.got_mib:g}"
        cells = (finding.check, finding.how, finding.cap_mib or "", got)
        print(_cells(*cells, finding.verdict, finding.note), file=self._out, flush=True)

    def foot(self, findings: Sequence[Finding], seconds: float) -> None:
        """What came of it."""
        counts = Counter(finding.verdict for finding in findings)
        words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
        print(f"\n{words}; {seconds:.0f} s", file=self._out)


def all_held(findings: Sequence[Finding]) -> bool:
    """Nothing failed, and something held."""
    verdicts = {finding.verdict for finding in findings}
    return Verdict.FAILED not in verdicts and Verdict.HELD in verdicts


def report(
    machine: Machine,
    findings: Sequence[Finding],
    *,
    cap_mib: int,
    frameworks: dict[str, str],
    began: datetime,
    seconds: float,
) -> dict[str, Any]:
    """The report, ready for JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "date": began.astimezone(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "machine": asdict(machine),
        "frameworks": {name: frameworks.get(name) for name in ("cupy", "torch", "jax", "jaxlib")},
        "cap_mib": cap_mib,
        "all_held": all_held(findings),
        "counts": {
            verdict.lower(): sum(finding.verdict == verdict for finding in findings)
            for verdict in Verdict
        },
        "skipped": {
            f"{finding.check} ({finding.how})": finding.note
            for finding in findings
            if finding.verdict is Verdict.SKIPPED
        },
        "findings": [
            {**asdict(finding), "verdict": finding.verdict.lower()} for finding in findings
        ],
    }


def default_name(machine: Machine, began: datetime) -> str:
    """For example gpu-check-2026-11-21-nvidia-h200.json."""
    gpu = re.sub(r"[^a-z0-9]+", "-", machine.gpu.lower()).strip("-")
    return f"gpu-check-{began:%Y-%m-%d}-{gpu}.json"


def write(path: Path, content: dict[str, Any]) -> None:
    """Write the report."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
