"""How long nobody leads: ``python -m tests.perf.bench_takeover [--rounds N]``.

Two replicas with the times of the chart's values; the one that leads is told to stop, or a part of
it fails. From that moment on: until its process has ended, until the Lease has another holder, and
until that one has listed everything. Prints one JSON object, times in seconds.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.api.conftest import administrator, own_cluster
from tests.api.replica import LEASE, Replica
from tests.perf.machine import machine

from cluster import Running

FAULTY = Path(__file__).parents[1] / "api" / "faulty_operator.py"
ENDS: dict[str, Callable[[Replica], object]] = {
    "told to stop": Replica.stop,
    "a fault": Replica.fail,
}
_STEP_SECONDS = 0.02
_SETTLED_SECONDS = 5.0  # a stand-by has looked, and the leader renewed


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args(arguments)
    with own_cluster("bench-takeover") as running:
        runs = [
            {"end": end, **_takeover(running, end)} for _ in range(options.rounds) for end in ENDS
        ]
    command = " ".join(["python -m tests.perf.bench_takeover", *(arguments or sys.argv[1:])])
    result = {"machine": machine(), "command": command, "runs": runs, "summary": summary(runs)}
    print(json.dumps(result, indent=1))  # noqa: T201


def _takeover(running: Running, end: str) -> dict[str, float]:
    """One end, and the seconds from its signal until each thing has happened."""
    leader = Replica(running, "first", program=FAULTY).start()
    leader.wait_leading()
    standby = Replica(running, "second", program=True).start()
    _wait(lambda: "standing by" in standby.told())
    time.sleep(_SETTLED_SECONDS)
    began = time.monotonic()
    try:
        ENDS[end](leader)
        return {
            "ended": time.monotonic() - began,
            "another": _wait(lambda: _holder(running).startswith("second_")) - began,
            "synced": _wait(standby.synced) - began,
        }
    finally:
        standby.stop()


def _holder(running: Running) -> str:
    holder: str = administrator(running).get(LEASE).body["spec"]["holderIdentity"]
    return holder


def _wait(condition: Callable[[], bool]) -> float:
    """When it came true."""
    while not condition():
        time.sleep(_STEP_SECONDS)
    return time.monotonic()


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Least, median and most by kind of end."""
    found: dict[str, dict[str, list[float]]] = {}
    for end in ENDS:
        for what in ("ended", "another", "synced"):
            values = sorted(run[what] for run in runs if run["end"] == end)
            three = values[0], statistics.median(values), values[-1]
            found.setdefault(end, {})[what] = [round(each, 2) for each in three]
    return found


if __name__ == "__main__":
    main()
