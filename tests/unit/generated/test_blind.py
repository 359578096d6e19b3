"""A leader that cannot see something that plans are made of starts and evicts nothing meanwhile."""

from random import Random

import pytest
from tests.unit.generated.nodes import node
from tests.unit.generated.ours import gpujob, gpuproject
from tests.unit.generated.stage import ROOT, SETTINGS, Stage
from tests.unit.runtime.virtual_loop import virtual

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.paths import JOBS, NAMESPACES, NODES, PODS
from gpu_scheduler.runtime.informers.our_lists import PATHS

GONE = errors.NotFound(404, "", "404 page not found")


async def owed() -> Stage:
    """Both GPUs of the cluster are borrowed by one project; one of them is owed to another."""
    stage = Stage(settings=SETTINGS.model_copy(update={"preemption": "strict"}))
    stage.server.put(f"{NODES}/one", node("one", 2))
    stage.server.put(f"{ROOT}/gpuprojects/borrows", gpuproject("borrows", ["borrows"], quota=1))
    stage.server.put(f"{ROOT}/gpuprojects/owed", gpuproject("owed", ["owed"], quota=1))
    await stage.lead(Random(0))
    put(stage, "borrows", 2)
    await stage.passes(10)
    assert len(stage.placed("borrows")) == 2
    return stage


def put(stage: Stage, namespace: str, pods: int) -> None:
    job = gpujob("job", namespace, gpu=1, parallelism=pods)
    stage.server.put(f"{ROOT}/namespaces/{namespace}/gpujobs/job", job)


@pytest.mark.parametrize("path", [*PATHS.values(), PODS, NODES, JOBS])
def test_what_plans_are_made_of_is_waited_for(path: str) -> None:
    @virtual
    async def run() -> None:
        stage = await owed()
        watches = stage.server.watches
        watches.followed(path)
        watches.lost(path, GONE)
        put(stage, "owed", 1)
        await stage.passes(60)
        assert (stage.evicted, stage.placed("owed")) == ([], set())
        watches.followed(path)
        await stage.passes(30)
        assert len(stage.evicted) == 1
        assert len(stage.placed("owed")) == 1
        await stage.end()

    run()


@virtual
async def test_what_is_only_looked_at_is_not_waited_for() -> None:
    stage = await owed()
    stage.server.watches.lost(NAMESPACES, GONE)
    put(stage, "owed", 1)
    await stage.passes(30)
    assert len(stage.placed("owed")) == 1
    await stage.end()
