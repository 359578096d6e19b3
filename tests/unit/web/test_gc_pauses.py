"""Collections of garbage are timed."""

import gc

from gpu_scheduler.web.gc_pauses import GcPauses


def shown(pauses: GcPauses) -> dict[str, float]:
    return {
        sample.labels.get("le", sample.name.rpartition("_")[2]): sample.value
        for sample in pauses.figures().samples
    }


def test_each_collection_is_one_pause_of_its_length() -> None:
    now = 0.0
    pauses = GcPauses(lambda: now)
    for took in (0.004, 0.3):
        pauses("start", {})
        now += took
        pauses("stop", {})
    seen = shown(pauses)
    assert (seen["0.001"], seen["0.005"], seen["0.2"], seen["0.5"]) == (0, 1, 1, 2)
    assert (seen["+Inf"], round(seen["sum"], 3)) == (2, 0.304)


async def test_python_tells_of_its_collections_until_the_end() -> None:
    pauses = GcPauses()
    gc.callbacks.append(pauses)
    gc.collect(0)  # a whole one takes seconds beside ten thousand tests
    await pauses.cleanup()
    gc.collect(0)
    assert shown(pauses)["+Inf"] == 1
