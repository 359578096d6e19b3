"""The process that answers the dashboard's what-ifs on one dump, one after the other.

Standard input has the length of the dump in bytes as a line, the dump, and then a line for each
question, a ``WhatIfTask`` as JSON; it ends where they end. Each answer is a line of three numbers,
0 or 2, the answer's length in bytes, and microseconds of a CPU since the answer before, and then
the answer: a ``WhatIfAnswer``, or with 2 a ``ProblemView`` where the question cannot be used.

It bounds itself before it reads: time of each question, memory, priority, and that it goes first
where the pod has no memory left.
"""

import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from gpu_scheduler.dashboard.views import ProblemView
from gpu_scheduler.dashboard.what_if import CPU_SECONDS, WhatIfTask
from gpu_scheduler.runtime.dump import read
from gpu_scheduler.simulate.cluster_objects import SimulationError
from gpu_scheduler.simulate.dashboard_what_if import PlannedInput, answer

MOST_BYTES = 384 << 20  # of memory of its own


def main() -> int:
    """The exit code."""
    _bound()
    _allow_time()
    source, target = sys.stdin.buffer, sys.stdout.buffer
    planned = PlannedInput(read(source.read(int(source.readline()))).to_input())
    told = 0.0
    while line := source.readline():
        code = 0
        try:
            task = msgspec.json.decode(line, type=WhatIfTask)
            said = msgspec.json.encode(answer(task, planned))
        except SimulationError as error:
            code, said = 2, msgspec.json.encode(ProblemView(error=str(error)[:1000]))
        used = time.process_time()
        target.write(b"%d %d %d\n" % (code, len(said), 1_000_000 * (used - told)))
        target.write(said)
        target.flush()
        told = used
        _allow_time()
    return 0


def _allow_time() -> None:
    """The next question may take as long as each."""
    until = int(time.process_time()) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


def _bound() -> None:
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with suppress(OSError):  # not on Linux
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    sys.exit(main())
