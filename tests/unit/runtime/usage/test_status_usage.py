"""What a GPUJob's status keeps of its use after its end."""

from typing import Any

from tests.unit.runtime.usage.stage import UsageStage
from tests.unit.state.builders import USABLE_MIB

from gpu_scheduler.api.job_usage import JobUsage
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.usage.sums import job_usage
from gpu_scheduler.usage.answer import Totals

KEY = JobKey("team-a/job")


def usage_of(stage: UsageStage) -> JobUsage | None:
    return job_usage(*stage.seen.totals("gpujob-uid"))


def test_it_is_the_sum_of_all_pods_and_exact() -> None:
    stage = UsageStage()
    stage.job()
    first, second = stage.runs(), stage.runs("job-1")
    stage.works(first, 600, busy=1.0, mib=3000)
    stage.works(second, 200, busy=0.0, mib=100)
    stage.ends(first)
    stage.answers()
    found = usage_of(stage)
    assert found is not None
    assert (found.gpu_seconds, found.mean_percent) == (400, 75)
    assert (found.used_gpu_seconds, found.peak_mib) == (300, 3000)
    assert found.cap_mib == USABLE_MIB // 2
    assert found.seconds_by_tenth == [200, *[0] * 8, 600]
    assert (found.p50_percent, found.p95_percent) == (100, 100)


def test_nothing_is_said_where_no_agent_has_said_anything() -> None:
    stage = UsageStage()
    stage.job()
    stage.runs()
    assert usage_of(stage) is None


def test_of_a_driver_that_cannot_tell_only_what_was_held_is_known() -> None:
    found = job_usage(Totals(containers=1, held_gpu_seconds=100.0, peak_mib=5), 0)
    assert found is not None
    assert found.to_json() == {"gpuSeconds": 100, "peakMiB": 5}


def status(stage: UsageStage, usage: JobUsage | None, told: Any = None) -> Any:
    job = stage.state.gpujobs[KEY]
    job.status = {"phase": "Succeeded", **({"usage": told} if told else {})}
    complete = list(stage.state.workloads.jobs(KEY))
    known = JobContext(usage=lambda: usage)
    return gpujob_status(job, complete, (), project=None, now="", known=known).to_json()


def test_it_stands_in_the_status_once_the_job_has_ended() -> None:
    stage = UsageStage()
    stage.job()
    known = JobUsage.model_validate({"gpu_seconds": 70})
    job, context = stage.state.gpujobs[KEY], JobContext(usage=lambda: known)
    running = gpujob_status(job, (), (), project=None, now="", known=context)
    assert running.usage is None
    assert status(stage, known)["usage"] == {"gpuSeconds": 70}


def test_less_than_was_said_replaces_nothing() -> None:
    """Agents tell a new leader one after the other, and of what ended long ago nothing."""
    stage = UsageStage()
    stage.job()
    more, less = ({"gpuSeconds": n} for n in (70, 20))
    assert status(stage, None, more)["usage"] == more
    assert status(stage, JobUsage.model_validate(less), more)["usage"] == more
    assert status(stage, JobUsage.model_validate(more), less)["usage"] == more


async def test_what_agents_tell_after_the_end_is_written_once_more() -> None:
    stage = UsageStage()
    stage.job()
    pod = stage.runs()
    stage.works(pod, 60)
    stage.answers()
    await stage.minute.look()
    stage.ends(pod)
    stage.job("Succeeded", version=2)
    stage.state.gpujobs[KEY].status = {"phase": "Succeeded", "usage": {"gpuSeconds": 20}}
    stage.answers()
    stage.state.changes.take_touched()
    await stage.minute.look()
    assert KEY in stage.state.changes.take_touched()
    assert usage_of(stage) is not None  # for whoever writes the status


async def test_a_hundredth_more_is_not_worth_a_write() -> None:
    stage = UsageStage()
    stage.job()
    pod = stage.runs()
    stage.works(pod, 10_000)
    stage.answers()
    await stage.minute.look()
    stage.ends(pod)
    stage.job("Succeeded", version=2)
    told = {"gpuSeconds": 4990, "peakMiB": 1000}
    stage.state.gpujobs[KEY].status = {"phase": "Succeeded", "usage": told}
    stage.answers()
    stage.state.changes.take_touched()
    await stage.minute.look()
    assert KEY not in stage.state.changes.take_touched()
