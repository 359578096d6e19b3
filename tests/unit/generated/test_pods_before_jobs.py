"""Pods of a Job that are seen before the Job is: they take the places that are kept for them.

A leader has the answer to the write that made a Job, and watches of Jobs and of pods, on
connections of their own: which comes first is nobody's promise.
"""

import asyncio
from random import Random
from typing import Any

import pytest
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.stage import ROOT, SETTINGS, Stage
from tests.unit.runtime.virtual_loop import VirtualLoop

STRICT = SETTINGS.model_copy(update={"preemption": "strict"})
LATE_SECONDS = 1.5  # its controller looks once a second
_HALTON = {"algorithm": "halton", "parameters": {"lr": {"uniform": [0, 1]}}}
KINDS: tuple[dict[str, Any], ...] = (
    {"gpu": 1, "parallelism": 2},
    {"gpu": 1, "parallelism": 2, "gang": True},
    {"gpu": 1, "parallelism": 2, "completions": 2, "sweep": _HALTON},
    {"roles": [{"name": "lead", "gpu": 1}, {"name": "work", "gpu": 1}]},
)


@pytest.mark.parametrize("spec", KINDS)
def test_they_take_their_places_and_nobody_gives_way_for_others(spec: dict[str, Any]) -> None:
    async def play() -> None:
        stage = Stage(settings=STRICT)
        server = stage.server
        server.put("/api/v1/nodes/a", node("a", 4))
        for team, quota in (("team-a", 4), ("team-b", 0)):
            server.put(f"{ROOT}/gpuprojects/{team}", gpuproject(team, [team], quota=quota))
        await stage.lead(Random(0))
        borrows = gpujob("borrows", "team-b", gpu=1, parallelism=2)
        server.put(f"{ROOT}/namespaces/team-b/gpujobs/borrows", borrows)
        await stage.passes(4)
        assert len(stage.placed("team-b")) == 2
        server.behind = {"jobs": LATE_SECONDS}
        server.put(f"{ROOT}/namespaces/team-a/gpujobs/owns", gpujob("owns", "team-a", **spec))
        await stage.passes(4)
        assert len(stage.placed("team-a")) == 2
        assert stage.evicted == []
        await stage.end()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(play())
