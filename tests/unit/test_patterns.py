"""No regular expression of ours takes more than some time in proportion to a text.

Python's engine goes back, and holds the interpreter's lock: one that is quadratic stops the leader
for minutes on the megabyte that a tenant may write anywhere. A child process tries each on texts
that end badly, each with thirty times the CPU that the slowest needs, and a fortieth of what a
quadratic pattern takes.
"""

import importlib
import math
import os
import pkgutil
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from types import ModuleType

import pytest

import gpu_scheduler
from gpu_scheduler.api import checkpoint_rules, rules

CHARS, CPU_SECONDS = 200_000, 2
OTHERS = (rules.SHAPE_NAME, checkpoint_rules._PLAIN, checkpoint_rules._CLAIM)
_ELSEWHERE = (  # optional packages
    "gpu_scheduler.sweeps.search.tpe",
    *(f"gpu_scheduler.agent.nvml{part}" for part in ("", "_calls", "_means")),
)
PIECES = ("a", "A", "0", ".", "-", "_", "/", " ", ":", "a.", "a-", "0.", "-0", "/a")


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(gpu_scheduler.__path__, "gpu_scheduler."):
        if found.name not in _ELSEWHERE and not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def patterns() -> dict[str, re.Pattern[str]]:
    """All that modules keep, by where they are."""
    found = {f"one of rules, {text}": re.compile(text) for text in OTHERS}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                found.setdefault(f"{module.__name__}.{name}", value)
    return found


def literals(pattern: str) -> set[str]:
    """Texts that stand in a pattern."""
    plain = re.sub(r"\\([^A-Za-z0-9])", lambda match: match[1], pattern)
    return set(re.findall(r"[^\[\](){}|?*+^\\]{1,20}|\$\{[a-z]+\.", plain))


def texts(pattern: str) -> Iterator[str]:
    """Long ones that match for long, and not in the end."""
    words = literals(pattern)
    braced = {f"${{{word}." for word in words if word.isalpha()}
    for piece in (*PIECES, *sorted(words | braced)):
        yield piece * (CHARS // len(piece)) + "\x00"


def main() -> None:
    """Try all; each is named before it is tried."""
    for name, pattern in patterns().items():
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        for text in texts(pattern.pattern):
            most = math.ceil(time.process_time()) + CPU_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
            pattern.fullmatch(text)
            pattern.search(text)


@pytest.mark.long(always=True)
def test_no_pattern_takes_more_than_in_proportion() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.test_patterns"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    tried = done.stdout.splitlines()
    assert done.returncode == 0, f"it ran out of CPU in {tried[-1:]}: {done.stderr[-2000:]}"
    assert {
        "gpu_scheduler.api.hparam_refs._REFERENCE",
        "gpu_scheduler.core.model.quantity._QUANTITY",
    } <= {*tried}


if __name__ == "__main__":
    main()
