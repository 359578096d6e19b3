"""What a hostile object costs a planning cycle: 1,000 pods that run, and objects of the histories.

``python -m tests.perf.hostile_cycles [OBJECTS]`` prints how long a cycle takes without them, and
with the worst of them; and what the search for a job costs with which planning raises. Run by hand.
"""

import asyncio
import gc
import sys
import time
from dataclasses import replace
from random import Random
from typing import Any

from tests.api.test_generated import generated
from tests.unit.generated.nodes import USABLE_MIB, node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.pods import pod
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.runtime.virtual_loop import VirtualLoop

from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import DeviceAllocation, Plan
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.plan_input import PlanInput

NODES, PODS = 63, 1000


async def measure(objects: int) -> None:
    """Play the objects, one a step, and time every cycle."""
    steps = generated()[:objects]
    gc.set_threshold(50_000, 20, 100)  # as the operator has it, of which this process is not full
    gc.collect()
    gc.freeze()
    stage = Stage()
    for n in range(NODES):
        stage.server.put(f"/api/v1/nodes/n-{n}", node(f"n-{n}", 8))
    half = USABLE_MIB // 2
    for n in range(PODS):
        devices = [DeviceAllocation(0, str(n // 2 % 8), 500, half)]
        at = f"n-{n // 16}"
        running = pod(f"r-{n}", "team-a", node=at, annotated=annotations(at, devices))
        running["status"]["phase"] = "Running"
        stage.server.put(f"/api/v1/namespaces/team-a/pods/r-{n}", running)
    stage.server.put(f"{ROOT}/gpuprojects/team-a", gpuproject("team-a", ["team-a"], quota=1000))
    stage.server.put(f"{ROOT}/gpuprojects/team-bad", gpuproject("team-bad", ["team-bad"], quota=1))
    await stage.lead(Random(0))
    for n in range(8):  # something that waits, so that a cycle has work
        job = gpujob(f"w-{n}", "team-a", gpu=8)
        stage.server.put(f"{ROOT}/namespaces/team-a/gpujobs/w-{n}", job)
    await stage.passes(3)
    took: list[float] = []
    cycle = stage.operator.planning.cycle

    def timed() -> int:
        started = time.perf_counter()
        placed = cycle()
        took.append(time.perf_counter() - started)
        return placed

    stage.operator.planning.cycle = timed  # type: ignore[method-assign]
    for n in range(50):
        stage.server.put("/api/v1/nodes/n-0", node("n-0", 8, step=str(n)))
        await asyncio.sleep(0.5)
    usual = sorted(took)[len(took) // 2]
    worst, of = 0.0, ""
    for step in steps:
        assert step.obj is not None
        took.clear()
        if step.what == "remove":
            stage.server.remove(step.path)
        else:
            stage.server.put(step.path, step.obj)
        await asyncio.sleep(0.5)
        if max(took, default=0.0) > worst:
            worst, of = max(took), step.path
    questions = await search_for(stage, "team-a/w-5")
    await stage.end()
    sys.stdout.write(
        f"the search for a job with which planning raises: {len(questions)} questions, each at "
        f"most {max(questions) * 1000:.1f} ms, {sum(questions) * 1000:.1f} ms in all\n"
    )
    sys.stdout.write(
        f"{PODS} pods, {NODES} nodes, {objects} objects: a cycle takes {usual * 1000:.1f} ms, "
        f"with the worst of them {worst * 1000:.1f} ms ({of})\n"
    )


async def search_for(stage: Stage, faulty: str) -> list[float]:
    """Let planning raise with a job; seconds that each question of the search took."""
    planning, took = stage.operator.planning, list[float]()
    rules, raises = planning._rules, planning._raises

    def broken(given: PlanInput, session: PlannerCache) -> Plan:
        result = rules.decide(given, session)
        if any(job.key == faulty for job in given.jobs):
            raise RuntimeError("for the sake of the search")
        return result

    def timed(scene: Any) -> Exception | None:
        started = time.perf_counter()
        found = raises(scene)
        took.append(time.perf_counter() - started)
        return found

    planning._rules = replace(rules, decide=broken)
    planning._raises = timed  # type: ignore[method-assign, assignment]
    stage.server.put("/api/v1/nodes/n-0", node("n-0", 8, step="search"))
    await asyncio.sleep(2)
    assert planning._quarantine.job(JobKey(faulty)), "it was not found"
    return took


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
