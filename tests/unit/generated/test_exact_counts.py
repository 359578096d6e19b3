"""Whatever becomes of the operator's writes: once it is calm, every status counts what there is.

Generated histories in which a third of all writes goes wrong: refused, lost, taken without an
answer, taken with an answer that is slow, or taken much later. Pods end meanwhile, and leaders
change. When nothing goes wrong any more, each GPUJob says what its Jobs and pods say.
``HISTORIES_OF_COUNTS`` says how many histories.
"""

import asyncio
import os
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.job_kinds import JOB_KINDS
from tests.unit.generated import controllers
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.server import FAULTS, Server
from tests.unit.generated.stage import ROOT, SETTINGS, Stage
from tests.unit.generated.values import Obj
from tests.unit.parts import in_parts
from tests.unit.runtime.virtual_loop import VirtualLoop

from gpu_scheduler.kube.errors import from_answer
from gpu_scheduler.runtime.status import status_writer

HISTORIES = int(os.environ.get("HISTORIES_OF_COUNTS", "8"))
PARTS = 2
TEAM, GPUS = "team-a", 4
SLOW = "slow"  # it is taken at once, and its answer comes when others have written
# An earlier write may overtake a later one that is not answered yet.
_OF_STATUSES = ("late", "late", SLOW, SLOW, SLOW, *FAULTS)
_WRONG = 0.3  # of the writes
_CALM_SECONDS = 75  # what failed again and again is tried each half minute
_JOBS, _PODS = "/apis/batch/v1/jobs", "/api/v1/pods"

Step = tuple[str, int]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(0, len(JOB_KINDS) - 1)),
        st.tuples(st.just("finish"), st.integers(0, 7)),
        st.tuples(st.just("finish"), st.integers(0, 7)),
        st.tuples(st.just("lead"), st.integers(0, 9)),
        st.tuples(st.just("time"), st.sampled_from([1, 3, 7])),
    ),
    min_size=8,
    max_size=16,
)


class Unreliable(Server):
    """A server of whose writes a part goes wrong, as often as they are tried."""

    def __init__(self, random: Random) -> None:
        super().__init__(lambda path, tries: self.next)
        self.random, self.calm, self.next = random, False, ""
        self.late_seconds = lambda: random.uniform(0.5, 14)

    async def request(self, method: str, path: str, *, params: Any = None, **more: Any) -> bytes:
        wrong = method != "GET" and not self.calm and self.random.random() < _WRONG
        kinds = _OF_STATUSES if path.endswith("/status") else (*FAULTS, SLOW)
        fault = self.random.choice(kinds) if wrong else ""
        if fault == "absent" and path.endswith("/status"):
            raise from_answer(404, b"told so")  # as while the API server learns of a kind
        self.next = "" if fault == SLOW else fault
        answer = await super().request(method, path, params=params, **more)
        if fault == SLOW:
            await asyncio.sleep(self.random.uniform(0.1, 5))
        return answer


class Play:
    """A node, a team, and jobs of all kinds, of which more wait than there is room for."""

    def __init__(self, seed: int) -> None:
        never = SETTINGS.model_copy(update={"resync_seconds": 3600})  # a full list would heal it
        self.random, self.stage = Random(seed), Stage(settings=never)
        self.server = Unreliable(self.random)
        self.stage.use(self.server)
        self.server.put("/api/v1/nodes/a", node("a", GPUS))
        self.server.put(f"{ROOT}/gpuprojects/{TEAM}", gpuproject(TEAM, [TEAM], quota=GPUS))
        self.submitted = 0

    async def take(self, step: Step) -> None:
        """One thing happens, and a little time passes."""
        what, number = step
        if what == "submit":
            name = f"job-{self.submitted}"
            self.submitted += 1
            path = f"{ROOT}/namespaces/{TEAM}/gpujobs/{name}"
            self.server.put(path, gpujob(name, TEAM, **JOB_KINDS[number]))
        elif what == "finish":
            running = [p for p in self.server.of(_PODS) if p["status"]["phase"] == "Running"]
            if running:
                controllers.finish(self.server, running[number % len(running)])
        elif what == "lead":
            await self.stage.lead(Random(number))
        await self.stage.passes(number if what == "time" else 1)

    def told(self) -> dict[str, Obj]:
        """What the statuses count."""
        found = {}
        for job in self.server.of(f"{ROOT}/gpujobs"):
            counts = (job.get("status") or {}).get("pods") or {}
            about = {each: counts.get(each, 0) for each in ("running", "succeeded", "failed")}
            found[job["metadata"]["name"]] = about
        return found

    def true(self) -> dict[str, Obj]:
        """What their Jobs and pods say."""
        found: dict[str, Obj] = {
            job["metadata"]["name"]: {"running": 0, "succeeded": 0, "failed": 0}
            for job in self.server.of(f"{ROOT}/gpujobs")
        }
        owners = {}
        for job in self.server.of(_JOBS):
            owner = owners[job["metadata"]["uid"]] = job["metadata"]["ownerReferences"][0]["name"]
            found[owner]["succeeded"] += (job.get("status") or {}).get("succeeded", 0)
        for pod in self.server.of(_PODS):
            if pod["status"]["phase"] == "Running":
                found[owners[controllers.owner(pod)]]["running"] += 1
        return found


async def play(seed: int, history: list[Step]) -> None:
    """Play one history: what is told in the end is what is true."""
    stage = Play(seed)
    await stage.stage.lead(stage.random)
    try:
        for number in range(4):
            await stage.take(("submit", number + seed % 3))
        for step in history:
            await stage.take(step)
        stage.server.calm = True
        await stage.stage.passes(_CALM_SECONDS)
        assert stage.told() == stage.true()
    finally:
        await stage.stage.end()


@pytest.mark.long
@in_parts(PARTS, examples=HISTORIES, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000), steps)
def test_in_the_end_every_status_counts_what_there_is(seed: int, history: list[Step]) -> None:
    slower = patch.object(status_writer, "_TICK_SECONDS", 0.25)
    with slower, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(play(seed, history))
