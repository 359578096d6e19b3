"""Work of which nothing is new stays the same object, and nothing that is new is missed."""

from dataclasses import replace

from tests.unit.runtime.usage.stage import UsageStage

from gpu_scheduler.runtime.usage.held import HeldGpus
from gpu_scheduler.runtime.usage.works import LiveWorks


async def test_work_stays_the_same_object_until_something_of_it_is_another_one() -> None:
    stage = UsageStage()
    stage.job()
    pod = stage.runs()
    held, works = HeldGpus(stage.state, stage.seen), LiveWorks(stage.state)

    async def read() -> object:
        (found,) = (await works.of((await held.read(stage.monotonic())).values())).values()
        return found

    first = await read()
    assert await read() is first
    stage.works(pod, 60)
    stage.answers()
    second = await read()
    assert second is not first
    (job,) = stage.state.gpujobs.values()
    stage.state.gpujob_changed(replace(job, deleting=True))
    assert await read() is not second


async def test_work_whose_record_was_away_is_back_with_it() -> None:
    stage = UsageStage()
    stage.job()
    stage.runs()
    nodes = (await HeldGpus(stage.state, stage.seen).read(0.0)).values()
    works, gpujobs = LiveWorks(stage.state), stage.state.workloads.gpujobs
    assert await works.of(nodes)
    (key,) = gpujobs
    record = gpujobs.pop(key)
    assert not await works.of(nodes)
    gpujobs[key] = record
    assert await works.of(nodes)
