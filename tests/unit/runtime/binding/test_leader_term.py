"""A new leader takes the next term, waits until the API server accepts it, and for nothing else."""

import asyncio
import logging
from typing import Any

import pytest
from tests.unit.runtime.fake_client import (
    AWAY,
    CONFLICT,
    NOT_FOUND,
    NOT_LEADER,
    FakeClient,
    Sent,
)
from tests.unit.runtime.virtual_loop import Running, clock, virtual

from gpu_scheduler.api.names import LABEL_PATH, TERM
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.binding.leader_term import LeaderTerm, refuses_term

DENIED = "ValidatingAdmissionPolicy 'gpu-scheduler-term' with binding 'x' denied request: "
OVER = errors.Forbidden(403, "Forbidden", f"{DENIED}a/1 is over: b/2 leads")
NO_LEASE = errors.Unprocessable(422, "Invalid", f"{DENIED}failed to configure binding: no params")
NO_RIGHT = errors.Forbidden(403, "Forbidden", 'cannot create resource "pods/binding"')
FOREIGN = errors.Forbidden(403, "Forbidden", "ValidatingAdmissionPolicy 'others' denied request")


LEADERS = "/api/v1/namespaces/ours/limitranges"
LEADER = f"{LEADERS}/gpu-scheduler-leader"


def led_by(text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {
            "name": "gpu-scheduler-leader",
            "resourceVersion": "7",
            "annotations": {"of": "others", TERM: text},
        },
        "spec": {"limits": []},
    }


BEFORE = led_by("a/1")


def probe(*answers: Any) -> tuple[LeaderTerm, FakeClient]:
    """``answers`` to the dry run; the leader before was a, in its first term."""
    left = list(answers)

    def reply(sent: Sent) -> Any:
        if sent.path == LEADER:
            return BEFORE
        return left.pop(0) if len(left) > 1 else left[0]

    client = FakeClient(reply)
    return LeaderTerm(client, "ours", "b", clock=clock), client  # type: ignore[arg-type]


def taking(*answers: Any) -> tuple[LeaderTerm, FakeClient]:
    """``answers`` to what is asked and written of the LimitRange."""
    left = [*answers, NOT_FOUND]  # the last one: the dry run, and the term is known
    client = FakeClient(lambda sent: left.pop(0))
    return LeaderTerm(client, "ours", "b", clock=clock), client  # type: ignore[arg-type]


def requests(client: FakeClient) -> list[tuple[str, str]]:
    return [(sent.method, sent.path) for sent in client.sent[:-1]]


def dry_runs(client: FakeClient) -> list[Sent]:
    return [sent for sent in client.sent if sent.method == "DRYRUN"]


def test_the_first_leader_of_all_makes_the_object() -> None:
    @virtual
    async def run() -> None:
        term, client = taking(NOT_FOUND, {})
        await term.begin()
        assert requests(client) == [("GET", LEADER), ("POST", LEADERS)]
        assert client.sent[1].body["metadata"]["annotations"] == {TERM: "b/1"}
        assert client.sent[1].body["spec"] == {"limits": []}
        assert term.text == "b/1"

    run()


def test_the_next_one_counts_on_and_names_the_version_that_it_saw() -> None:
    @virtual
    async def run() -> None:
        term, client = taking(BEFORE, {})
        await term.begin()
        assert requests(client) == [("GET", LEADER), ("PUT", LEADER)]
        assert client.sent[1].body == led_by("b/2")
        assert term.text == "b/2"

    run()


@pytest.mark.parametrize(
    "found",
    [
        {"metadata": {"name": "gpu-scheduler-leader", "resourceVersion": "7"}},
        led_by(""),
        led_by("a"),
        led_by("a/many"),
        led_by("/3"),
    ],
    ids=["no annotation", "empty", "no number", "a word", "no holder"],
)
def test_what_is_no_term_is_that_of_nobody(found: dict[str, Any]) -> None:
    @virtual
    async def run() -> None:
        term, client = taking(found, {})
        await term.begin()
        assert client.sent[1].method == "PUT"
        assert client.sent[1].body["metadata"]["resourceVersion"] == "7"
        assert term.text == "b/1"

    run()


@pytest.mark.parametrize("lost", [CONFLICT, AWAY], ids=["another was faster", "no answer"])
def test_a_write_that_failed_is_looked_at_again(lost: Any) -> None:
    @virtual
    async def run() -> None:
        newer = led_by("c/5")
        term, client = taking(BEFORE, lost, newer, {})
        await term.begin()
        assert term.text == "b/6"
        assert [method for method, _ in requests(client)] == ["GET", "PUT", "GET", "PUT"]

    run()


