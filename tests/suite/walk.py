"""Through how many functions and files one GPUJob goes, from its event to its status.

    python -m tests.suite.walk [--number] [--list]

A leader plans it on an API server in memory, and a Job controller and a kubelet there run its pod.
Counted is each function of the operator that is handed something which says the job's name: once,
however often it is called, properties and what is asked about all jobs among them. With
``--number``: each that is handed the part of a GPU that it asks for, or returns it, as a number or
text of its own and not inside of something else.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from random import Random
from types import FrameType
from typing import Any

from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.runtime.virtual_loop import VirtualLoop

OPERATOR = "operator/gpu_scheduler/"
NAME = "zebra"
GPU = 0.437  # nothing else there has this number
NUMBER = (GPU, str(GPU), 437)
MOST_SAID = 20_000
"""Characters of an argument that are looked through."""

Function = tuple[str, str]  # file, qualified name


class Trace:
    """Which functions were handed the job, in the order of the first time."""

    def __init__(self) -> None:
        self.functions: dict[Function, None] = {}

    def __call__(self, frame: FrameType, event: str, returned: Any) -> None:
        """For ``sys.setprofile``."""
        code = frame.f_code
        _, found, file = code.co_filename.partition(OPERATOR)
        function = file, code.co_qualname
        if not found or function in self.functions:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [frame.f_locals.get(name) for name in names] if event == "call" else []
        if self.follows(given, returned if event == "return" else None):
            self.functions[function] = None

    def follows(self, given: Sequence[object], returned: object) -> bool:
        """Whether it is in what a function was handed."""
        return any(NAME in said(each) for each in given)

    @property
    def files(self) -> set[str]:
        """Where they are."""
        return {file for file, _ in self.functions}


class NumberTrace(Trace):
    """The same of the part of a GPU that the job asks for."""

    def follows(self, given: Sequence[object], returned: object) -> bool:
        """Whether it is what a function was handed, or returned."""
        return any(isinstance(n, int | float | str) and n in NUMBER for n in (*given, returned))


def said(value: object) -> str:
    """What an argument says of itself."""
    try:
        return repr(value)[:MOST_SAID]
    except Exception:  # it is not put together yet
        return ""


def traced(trace: Trace) -> str:
    """The phase that one job is in at the end, which ``trace`` follows."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_play(trace))


async def _play(trace: Trace) -> str:
    stage = Stage()
    stage.server.put("/api/v1/nodes/a", node("a", 2))
    stage.server.put(f"{ROOT}/gpuprojects/team", gpuproject("team", ["team"], quota=2))
    await stage.lead(Random(1))
    await stage.passes(2)
    path = f"{ROOT}/namespaces/team/gpujobs/{NAME}"
    sys.setprofile(trace)
    try:
        stage.server.put(path, gpujob(NAME, "team", image="x", gpu=GPU))
        for _ in range(5):
            await stage.passes(2)
    finally:
        sys.setprofile(None)
    (job,) = stage.server.of(f"{ROOT}/gpujobs")
    await stage.end()
    return str(job.get("status", {}).get("phase"))


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite.walk")
    parser.add_argument("--list", action="store_true", help="name the functions")
    parser.add_argument("--number", action="store_true", help="follow the part of a GPU alone")
    options = parser.parse_args()
    trace = NumberTrace() if options.number else Trace()
    phase = traced(trace)
    lines = [f"{file} {name}" for file, name in trace.functions] if options.list else []
    lines.append(f"{phase}: {len(trace.functions)} functions in {len(trace.files)} files")
    print("\n".join(lines))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
