"""The process of one what-if of the dashboard: reads the task and a dump, plans, prints the answer.

Ends with 2 and a ``Problem`` where the question cannot be used. It bounds itself before it reads:
time, memory, priority, and that it goes first where the pod has no memory left.
"""

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from gpu_scheduler.dashboard.views import ProblemView
from gpu_scheduler.dashboard.what_if import WhatIfTask
from gpu_scheduler.runtime.dump import read
from gpu_scheduler.simulate.cluster_objects import SimulationError
from gpu_scheduler.simulate.dashboard_what_if import answer

CPU_SECONDS = 10
MOST_BYTES = 384 << 20  # of memory of its own


def main() -> int:
    """The exit code."""
    _bound()
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=WhatIfTask)
    given = read(sys.stdin.buffer.read()).to_input()
    code = 0
    try:
        said = msgspec.json.encode(answer(task, given))
    except SimulationError as error:
        code, said = 2, msgspec.json.encode(ProblemView(error=str(error)[:1000]))
    sys.stdout.buffer.write(said)
    return code


def _bound() -> None:
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with suppress(OSError):  # not on Linux
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    sys.exit(main())
