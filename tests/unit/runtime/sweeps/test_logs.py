"""Results out of logs: read once, and a sentence for everything that can go wrong."""

import asyncio
from typing import Any

import pytest
from tests.unit.runtime.fake_client import AWAY, BROKEN, NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.sweeps.cases import Case
from tests.unit.runtime.virtual_loop import Running, virtual

from gpu_scheduler.core.sweeps.outcome import Outcome, TrialState
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.sweeps.logs import Logs

FORBIDDEN = errors.Forbidden(403, "Forbidden", "told so")
MISSING = TrialState.RESULT_MISSING


class LogClient(FakeClient):
    """``answers``: what each request gets, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        self.sent.append(Sent(method, path, options))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return str(answer).encode()


async def outcome(client: LogClient, pattern: str = "loss=([-0-9.a-z]+)") -> Outcome:
    case = Case(resultFrom={"logRegex": pattern})
    logs = Logs(client, case.trials)  # type: ignore[arg-type]
    case.trials.read_log = logs.read
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
    assert sent.body["params"] == {"container": "main", "tailLines": 200}


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
async def test_one_log_that_upsets_us_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def upset(*_: object) -> None:
        raise RuntimeError("unheard of")

    with monkeypatch.context() as patch:
        patch.setattr("gpu_scheduler.runtime.sweeps.logs.read_log", upset)
        found = await outcome(LogClient("loss=3"))
    assert (found.state, found.message) == (MISSING, "its log could not be read")


@virtual
async def test_lines_may_end_as_on_windows_or_be_written_over_as_by_a_progress_bar() -> None:
    pattern = "loss=([0-9.]+)$"
    assert (await outcome(LogClient("loss=3\r\n"), pattern)).value == 3
    assert (await outcome(LogClient("loss=3\rloss=2\rloss=1\n"), pattern)).value == 1


@virtual
async def test_two_sweeps_with_one_expression_have_metrics_of_their_own() -> None:
    pattern = {"resultFrom": {"logRegex": "=([0-9.]+)"}}
    loss, accuracy = Case(**pattern), Case(objective={"metric": "acc"}, **pattern)
    logs = Logs(LogClient("x=3"), loss.trials)  # type: ignore[arg-type]
    async with Running(logs.run()):
        for case in (loss, accuracy):
            case.trials.read_log = logs.read
            case.job()
            case.pod(0, message="", version=2)
            await asyncio.sleep(1)
    assert (loss.outcome(0).value, accuracy.outcome(0).value) == (3, 3)
