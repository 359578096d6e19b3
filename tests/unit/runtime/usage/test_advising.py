"""What the rules are asked about, as the shares of work that runs say it."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.runtime.usage.stage import UsageStage
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.runtime.usage.advising import judged
from gpu_scheduler.runtime.usage.works import live_works
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.window import Window

ROLES = [{"name": name, "replicas": 1, "gpu": 1} for name in ("learner", "actor")]


async def seen(**spec: Any) -> Work:
    """Two pods of a GPUJob, the second of which does less."""
    stage = UsageStage()
    stage.job()
    for name, busy in (("job-0", 0.9), ("job-1", 0.3)):
        pod = stage.runs(name)
        windows = (Window(looks=90, busy_mean=busy, busy_median=busy, computing=1.0),) * 2
        stage.shares[pod.uid] = replace(stage.shares[pod.uid], windows=windows)
    stage.answers()
    (work,) = (await live_works(stage.state, stage.seen, stage.monotonic())).values()
    work.job.said = GPUJobSpec.model_validate(gpujob_body(**spec)["spec"])
    return judged(work, "A100", None, 1800.0)


@pytest.mark.parametrize(
    ("spec", "are"),
    [
        ({"gang": True, "parallelism": 2}, True),
        ({"parallelism": 2}, False),
        ({"roles": ROLES}, False),
        ({"roles": [{**ROLES[0], "replicas": 2}]}, True),
        ({"roles": [{**ROLES[0], "replicas": 2}], "gang": False}, False),
    ],
)
async def test_only_pods_that_wait_for_each_other_are_compared(
    spec: dict[str, Any], are: bool
) -> None:
    work = await seen(**spec)
    assert [each.name for each in work.members] == (["job-0", "job-1"] if are else [])
