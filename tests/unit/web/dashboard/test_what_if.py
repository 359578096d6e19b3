"""What-ifs run in processes of their own, few at a time, and end when their time is over."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.builders import ClusterBuilder, projects

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.dashboard.views import WhatIfQuestion
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.runtime.dump import Dump, dump_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.web.dashboard import what_if as module
from gpu_scheduler.web.dashboard.access import Reader
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import Identity
from gpu_scheduler.web.dashboard.what_if import WhatIfProcesses

QUESTION = WhatIfQuestion(like_node="dell-1", nodes=1)


def reader(name: str) -> Reader:
    return Reader(Identity(name), f"token-of-{name}", "10.0.0.1")


class Leader:
    def __init__(self) -> None:
        self.copies = 0
        self.state = ClusterState()
        self.planning: Any = SimpleNamespace(dump=self._dump)

    def _dump(self) -> Dump:
        self.copies += 1
        given = PlanInput(ClusterBuilder().node("dell-1").obj(), projects(), ())
        return dump_of(given, PlannerCache().workload)


async def refusal(processes: WhatIfProcesses, name: str = "anna", **question: Any) -> RefusedAnswer:
    with pytest.raises(RefusedAnswer) as caught:
        await processes.answer(WhatIfQuestion(**question), reader(name), Visible())
    return caught.value


async def test_an_answer_comes_from_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OLD_SECONDS", 600.0)
    leader = Leader()
    processes = WhatIfProcesses(lambda: leader)
    found = await processes.answer(QUESTION, reader("anna"), Visible())
    assert found.lead.first[0].text == "No job that waits would start because of it."
    refused = await refusal(processes, like_node="dell-9", nodes=1)
    assert (refused.status, "dell-9" in refused.sentence) == (400, True)
    assert leader.copies == 1, "a copy is shared for seconds"


@pytest.mark.parametrize(("cpu_seconds", "seconds"), [(0.01, 5.0), (0.9, 18.0), (60.0, 30.0)])
def test_a_copy_that_costs_more_is_used_longer(cpu_seconds: float, seconds: float) -> None:
    assert module._good_for(cpu_seconds) == pytest.approx(seconds)


async def test_who_may_not_see_the_nodes_is_told_of_none() -> None:
    leader = Leader()
    processes = WhatIfProcesses(lambda: leader)
    hidden = Visible(frozenset({"ns"}), inventory=False)
    with pytest.raises(RefusedAnswer, match="there is no node"):
        await processes.answer(QUESTION, reader("anna"), hidden)


async def test_a_process_has_none_of_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSCHED_SECRET", "x")
    assert not [name for name in module._bare() if name.startswith("GPUSCHED")]


async def test_a_stand_by_plans_nothing() -> None:
    assert (await refusal(WhatIfProcesses(lambda: None))).status == 503


async def test_one_of_a_user_and_two_in_all_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRAM", "this.never.runs")
    leader, go, full, running, most = Leader(), asyncio.Event(), asyncio.Event(), 0, 0
    processes = WhatIfProcesses(lambda: leader)

    async def run(given: bytes) -> tuple[int, bytes]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == module.AT_ONCE:
            full.set()
        await go.wait()
        running -= 1
        return 1, b""

    monkeypatch.setattr(processes, "_run", run)
    asked = [asyncio.create_task(refusal(processes, f"u{n}")) for n in range(module.WAITING)]
    await asyncio.sleep(0)
    assert (await refusal(processes, "u0")).status == 429
    assert (await refusal(processes, "one-more")).status == 503
    await full.wait()
    go.set()
    assert {each.status for each in await asyncio.gather(*asked)} == {503}
    assert most == module.AT_ONCE


async def test_a_plan_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.001)
    leader = Leader()
    processes = WhatIfProcesses(lambda: leader)
    assert (await refusal(processes, like_node="dell-1", nodes=1)).status == 503
    assert processes._running == set()
