"""What a GPUJob's status keeps of its use after its end."""

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace
from tests.unit.runtime.usage.stage import UsageStage, follow
from tests.unit.state.builders import USABLE_MIB

from gpu_scheduler.api.job_usage import JobUsage
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.usage.sums import job_usage
from gpu_scheduler.usage.answer import Totals

KEY = JobKey("team-a/job")


def usage_of(stage: UsageStage) -> JobUsage | None:
    return job_usage(*stage.seen.totals("gpujob-uid"), stage.seen.by_role("gpujob-uid"))


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


def of_roles(stage: UsageStage) -> None:
    """A learner that works for ten minutes, an actor that does for two."""
    for name, seconds, busy in (("learner", 600, 1.0), ("actor", 120, 0.2)):
        pod = stage.runs(f"job-{name}")
        stage.shares[pod.uid] = replace(stage.shares[pod.uid], work=f"gpujob-uid#{name}")
        stage.works(pod, seconds, busy=busy, mib=round(10 * seconds))


ROLES = [
    {"name": "actor", "gpuSeconds": 60, "usedGPUSeconds": 24, "meanPercent": 20, "peakMiB": 1200},
    {
        "name": "learner",
        "gpuSeconds": 300,
        "usedGPUSeconds": 300,
        "meanPercent": 100,
        "peakMiB": 6000,
    },
]


def test_of_a_job_with_roles_each_has_its_sums_beside_those_of_all() -> None:
    stage = UsageStage()
    stage.job()
    of_roles(stage)
    stage.answers()
    found = usage_of(stage)
    assert found is not None
    assert (found.gpu_seconds, found.cap_mib) == (360, USABLE_MIB // 2)
    assert found.to_json()["roles"] == ROLES


def test_what_an_agent_makes_up_is_no_role() -> None:
    more = {f"role-{number:02}": Totals(containers=1) for number in range(40)}
    found = job_usage(Totals(containers=1), 0, {"x" * 600: Totals(), **more})
    assert found is not None and found.roles is not None
    assert [each.name for each in found.roles] == [f"role-{number:02}" for number in range(16)]


async def test_the_object_tells_roles_while_they_run_and_another_leader_keeps_them() -> None:
    stage = UsageStage()
    stage.job()
    of_roles(stage)
    stage.answers()
    await stage.minute.look()
    assert stage.workload()["roles"] == ROLES
    after = await follow(stage)
    await after.minute.look()
    after.look = 0  # its agent tells it from the beginning
    after.answers()
    await after.minute.look()
    kept = after.minute.objects.kept("team-a", "gpujob-uid")
    assert kept is not None and kept.to_json()["roles"] == ROLES


async def used_by_the_end(kills: Collection[int]) -> JobUsage | None:
    """Of a job of two pods and ten minutes; in these its leader is killed before it has looked."""
    stage = UsageStage()
    stage.job()
    first, second = stage.runs(), stage.runs("job-1")
    for minute in range(10):
        if minute == 4:
            stage.ends(first)
        else:
            stage.works(second if minute > 4 else first, 60, busy=minute / 10, mib=minute * 500)
        if minute not in kills:
            stage.answers()
            await stage.minute.look()
        else:
            stage.seconds += 60
            stage = await follow(stage)
    stage.ends(second)
    stage.answers()
    return usage_of(stage)


async def test_a_leader_that_is_killed_three_times_changes_no_sum() -> None:
    undisturbed, killed = await used_by_the_end(()), await used_by_the_end((1, 4, 8))
    assert undisturbed is not None and undisturbed.gpu_seconds == 9 * 60 / 2
    assert killed == undisturbed


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
