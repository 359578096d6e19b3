"""A new leader waits until the API server accepts its term, and for nothing else."""

import asyncio
import logging
from typing import Any

import pytest
from tests.unit.runtime.fake_client import AWAY, CONFLICT, NOT_FOUND, NOT_LEADER, FakeClient
from tests.unit.runtime.virtual_loop import clock, virtual

from gpu_scheduler.api.names import LABEL_PATH, TERM
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.term import TermProbe, refuses_term

DENIED = "ValidatingAdmissionPolicy 'gpu-scheduler-term' with binding 'x' denied request: "
OVER = errors.Forbidden(403, "Forbidden", f"{DENIED}a/1 is over: b/2 leads")
NO_LEASE = errors.Unprocessable(422, "Invalid", f"{DENIED}failed to configure binding: no params")
NO_RIGHT = errors.Forbidden(403, "Forbidden", 'cannot create resource "pods/binding"')
FOREIGN = errors.Forbidden(403, "Forbidden", "ValidatingAdmissionPolicy 'others' denied request")


def probe(*answers: Any) -> tuple[TermProbe, FakeClient]:
    left = list(answers)
    client = FakeClient(lambda sent: left.pop(0) if len(left) > 1 else left[0])
    return TermProbe(client, "ours", "b/2", clock=clock), client  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [NOT_FOUND, CONFLICT, {}], ids=["not found", "conflict", "ok"])
def test_what_passes_admission_is_known_and_stores_nothing(answer: Any) -> None:
    @virtual
    async def run() -> None:
        waiting, client = probe(answer)
        await waiting.known()
        (sent,) = client.sent
        assert sent.method == "DRYRUN"
        assert sent.path == "/api/v1/namespaces/ours/pods/gpu-scheduler-term-probe/binding"
        assert sent.body["metadata"]["annotations"] == {TERM: "b/2"}
        assert sent.body["metadata"]["labels"] == {LABEL_PATH: "bind"}

    run()


@pytest.mark.parametrize("answer", [OVER, NO_LEASE, AWAY], ids=["over", "no lease", "away"])
def test_it_waits_while_the_term_is_refused_or_nobody_answers(answer: Any) -> None:
    @virtual
    async def run() -> None:
        waiting, client = probe(*[answer] * 5, NOT_FOUND)
        task = asyncio.create_task(waiting.known())
        await asyncio.sleep(0.01)
        assert waiting.waiting_for
        await task
        assert len(client.sent) == 6
        assert waiting.waiting_for == ""

    run()


@pytest.mark.parametrize("answer", [NO_RIGHT, FOREIGN], ids=["no right", "foreign policy"])
def test_a_refusal_that_is_not_about_the_term_holds_nobody_up(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def run() -> None:
        waiting, client = probe(answer)
        await waiting.known()
        assert len(client.sent) == 1

    run()
    assert "cannot be tried out" in caplog.text
    assert not refuses_term(answer)


def test_a_long_wait_is_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    @virtual
    async def run() -> None:
        waiting, _ = probe(OVER)
        task = asyncio.create_task(waiting.known())
        await asyncio.sleep(100)
        task.cancel()

    with caplog.at_level(logging.WARNING):
        run()
    told = [r.getMessage() for r in caplog.records]
    assert 3 <= len(told) <= 5
    assert all("nothing is placed: term b/2 is not accepted since" in line for line in told)
    assert "b/2 leads" in told[0]


@virtual
async def test_a_closed_fence_ends_it() -> None:
    waiting, _ = probe(NOT_LEADER)
    with pytest.raises(errors.NotLeader):
        await waiting.known()


@pytest.mark.parametrize(
    ("answer", "guards"),
    [(OVER, True), (NO_LEASE, True), (NOT_FOUND, False), (FOREIGN, False), (AWAY, False)],
    ids=["over", "no lease", "no policy", "foreign policy", "away"],
)
def test_whether_late_writes_are_refused_is_asked_with_a_term_of_nobodys(
    answer: Any, guards: bool
) -> None:
    @virtual
    async def run() -> None:
        asking, client = probe(answer)
        assert await asking.guards() is guards
        (sent,) = client.sent
        assert sent.method == "DRYRUN"
        assert sent.body["metadata"]["annotations"] == {TERM: "nobody/-1"}

    run()
