"""Results out of logs: read once, and a sentence for everything that can go wrong."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.runtime.fake_client import AWAY, BROKEN, NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.virtual_loop import Running, virtual
from tests.unit.state.builders import make_pod
from tests.unit.sweeps.runtime.cases import Case

from gpu_scheduler.api.search import Objective
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube import errors
from gpu_scheduler.state.pods.pod import record
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.results import Reading
from gpu_scheduler.sweeps.runtime.log_search import CPU_SECONDS, Searched, search
from gpu_scheduler.sweeps.runtime.logs import MOST_BYTES, TAIL_BYTES, Logs, Search
from gpu_scheduler.sweeps.runtime.trials import TrialPod

FORBIDDEN = errors.Forbidden(403, "Forbidden", "told so")
MISSING = TrialState.RESULT_MISSING


class LogClient(FakeClient):
    """``answers``: what each request gets, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)

    @asynccontextmanager
    async def watch(
        self, path: str, *, inactivity_seconds: float, **params: Any
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.sent.append(Sent("GET", path, None, params))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        yield chunks(answer if isinstance(answer, list) else [str(answer)])


async def chunks(of: Iterable[str]) -> AsyncIterator[bytes]:
    for each in of:
        yield each.encode()
        await asyncio.sleep(0)


async def search_here(tail: bytes, pattern: str, objective: Objective) -> Searched:
    """The search, without its thread."""
    return search(tail, pattern, objective), 0.001


async def outcome(
    client: LogClient, pattern: str = "loss=([-0-9.a-z]+)", search: Search = search_here
) -> Outcome:
    logs = Logs(client, search)  # type: ignore[arg-type]
    case = Case(read_log=logs.read, resultFrom={"logRegex": pattern})
    case.job()
    async with Running(logs.run()):
        case.pod(0)
        case.pod(0, message="", version=2)
        case.pod(0, message="", version=3)  # the Job controller has counted it
        assert case.sweep.table.get(0) is None
        await asyncio.sleep(60)
    return case.outcome(0)


@virtual
async def test_the_last_line_that_matches_is_the_result_and_the_log_is_read_once() -> None:
    client = LogClient("epoch 1 loss=2\nepoch 2 loss=0.5\nbye\n")
    assert await outcome(client) == Outcome(0, TrialState.SUCCEEDED, 0.5)
    (sent,) = client.sent
    assert sent.path == "/api/v1/namespaces/team-a/pods/job-0/log"
    assert sent.params == {"container": "main", "tailLines": 200, "limitBytes": MOST_BYTES}


@pytest.mark.parametrize(
    ("answer", "state", "sentence", "requests"),
    [
        ("nothing of note", MISSING, "no line at the end of the log matches", 1),
        ("loss=nan", TrialState.NOT_FINITE, "loss is nan", 1),
        ("loss=low", MISSING, "loss is a string, not a number", 1),
        (NOT_FOUND, MISSING, "its log is gone", 1),
        (FORBIDDEN, MISSING, "chart value sweeps.readLogs", 1),
        (BROKEN, MISSING, "its log could not be read", 5),
    ],
)
def test_what_can_go_wrong_has_its_state_and_a_sentence(
    answer: Any, state: TrialState, sentence: str, requests: int
) -> None:
    @virtual
    async def run() -> None:
        client = LogClient(answer)
        found = await outcome(client)
        assert found.state is state and sentence in found.message, found
        assert len(client.sent) == requests

    run()


@virtual
async def test_a_node_that_does_not_answer_is_asked_again() -> None:
    assert (await outcome(LogClient(AWAY, AWAY, "loss=3"))).value == 3


@virtual
async def test_one_log_that_upsets_us_stops_no_other() -> None:
    async def upset(*_: object) -> Searched:
        raise RuntimeError("unheard of")

    found = await outcome(LogClient("loss=3"), search=upset)
    assert (found.state, found.message) == (MISSING, "its log could not be read")


@virtual
async def test_who_cannot_hear_a_result_stops_no_other() -> None:
    logs = Logs(LogClient("loss=3"), search_here)  # type: ignore[arg-type]
    case = Case(read_log=logs.read, resultFrom={"logRegex": "loss=([0-9]+)"})
    pod, told = record(make_pod()), list[Reading]()

    def deaf(reading: Reading) -> None:
        raise RuntimeError("of the listener's own")

    async with Running(logs.run()):
        for trial, tell in enumerate((deaf, told.append)):
            logs.read(case.sweep, trial, TrialPod(pod, "{}", None), tell)
            await asyncio.sleep(60)
    assert [reading.value for reading in told] == [3]


@virtual
async def test_lines_may_end_as_on_windows_or_be_written_over_as_by_a_progress_bar() -> None:
    pattern = "loss=([0-9.]+)$"
    assert (await outcome(LogClient("loss=3\r\n"), pattern)).value == 3
    assert (await outcome(LogClient("loss=3\rloss=2\rloss=1\n"), pattern)).value == 1


@virtual
async def test_two_sweeps_with_one_expression_have_metrics_of_their_own() -> None:
    logs = Logs(LogClient("x=3"), search_here)  # type: ignore[arg-type]
    both: Any = {"read_log": logs.read, "resultFrom": {"logRegex": "=([0-9.]+)"}}
    loss, accuracy = Case(**both), Case(objective={"metric": "acc"}, **both)
    async with Running(logs.run()):
        for case in (loss, accuracy):
            case.job()
            case.pod(0, message="", version=2)
            await asyncio.sleep(1)
    assert (loss.outcome(0).value, accuracy.outcome(0).value) == (3, 3)


@virtual
async def test_of_a_long_log_the_end_is_searched_and_no_more_is_kept() -> None:
    seen: list[int] = []

    async def note(tail: bytes, pattern: str, objective: Objective) -> Searched:
        seen.append(len(tail))
        return search(tail, pattern, objective), 0.0

    pieces = ["loss=1 " + "x" * 300_000] * 9 + ["\nloss=2\n"]
    assert (await outcome(LogClient(pieces), search=note)).value == 2
    assert seen == [TAIL_BYTES]


@virtual
async def test_a_log_that_is_cut_off_before_its_end_is_not_taken_for_whole() -> None:
    found = await outcome(LogClient(["loss=1\n" + "x" * (MOST_BYTES - 7)]))
    assert found.state is MISSING and "more than 16 MiB" in found.message


@virtual
async def test_a_node_that_sends_a_byte_now_and_then_is_not_waited_for() -> None:
    class Slow(LogClient):
        @asynccontextmanager
        async def watch(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[bytes]]:
            yield self.drops()

        async def drops(self) -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(5)
                yield b"x"

    logs = Logs(Slow(), search_here)  # type: ignore[arg-type]
    case = Case(read_log=logs.read, resultFrom={"logRegex": "(x)"})
    case.job()
    async with Running(logs.run()):
        case.pod(0, message="")
        await asyncio.sleep(150)
    assert "did not come within 20 s" in case.outcome(0).message


@virtual
async def test_a_trial_whose_log_is_too_dear_is_decided_and_not_searched_again() -> None:
    searched: list[bytes] = []

    async def dear(tail: bytes, pattern: str, objective: Objective) -> Searched:
        searched.append(tail)
        hours = iter(range(0, 100_000, 3600))
        return search(tail, pattern, objective, lambda: float(next(hours))), 2.0

    found = await outcome(LogClient("a\nb\nloss=3\nc"), search=dear)
    assert found.state is MISSING
    assert "spec.sweep.resultFrom.logRegex simpler" in found.message
    assert len(searched) == 1


@virtual
async def test_the_dear_logs_of_one_namespace_hold_up_no_other() -> None:
    ends: list[str] = []

    async def slowly(tail: bytes, pattern: str, objective: Objective) -> Searched:
        await asyncio.sleep(0 if tail == b"quick" else 100)
        ends.append(tail.decode())
        return Reading(TrialState.SUCCEEDED, 1.0), 0.0

    case = Case(resultFrom={"logRegex": "(x)"}, completions=50)
    dear, quick = case.sweep, copy(case.sweep)
    quick.key, quick.uid = JobKey("team-b/job"), "other"
    read: list[int] = []
    client = LogClient("dear", "quick", "dear")
    logs = Logs(client, slowly)  # type: ignore[arg-type]
    case.job()
    case.pod(0)
    seen = TrialPod(next(iter(case.state.pods.known.values())), "{}", None)
    for trial in range(40):
        logs.read(dear, trial, seen, lambda reading, trial=trial: read.append(trial))
    logs.read(quick, 99, seen, lambda reading: read.append(99))
    async with Running(logs.run()):
        await asyncio.sleep(50)
        assert (ends, read) == (["quick"], [99])


@virtual
async def test_a_namespace_whose_logs_are_dear_has_a_fifth_of_a_core_at_most() -> None:
    busy: dict[str, float] = {"dear": 0.0, "quick": 0.0}
    costs = {"dear": CPU_SECONDS, "quick": 0.002}
    one = asyncio.Lock()  # the thread searches one log at a time

    async def search(tail: bytes, pattern: str, objective: Objective) -> Searched:
        async with one:
            await asyncio.sleep(costs[tail.decode()])
            busy[tail.decode()] += costs[tail.decode()]
        return Reading(TrialState.SUCCEEDED, 1.0), costs[tail.decode()]

    class Named(LogClient):
        @asynccontextmanager
        async def watch(self, path: str, **_: Any) -> AsyncIterator[AsyncIterator[bytes]]:
            yield chunks(["quick" if "team-b" in path else "dear"])

    case = Case(resultFrom={"logRegex": "(x)"}, completions=50)
    dear, quick = case.sweep, copy(case.sweep)
    quick.key, quick.uid = JobKey("team-b/job"), "other"
    logs = Logs(Named(), search)  # type: ignore[arg-type]
    case.job()
    case.pod(0)
    pod = next(iter(case.state.pods.known.values()))
    read: list[float] = []
    began = asyncio.get_running_loop().time()
    async with Running(logs.run()):
        for trial in range(300):
            logs.read(dear, trial, TrialPod(pod, "{}", None), lambda reading: None)
        for trial in range(300):
            seen = TrialPod(replace(pod, namespace="team-b"), "{}", None)
            ended = lambda reading: read.append(asyncio.get_running_loop().time())  # noqa: E731
            logs.read(quick, trial, seen, ended)
        await asyncio.sleep(600)
    assert 0.15 * 600 <= busy["dear"] <= 0.2 * 600 + 2 * CPU_SECONDS
    assert len(read) == 300 and read[-1] - began < 30, "others have the time meanwhile"
