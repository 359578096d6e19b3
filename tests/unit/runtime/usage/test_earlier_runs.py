"""Which run with fewer workers another one is compared with."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.runtime.usage.stage import UsageStage
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.usage.earlier_runs import EarlierRuns
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.usage.advice.work import EarlierRun
from gpu_scheduler.usage.window import Window

NOW = 1_700_100_000.0
ENDED = "2023-11-15T00:00:00Z"  # half a day before
GANG = {"gpu": 1, "gang": True, "parallelism": 4}


def succeeded(mean: int = 80, seconds: int = 7200, **status: Any) -> dict[str, Any]:
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": ENDED}
    usage = {"gpuSeconds": seconds, "meanPercent": mean, "secondsByTenth": [0] * 9 + [seconds]}
    return {"phase": "Succeeded", "usage": usage, "conditions": [complete], **status}


class Case:
    def __init__(self, **gang: Any) -> None:
        self.stage = UsageStage()
        self.mine = self.job("mine", **{**GANG, **gang})

    def job(self, name: str, status: dict[str, Any] | None = None, **spec: Any) -> GPUJobRecord:
        namespace = spec.pop("namespace", "team-a")
        body = gpujob_body(name, uid=f"uid-{name}", namespace=namespace, status=status, **spec)
        self.stage.resources.gpujob(body)
        return self.stage.state.gpujobs[JobKey(f"{namespace}/{name}")]

    async def found(self, *, one_model: bool = True) -> EarlierRun | None:
        runs = EarlierRuns()
        await runs.look(self.stage.state.gpujobs.values(), NOW, one_model=one_model)
        return runs.of(self.mine)


async def test_the_same_program_with_the_fewest_workers_is_found() -> None:
    case = Case()
    case.job("pair", succeeded(70, seconds=20_000), gpu=1, gang=True, parallelism=2)
    case.job("one", succeeded(80), gpu=1)
    assert await case.found() == EarlierRun("one", 1, 0.8)


async def test_whole_gpus_of_a_pod_are_workers_and_shares_are_none() -> None:
    case = Case(gpu=8, parallelism=1, gang=None)
    case.job("half", succeeded(20), gpu=0.5)
    assert await case.found() is None
    case.job("one", succeeded(80), gpu=1)
    assert await case.found() == EarlierRun("one", 1, 0.8)


@pytest.mark.parametrize(
    ("status", "spec"),
    [
        ({"phase": "Failed"}, {}),
        ({"conditions": []}, {}),
        ({"usage": None}, {}),
        ({"usage": {"gpuSeconds": "many"}}, {}),
        ({"usage": {"gpuSeconds": 7200}}, {}),
        ({}, {"args": ["--batch", "7"]}),
        ({}, {"namespace": "team-b"}),
        ({}, {"completions": 8}),
        ({}, {"gpu": 0.5}),
    ],
)
async def test_another_program_or_one_of_which_too_little_is_known_is_not(
    status: dict[str, Any], spec: dict[str, Any]
) -> None:
    case = Case()
    case.job("one", succeeded(**status), **{"gpu": 1, **spec})
    assert await case.found() is None


async def test_half_an_hour_of_each_worker_is_the_least() -> None:
    case = Case()
    case.job("short", succeeded(seconds=3599), gpu=1, gang=True, parallelism=2)
    assert await case.found() is None
    case.job("long", succeeded(seconds=3600), gpu=1, gang=True, parallelism=2)
    assert await case.found() == EarlierRun("long", 2, 0.8)


async def test_what_ended_a_week_ago_is_not_asked() -> None:
    case = Case()
    case.job("one", succeeded(), gpu=1)
    runs = EarlierRuns()
    await runs.look(case.stage.state.gpujobs.values(), NOW + 7 * 86400, one_model=True)
    assert runs.of(case.mine) is None


async def test_where_gpus_differ_both_have_to_name_theirs() -> None:
    case = Case()
    case.job("one", succeeded(), gpu=1)
    assert await case.found(one_model=False) is None
    case = Case(gpuModels=["A100"])
    case.job("one", succeeded(), gpu=1, gpuModels=["A100"])
    assert await case.found(one_model=False) == EarlierRun("one", 1, 0.8)


async def test_workers_that_use_less_than_one_alone_are_told_so() -> None:
    case = Case()
    stage = case.stage
    stage.job()
    case.job("one", succeeded(80), gpu=1)
    spec = {"gpu": 1, "gang": True, "parallelism": 2}
    stage.resources.gpujob(gpujob_body("job", generation=2, version=2, **spec))
    windows = (Window(looks=90, busy_mean=0.5, busy_median=0.5, computing=1.0),) * 2
    for name in ("job-0", "job-1"):
        pod = stage.runs(name)
        stage.works(pod, 2400, busy=0.5)
        stage.shares[pod.uid] = replace(stage.shares[pod.uid], windows=windows)
    stage.answers()
    await stage.minute.look()
    (advice,) = stage.workload()["advice"]
    assert advice["rule"] == "SCALING_INEFFICIENT"
    assert advice["message"].startswith(
        "its 2 workers use 50 % of each GPU, while one with 1 worker used 80 %"
    )