def test_a_write_whose_answer_was_lost_is_not_done_again() -> None:
    @virtual
    async def run() -> None:
        term, client = taking(BEFORE, AWAY, led_by("b/2"))
        await term.begin()
        assert term.text == "b/2"
        assert [method for method, _ in requests(client)] == ["GET", "PUT", "GET"]

    run()


@pytest.mark.parametrize("answer", [NOT_FOUND, CONFLICT, {}], ids=["not found", "conflict", "ok"])
def test_what_passes_admission_is_known_and_stores_nothing(answer: Any) -> None:
    @virtual
    async def run() -> None:
        waiting, client = probe(answer)
        await waiting.begin()
        (sent,) = dry_runs(client)
        assert sent.path == "/api/v1/namespaces/ours/pods/gpu-scheduler-term-probe/binding"
        assert sent.body["metadata"]["annotations"] == {TERM: "b/2"}
        assert sent.body["metadata"]["labels"] == {LABEL_PATH: "bind"}

    run()


@pytest.mark.parametrize("answer", [OVER, NO_LEASE, AWAY], ids=["over", "no lease", "away"])
def test_it_waits_while_the_term_is_refused_or_nobody_answers(answer: Any) -> None:
    @virtual
    async def run() -> None:
        waiting, client = probe(*[answer] * 5, NOT_FOUND)
        task = asyncio.create_task(waiting.begin())
        await asyncio.sleep(0.01)
        assert waiting.waiting_for
        await task
        assert len(dry_runs(client)) == 6
        assert waiting.waiting_for == ""

    run()


@pytest.mark.parametrize("answer", [NO_RIGHT, FOREIGN], ids=["no right", "foreign policy"])
def test_a_refusal_that_is_not_about_the_term_holds_nobody_up(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def run() -> None:
        waiting, client = probe(answer)
        await waiting.begin()
        assert len(dry_runs(client)) == 1

    run()
    assert "cannot be tried out" in caplog.text
    assert not refuses_term(answer)


def test_a_long_wait_is_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    @virtual
    async def run() -> None:
        waiting, _ = probe(OVER)
        task = asyncio.create_task(waiting.begin())
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
        await waiting.begin()


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


def doubting(*answers: Any) -> tuple[LeaderTerm, FakeClient]:
    """``answers`` to what is asked and written once there is doubt."""
    left = [BEFORE, {}, NOT_FOUND, *answers]
    client = FakeClient(lambda sent: left.pop(0))
    return LeaderTerm(client, "ours", "b", clock=clock), client  # type: ignore[arg-type]


@virtual
async def test_a_leader_whose_object_was_deleted_makes_it_again() -> None:
    term, client = doubting(NOT_FOUND, NOT_FOUND, {}, NOT_FOUND)
    await term.begin()
    async with Running(term.run()):
        await asyncio.sleep(5)
        assert len(client.sent) == 3  # without doubt nothing is asked
        term.doubt()
        await asyncio.sleep(0.5)
    assert [sent.method for sent in client.sent[3:]] == ["GET", "GET", "POST", "DRYRUN"]
    assert (term.text, term.waiting_for) == ("b/1", "")


@virtual
async def test_a_leader_whose_term_is_somebody_elses_ends() -> None:
    term, _ = doubting(led_by("c/9"))
    await term.begin()
    term.doubt()
    with pytest.raises(errors.NotLeader, match="is that of c now"):
        await term.run()


@pytest.mark.parametrize("answer", [led_by("b/2"), AWAY], ids=["ours", "away"])
def test_doubt_without_ground_changes_nothing(answer: Any) -> None:
    @virtual
    async def run() -> None:
        term, client = doubting(answer)
        await term.begin()
        async with Running(term.run()):
            term.doubt()
            await asyncio.sleep(5)
        assert len(client.sent) == 4
        assert term.text == "b/2"

    run()


@virtual
async def test_an_answer_that_is_none_is_asked_for_again() -> None:
    odd = RuntimeError("unable to perform operation; the handler is closed")
    term, client = probe(odd, odd, NOT_FOUND)
    before = counts["term"]
    await term.begin()
    assert len(dry_runs(client)) == 3
    assert counts["term"] == before + 2
