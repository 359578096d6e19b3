"""CuPy, PyTorch and JAX, where they are installed: each of their allocators meets the cap.

A framework keeps memory for itself (a context, modules, a part that it never hands out), so what a
program gets lies below the cap by an amount that the framework chooses. It held when the framework
saw a device of the cap's size, said "out of memory" in its own way, and did so no higher than the
cap and not far below what it was told is free.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gpu_check import findings
from gpu_check.boxes import Box, MakeBox
from gpu_check.findings import Finding, ProbeError, SkippedError

PROGRAMS = Path(__file__).with_name("framework_programs")
PIECE_MIB = 32
BEYOND_PIECES = 8
SECONDS = 120.0
VERSIONS = """
import importlib.metadata, importlib.util, json
found = {}
owners = importlib.metadata.packages_distributions()
for name in ("cupy", "torch", "jax", "jaxlib"):
    if importlib.util.find_spec(name):
        found[name] = next(iter(importlib.metadata.version(o) for o in owners.get(name, [])), "?")
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework and its allocators.

    Attributes:
        module: what Python imports.
        program: in framework_programs.
        ways: its allocators.
        refusal: what it raises when there is no more memory.
        least: the part of what is free at the start that it must be able to hand out.
    """

    module: str
    program: str
    ways: tuple[str, ...]
    refusal: str
    least: float


OOM = "OutOfMemoryError"
FRAMEWORKS = (
    Framework("cupy", "cupy_pools.py", ("default", "async", "managed"), OOM, 0.9),
    Framework("torch", "torch_allocators.py", ("native", "expandable", "async"), OOM, 0.85),
    # What JAX takes at the start is three quarters of what is free, and it stays with that.
    Framework("jax", "jax_arrays.py", ("preallocate", "on-demand"), "RESOURCE_EXHAUSTED", 0.6),
)


def versions(python: str) -> dict[str, str]:
    """Versions of those that this interpreter has.

    Raises:
        OSError: there is no such interpreter.
    """
    try:
        done = subprocess.run(
            [python, "-c", VERSIONS], capture_output=True, text=True, timeout=SECONDS
        )
        found: dict[str, str] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return {}
    return found


@dataclass(frozen=True, slots=True)
class FrameworkCheck:
    """Runs them.

    Attributes:
        python: the interpreter.
        installed: versions by module.
        make_box: makes boxes.
        cap_mib: of theirs.
        why_none: why none can run here, though installed; empty: they can.
    """

    python: str
    installed: dict[str, str]
    make_box: MakeBox
    cap_mib: int
    why_none: str = ""

    def findings(self) -> Iterator[Finding]:
        """All of them."""
        for framework in FRAMEWORKS:
            run = partial(self._finding, framework)
            yield from findings.each((framework.module, way, run) for way in framework.ways)

    def _finding(self, framework: Framework, _: str, way: str) -> Finding:
        if framework.module not in self.installed:
            raise SkippedError(f"not installed for {self.python}")
        if self.why_none:
            raise SkippedError(self.why_none)
        box = self.make_box(self.cap_mib, None)
        most = self.cap_mib // PIECE_MIB + BEYOND_PIECES
        program = str(PROGRAMS / framework.program)
        command = [self.python, program, way, str(PIECE_MIB), str(most)]
        try:
            done = subprocess.run(
                command, env=box.environment, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise ProbeError(f"no end within {SECONDS:g} s; killed") from None
        try:
            seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, json.JSONDecodeError):
            last = findings.last_line(done.stderr)
            raise ProbeError(f"exit code {done.returncode}: {last[:200]}") from None
        return judge(framework, way, box, seen)


def judge(framework: Framework, way: str, box: Box, seen: dict[str, Any]) -> Finding:
    """What a framework program's figures say about the cap."""
    cap, got, free = box.cap_mib or 0, seen["got_mib"], seen["free_mib"]
    wrong = []
    if seen["total_mib"] != cap:
        wrong.append(f"it saw a device of {seen['total_mib']:g} MiB")
    if got > cap:
        wrong.append(f"got {got - cap:g} MiB more than the cap")
    if seen["error"] is None:
        wrong.append("it was stopped by this check, not by the cap")
    elif seen["error"] != framework.refusal:
        wrong.append(f"it ended with {seen['error']}, not with {framework.refusal}")
    elif got < framework.least * free:
        wrong.append(f"refused after {got:g} MiB of {free:g} that were free")
    figures = {name: seen[name] for name in ("free_mib", "total_mib", "error")}
    found = findings.judged(framework.module, way, findings.said(*wrong), cap, got, figures)
    well = f"{seen['error']} at {got:g} of {free:g} MiB that were free"
    return found if wrong else replace(found, note=well)
