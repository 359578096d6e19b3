"""A leader that is killed between a place and its pod forgets no job, and promises no GPU twice.

Each time the process ends exactly at the write that makes or widens a Job, before it is taken or
before its answer is heard, and another leader goes on. ``KILLS`` says how often.
"""

import asyncio
import os
from random import Random

import pytest
from tests.job_kinds import JOB_KINDS
from tests.trial_values import TrialValues, see
from tests.unit.generated import controllers
from tests.unit.generated.deadly import Deadly
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.server import path_of
from tests.unit.generated.stage import ROOT, Stage
from tests.unit.runtime.virtual_loop import VirtualLoop

KILLS = int(os.environ.get("KILLS", "200"))
PARTS = 4
TEAM = "team-a"


def makes_a_job(method: str, path: str, body: bytes) -> bool:
    """Whether a write makes a Job, or makes it wider."""
    of_a_job = path.startswith("/apis/batch/v1/") and method in ("POST", "PATCH")
    return of_a_job and b'"parallelism"' in body


class Kills:
    """A node with four GPUs, and one job after the other."""

    def __init__(self, random: Random) -> None:
        self.random, self.stage = random, Stage()
        self.server = Deadly(makes_a_job)
        self.stage.use(self.server)
        for obj, path in (
            (node("a", 4), "/api/v1/nodes/a"),
            (gpuproject(TEAM, [TEAM], quota=4), f"{ROOT}/gpuprojects/{TEAM}"),
        ):
            self.server.put(path, obj)
        self.values: TrialValues = {}

    async def kill(self, number: int) -> None:
        """One job, whose leader is killed on the way, from its beginning to its end."""
        name, spec = f"job-{number}", JOB_KINDS[number % len(JOB_KINDS)]
        path = f"{ROOT}/namespaces/{TEAM}/gpujobs/{name}"
        self.server.struck.clear()
        self.server.armed, self.server.takes_it = True, bool(number // len(JOB_KINDS) % 2)
        self.server.put(path, gpujob(name, TEAM, **spec))
        for _ in range(40):
            await self.stage.passes(0.25)
            if self.server.struck.is_set():
                break
        assert self.server.struck.is_set(), f"{spec}: no Job was made"
        await self.stage.lead(self.random)
        for _ in range(60):
            await self.stage.passes(1)
            see(self.server.of("/api/v1/pods"), self.values)
            if self.server.objects[self._key(path)].get("status", {}).get("phase") == "Succeeded":
                break
            for pod in self.server.of("/api/v1/pods"):
                if pod["status"]["phase"] == "Running":
                    controllers.finish(self.server, pod)
        found = self.server.objects[self._key(path)]
        assert found["status"]["phase"] == "Succeeded", (spec, found["status"])
        self.server.remove(path)
        await self.stage.passes(1)

    def _key(self, path: str) -> tuple[str, str, str]:
        return next(key for key in self.server.objects if path_of(key) == path)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_leader_killed_between_a_place_and_its_pod_loses_nothing(part: int) -> None:
    async def play() -> None:
        kills = Kills(Random(part))
        await kills.stage.lead(kills.random)
        for number in range(part, KILLS, PARTS):
            await kills.kill(number)
        await kills.stage.end()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(play())
