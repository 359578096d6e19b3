"""The operator as the release runs it, with a note of each planning cycle and ring of its loop.

``python -m tests.perf.signals.noted_operator operator``. ``BENCH_NOTES`` names the file of lines
``cycle WHEN WALL CPU PLACED`` and ``ring WHEN LATE``, in seconds, WHEN by the monotonic clock. Its
own histograms know no CPU time, and a machine that others use makes wall time longer.
"""

import os
import time
from typing import TextIO

from gpu_scheduler.main import main
from gpu_scheduler.runtime.planning import Planning
from gpu_scheduler.web.metrics import OperatorMetrics


def note_into(notes: TextIO) -> None:
    """Have all cycles and rings of this process noted."""
    cycle, ring = Planning.cycle, OperatorMetrics.stall_seconds

    def noted_cycle(planning: Planning) -> int:
        began, cpu = time.monotonic(), time.thread_time()
        placed = cycle(planning)
        cpu, wall = time.thread_time() - cpu, time.monotonic() - began
        notes.write(f"cycle {began:.4f} {wall:.6f} {cpu:.6f} {placed}\n")
        return placed

    def noted_ring(metrics: OperatorMetrics, seconds: float) -> None:
        ring(metrics, seconds)
        notes.write(f"ring {time.monotonic():.4f} {seconds:.6f}\n")

    Planning.cycle = noted_cycle  # type: ignore[method-assign, assignment]
    OperatorMetrics.stall_seconds = noted_ring  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    with open(os.environ["BENCH_NOTES"], "a", buffering=1) as file:
        note_into(file)
        main()
