"""Who reads a wall clock: one type, and those whose times are only said."""

import ast
import re
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "operator" / "gpu_scheduler"
# Commands read the clock of who runs them, to say how old something is.
COMMANDS = ("cli", "simulate", "sweeps/commands")
MAY = {
    "kube/clock.py": "the clock of the process",
    "kube/times.py": "dates what is only said",
    "kube/lease.py": "renewTime and acquireTime, which no elector compares",
    "agent/heartbeat.py": "renewTime, which the operator does not compare",
    "agent/agent.py": "gpusched_gpu_last_active_timestamp_seconds",
    "runtime/eviction/evictor.py": "dates a condition of a pod that goes",
}
CLOCKS, READERS = "time|datetime|date", "time|time_ns|now|utcnow|today|localtime|gmtime"
LIKELY = re.compile(rf"\b({CLOCKS})\.({READERS})\b")


def wall_clock_readers(source: str) -> list[str]:
    """What reads a wall clock by name: ``time.time``, ``datetime.now`` and their like."""
    if not LIKELY.search(source):  # most are spared to be parsed
        return []
    return [
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and LIKELY.fullmatch(name := f"{node.value.id}.{node.attr}")
    ]


def test_only_these_modules_read_a_wall_clock() -> None:
    found = {
        name
        for path in SOURCES.rglob("*.py")
        if wall_clock_readers(path.read_text())
        and not (name := path.relative_to(SOURCES).as_posix()).startswith(COMMANDS)
    }
    assert found == set(MAY)


def test_what_is_looked_for_would_be_found() -> None:
    assert wall_clock_readers("import time\nnow = time.time\n") == ["time.time"]
    assert wall_clock_readers("at = datetime.now(UTC)") == ["datetime.now"]
    assert wall_clock_readers("import time\ntime.monotonic()") == []
