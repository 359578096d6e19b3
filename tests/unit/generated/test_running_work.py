"""Nobody's running work is lost, however slow the Job controller is and whoever leads: ADR 0054.

Generated histories of jobs of all kinds that take GPUs from each other, with leaders that are
killed in the middle of their writes, news of Jobs or of pods that are behind the others, and a Job
controller that lags, stands still and goes on. At every moment: no pod with a place is deleted but
by an eviction, and no Job is narrower than its pods with places. In the end every job ends.
``HISTORIES_OF_WORK`` says how many histories.
"""

import asyncio
import os
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.job_kinds import JOB_KINDS
from tests.trial_values import TrialValues, see
from tests.unit.generated import controllers
from tests.unit.generated.deadly import Deadly
from tests.unit.generated.job_controller import JOBS, PODS, JobController
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.server import ENDED, Place
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.generated.values import Obj
from tests.unit.parts import in_parts
from tests.unit.runtime.virtual_loop import VirtualLoop

HISTORIES = int(os.environ.get("HISTORIES_OF_WORK", "200"))
PARTS = 8
TEAMS = {"team-a": {"quota": 2, "limit": 4}, "team-b": {"quota": 2, "limit": 4}}
GPUS = 4
_FIRST_JOBS = 6
_ROUNDS_TO_END = 150

BEHIND: tuple[dict[str, float], ...] = (
    {},
    *({kind: seconds} for kind in ("jobs", "pods") for seconds in (0.3, 1.5, 4)),
)
"""Whose news are late, and by how many seconds."""

Step = tuple[str, int]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(0, 2 * len(JOB_KINDS) - 1)),
        st.tuples(st.just("finish"), st.integers(0, 7)),
        st.tuples(st.sampled_from(["lead", "kill", "kill"]), st.integers(0, 9)),
        st.tuples(st.sampled_from(["stop", "go"]), st.just(0)),
        st.tuples(st.just("behind"), st.integers(0, len(BEHIND) - 1)),
        st.tuples(st.just("time"), st.sampled_from([1, 4, 7, 7, 16])),
        st.tuples(st.sampled_from(["drain", "drain", "delete"]), st.integers(0, 7)),
    ),
    min_size=4,
    max_size=14,
)


def writes_a_job_or_a_place(method: str, path: str, body: bytes) -> bool:
    """Whether a leader is worth killing at a write."""
    return method in ("POST", "PATCH") and ("/jobs" in path or "/pods/" in path)


class Watched(Deadly):
    """A server that looks at each change whether running work is safe."""

    def __init__(self) -> None:
        super().__init__(writes_a_job_or_a_place)
        self.lost: list[str] = []

    def _tell(self, kind: str, place: Place, obj: Obj) -> None:
        super()._tell(kind, place, obj)
        if place.collection in (JOBS, PODS):
            for job in self.of(JOBS):
                self._see(job)

    def _see(self, job: Obj) -> None:
        spec, meta = job["spec"], job["metadata"]
        ended = (job.get("status") or {}).get("conditions")
        if spec.get("suspend") or ended or not meta["uid"].startswith("uid-made-"):
            return
        held = [pod["metadata"]["name"] for pod in self.of(PODS) if self._holds(pod, meta["uid"])]
        if spec["parallelism"] < len(held):
            self.lost.append(f"{meta['name']} is {spec['parallelism']} wide, and {held} run")

    def _holds(self, pod: Obj, job: str) -> bool:
        return controllers.owner(pod) == job and self.has_place(pod)

    def has_place(self, pod: Obj) -> bool:
        """Whether a pod has a node, and has not ended."""
        return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] not in ENDED


