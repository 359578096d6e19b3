"""What-ifs are answered by a process of their own, in turn, that ends when its time is over."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
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


Processes = Callable[[Leader | None], WhatIfProcesses]


@pytest.fixture
async def processes() -> AsyncIterator[Processes]:
    async with AsyncExitStack() as stack:

        def make(leader: Leader | None) -> WhatIfProcesses:
            made = WhatIfProcesses(lambda: leader)
            stack.push_async_callback(made.close)
            return made

        yield make


async def refusal(asked: WhatIfProcesses, name: str = "anna", **question: Any) -> RefusedAnswer:
    with pytest.raises(RefusedAnswer) as caught:
        await asked.answer(WhatIfQuestion(**question), reader(name), Visible())
    return caught.value


def pid(asked: WhatIfProcesses) -> int:
    assert asked._process is not None
    return asked._process.pid


@pytest.mark.long(always=True)
async def test_answers_about_one_copy_come_from_one_other_process(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_OLD_SECONDS", 600.0)
    monkeypatch.setattr(module, "_SHARE", 1.0)  # it rests for no moment
    leader = Leader()
    asked = processes(leader)
    found = await asked.answer(QUESTION, reader("anna"), Visible())
    assert found.lead.first[0].text == "No job that waits would start because of it."
    first = pid(asked)
    refused = await refusal(asked, like_node="dell-9", nodes=1)
    assert (refused.status, "dell-9" in refused.sentence) == (400, True)
    assert first == pid(asked) != os.getpid() and leader.copies == 1
    assert asked._process is not None
    asked._process.kill()
    await asked._process.wait()
    again = await asked.answer(QUESTION, reader("anna"), Visible())
    assert again == found and first != pid(asked)
    assert leader.copies == 1, "whoever ends the process gets no new copy by it"


@pytest.mark.long(always=True)
async def test_who_answered_rests_so_that_it_takes_a_part_of_a_core_alone(
    processes: Processes,
) -> None:
    loop, began = asyncio.get_running_loop(), list[float]()
    asked = processes(Leader())
    await asked.answer(QUESTION, reader("anna"), Visible())
    assert asked._rests_until > loop.time(), "a program that starts takes a while of a CPU"
    asked._rests_until = loop.time() + 0.05
    asked._leading = lambda: began.append(loop.time())
    assert (await refusal(asked)).status == 503
    # In whole milliseconds: uvloop's clock has no others, and 36848.563 + 0.05 is past 36848.613.
    assert round(began[0] * 1000) >= round(asked._rests_until * 1000)


@pytest.mark.long(always=True)
async def test_what_nobody_asks_about_takes_no_memory(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_OLD_SECONDS", 0.05)
    monkeypatch.setattr(module, "_COPY_SHARE", 1e6)  # whatever it cost
    asked = processes(Leader())
    await asked.answer(QUESTION, reader("anna"), Visible())
    assert asked._retires is not None
    await asked._retires
    assert (asked._copied, asked._process) == (None, None)


@pytest.mark.parametrize(("cpu_seconds", "seconds"), [(0.01, 5.0), (0.9, 18.0), (60.0, 30.0)])
def test_a_copy_that_costs_more_is_used_longer(cpu_seconds: float, seconds: float) -> None:
    assert module._good_for(cpu_seconds) == pytest.approx(seconds)


@pytest.mark.long(always=True)
async def test_who_may_not_see_the_nodes_is_told_of_none(processes: Processes) -> None:
    hidden = Visible(frozenset({"ns"}), inventory=False)
    with pytest.raises(RefusedAnswer, match="there is no node"):
        await processes(Leader()).answer(QUESTION, reader("anna"), hidden)


async def test_a_process_has_none_of_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSCHED_SECRET", "x")
    assert not [name for name in module._bare() if name.startswith("GPUSCHED")]


async def test_a_stand_by_plans_nothing(processes: Processes) -> None:
    assert (await refusal(processes(None))).status == 503


async def test_one_of_a_user_and_one_in_all_at_a_time(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go, running, most = processes(Leader()), asyncio.Event(), 0, 0

    async def ask(leader: Leader, task: bytes) -> tuple[int, bytes]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1
        return -1, b""

    monkeypatch.setattr(asked, "_ask", ask)
    all_of_them = [asyncio.create_task(refusal(asked, f"u{n}")) for n in range(module.WAITING)]
    await asyncio.sleep(0)
    assert (await refusal(asked, "u0")).status == 429
    assert (await refusal(asked, "one-more")).status == 503
    go.set()
    assert {each.status for each in await asyncio.gather(*all_of_them)} == {503}
    assert most == 1


async def test_a_plan_that_takes_too_long_is_ended(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.001)
    asked = processes(Leader())
    assert (await refusal(asked, like_node="dell-1", nodes=1)).status == 503
    assert asked._process is None


@pytest.mark.long(always=True)
async def test_who_goes_away_leaves_no_answer_to_the_next(processes: Processes) -> None:
    leader = Leader()
    asked = processes(leader)
    await asked.answer(QUESTION, reader("anna"), Visible())

    def cancelled() -> Leader:  # while the process answers
        asyncio.get_running_loop().call_soon(gone.cancel)
        return leader

    asked._leading, asked._rests_until = cancelled, 0.0
    gone = asyncio.create_task(asked.answer(QUESTION, reader("anna"), Visible()))
    await asyncio.gather(gone, return_exceptions=True)
    assert gone.cancelled()
    assert asked._process is None
    asked._leading, asked._rests_until = lambda: leader, 0.0
    refused = await refusal(asked, "ben", like_node="dell-9", nodes=1)
    assert (refused.status, "dell-9" in refused.sentence) == (400, True)