class Play:
    """A node, two teams that take its GPUs from each other, and everybody who acts."""

    def __init__(self, seed: int) -> None:
        self.random, self.stage, self.server = Random(seed), Stage(), Watched()
        self.stage.use(self.server)
        self.server.deletes = self._deletes
        self.controller = JobController(self.server, self.random)
        self.stage.round = lambda server: self._round()
        self.server.put("/api/v1/nodes/a", node("a", GPUS))
        for team, sizes in TEAMS.items():
            self.server.put(f"{ROOT}/gpuprojects/{team}", gpuproject(team, [team], **sizes))
        self.jobs: list[str] = []
        self.values: TrialValues = {}
        self.eager = False  # the Job controller does all of its work at once

    def _deletes(self, pod: Obj) -> None:
        """The Job controller deletes a pod: none that has its place, but where its job is over."""
        job = next((j for j in self.server.of(JOBS) if _is(j, controllers.owner(pod))), None)
        if job is None or job["spec"].get("suspend") or not self.server.has_place(pod):
            return
        self.server.lost.append(f"{pod['metadata']['name']} was deleted at its place")

    def _round(self) -> None:
        if self.eager:
            self.controller.catch_up()
        else:
            self.controller.turn()
        for pod in self.server.of(PODS):
            if self.random.random() < 0.8 or self.eager:
                controllers.kubelet(self.server, pod)

    async def take(self, step: Step) -> None:
        """One thing happens, and a little time passes."""
        what, number = step
        if what == "submit":
            team = list(TEAMS)[number // len(JOB_KINDS)]
            name = f"job-{len(self.jobs)}"
            path = f"{ROOT}/namespaces/{team}/gpujobs/{name}"
            self.server.put(path, gpujob(name, team, **JOB_KINDS[number % len(JOB_KINDS)]))
            self.jobs.append(path)
        elif what == "finish":
            self._finish(number)
        elif what == "lead":
            await self.stage.lead(Random(number))
        elif what == "kill":
            await self._kill(number)
        elif what in ("stop", "go"):
            self.controller.stopped = what == "stop"
        elif what == "behind":
            self.server.behind = BEHIND[number]
        elif what in ("delete", "drain"):
            live = [p for p in self.server.of(PODS) if p["status"]["phase"] not in ENDED]
            found = [p for p in live if self.server.has_place(p) is (what == "drain")]
            if found:
                meta = found[number % len(found)]["metadata"]
                path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                self.server.remove(path)
        await self.passes(number if what == "time" else 1)

    async def _kill(self, number: int) -> None:
        self.server.struck.clear()
        self.server.armed, self.server.takes_it = True, bool(number % 2)
        for _ in range(8):
            await self.passes(0.5)
            if self.server.struck.is_set():
                break
        self.server.armed = False
        await self.stage.lead(Random(number))

    def _finish(self, number: int) -> None:
        running = [p for p in self.server.of(PODS) if p["status"]["phase"] == "Running"]
        if running:
            controllers.finish(self.server, running[number % len(running)])

    async def passes(self, seconds: float) -> None:
        """Time passes, and running work is safe."""
        await self.stage.passes(seconds)
        see(self.server.of(PODS), self.values)
        assert not self.server.lost, self.server.lost

    async def ends(self) -> None:
        """Everybody does their work from now on: every job ends."""
        self.controller.stopped, self.eager, self.server.behind = False, True, {}
        for _ in range(_ROUNDS_TO_END):
            await self.passes(2)
            left = [job for job in self.jobs if self._phase(job) != "Succeeded"]
            if not left:
                return
            for number in range(2 * GPUS):
                self._finish(number)
        raise AssertionError([(job, self._status(job)) for job in left])

    def _status(self, path: str) -> dict[str, Any]:
        _, _, team, _, name = path.rsplit("/", 4)
        found: dict[str, Any] = self.server.objects[f"{ROOT}/gpujobs", team, name].get("status", {})
        return found

    def _phase(self, path: str) -> str:
        return str(self._status(path).get("phase"))


def _is(job: Obj, uid: str) -> bool:
    return bool(job["metadata"]["uid"] == uid)


async def play(seed: int, history: list[Step]) -> None:
    """Play one history, which begins with more jobs than there is room for."""
    stage = Play(seed)
    await stage.stage.lead(stage.random)
    try:
        for _ in range(_FIRST_JOBS):
            await stage.take(("submit", stage.random.randrange(2 * len(JOB_KINDS))))
        for step in history:
            await stage.take(step)
        await stage.ends()
    finally:
        await stage.stage.end()


@pytest.mark.long
@in_parts(PARTS, examples=HISTORIES, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000), steps)
def test_no_running_work_is_lost(seed: int, history: list[Step]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(play(seed, history))
