"""Every report of a checkpoint has one answer, and only the pod itself speaks for itself."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runtime.fake_client import AWAY, BROKEN, CONFLICT, NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.pod_tokens import HERE, judges, of
from tests.unit.runtime.virtual_loop import clock, virtual
from tests.unit.state.builders import half, make_gpujob, make_pod
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.api.names import CHECKPOINTED
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.reports.answer import Answer
from gpu_scheduler.runtime.reports.checkpoints import EVERY_SECONDS, Checkpoints
from gpu_scheduler.runtime.reports.report_tokens import Sender
from gpu_scheduler.state.cluster_state import ClusterState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POD, OTHER = PodUID("uid-job-0"), PodUID("uid-job-1")
SAVING = {"checkpoint": {"volume": {"hostPath": {"path": "/a"}}}}


def pod(index: int = 0, version: int = 1, **changes: Any) -> Any:
    given: dict[str, Any] = {"node": "a", "devices": half(str(index)), "phase": "Running"}
    return make_pod(f"job-{index}", index=index, version=version, **(given | changes))


def saving() -> ClusterState:
    """Two pods of a job with a checkpoint."""
    state = make_cluster_state(pod(0), pod(1))
    state.gpujob_changed(make_gpujob(**SAVING))
    return state


@dataclass
class Case:
    """Two pods that run."""

    reply: Any = field(default_factory=dict)
    state: ClusterState = field(default_factory=saving)
    client: FakeClient = field(init=False)
    reviewer: FakeClient = field(init=False)
    checkpoints: Checkpoints = field(init=False)

    def __post_init__(self) -> None:
        self.client = FakeClient(self._reply)
        client: Any = self.client
        tokens, self.reviewer = judges()
        self.checkpoints = Checkpoints(self.state, client, tokens, clock=clock, now=lambda: NOON)

    def _reply(self, sent: Sent) -> Any:
        return self.reply(sent) if callable(self.reply) else self.reply

    async def say(
        self, uid: PodUID = POD, sender: Sender | None = None, body: bytes = b""
    ) -> Answer:
        refused = await self.checkpoints.refusal(uid, sender or of(uid))
        return refused or await self.checkpoints.take(uid, body)


@virtual
async def test_a_report_is_one_write_with_our_time_on_exactly_this_pod() -> None:
    case = Case()
    answer = await case.say()
    assert (answer.status, answer.body) == (200, {"checkpointedAt": "2026-01-01T12:00:00.000000Z"})
    (sent,) = case.client.sent
    assert sent.path == "/api/v1/namespaces/team-a/pods/job-0"
    said = {CHECKPOINTED: "2026-01-01T12:00:00.000000Z"}
    assert sent.body == {"metadata": {"uid": POD, "annotations": said}}


@pytest.mark.parametrize("body", [b"", b"{}", b" { }\r\n"])
def test_an_empty_body_will_do(body: bytes) -> None:
    @virtual
    async def said() -> None:
        assert (await Case().say(body=body)).status == 200

    said()


@pytest.mark.parametrize("body", [b"x", b"[]", b'{"step": 3}', b"\xff", b"null"])
def test_a_body_that_says_something_is_refused_with_a_sentence(body: bytes) -> None:
    @virtual
    async def said() -> None:
        case = Case()
        answer = await case.say(body=body)
        assert answer.status == 400
        assert "send nothing" in str(answer.body["error"])
        assert case.client.sent == []
        assert (await case.say()).status == 200, "it costs no allowance"

    said()


@virtual
async def test_no_pod_speaks_for_another() -> None:
    case = Case()
    assert (await case.say(POD, of(OTHER))).status == 403
    assert (await case.say(POD, Sender("", HERE))).status == 401
    assert case.client.sent == []


@virtual
async def test_a_pod_of_a_job_without_a_checkpoint_says_nothing() -> None:
    case = Case(state=make_cluster_state(pod(0)))
    assert (await case.say()).status == 403
    assert case.client.sent == case.reviewer.sent == [], "and nobody is asked about it"


@virtual
async def test_who_does_not_run_is_told_so() -> None:
    case = Case()
    assert (await case.say(PodUID("nobody"))).status == 410
    case.state.pod_changed(pod(0, 2, phase="Failed"))
    assert (await case.say()).status == 410
    case.state.pod_gone(OTHER)
    assert (await case.say(OTHER)).status == 410
    assert case.reviewer.sent == []


@virtual
async def test_who_has_just_started_and_who_has_to_go_is_heard() -> None:
    case = Case()
    case.state.pod_changed(pod(0, 2, phase="Pending"))
    assert (await case.say()).status == 200
    case.state.pod_changed(pod(1, 2, deleting=True))
    assert (await case.say(OTHER)).status == 200


@virtual
async def test_a_pod_says_so_every_ten_seconds_and_no_other_waits_for_it() -> None:
    case = Case()
    assert (await case.say()).status == 200
    await asyncio.sleep(3.5)
    answer = await case.say()
    assert (answer.status, answer.retry_after_seconds) == (429, 7)
    assert (await case.say(OTHER)).status == 200
    await asyncio.sleep(answer.retry_after_seconds)
    assert (await case.say()).status == 200
    assert len(case.client.sent) == 3


@pytest.mark.parametrize("decided", [False, True])
def test_who_is_told_to_stop_may_say_so_once_more_at_once(decided: bool) -> None:
    @virtual
    async def said() -> None:
        case = Case()
        assert (await case.say()).status == 200
        if decided:
            case.state.set_leaving(POD, True)
        else:
            case.state.pod_changed(pod(0, 2, deleting=True))
        assert (await case.say()).status == 200
        assert (await case.say()).status == 429

    said()


FAILURES = [AWAY, BROKEN, CONFLICT, NOT_FOUND, errors.NotLeader("no")]


@pytest.mark.parametrize("trouble", FAILURES, ids=lambda each: type(each).__name__)
def test_what_could_not_be_written_is_to_be_said_again_and_soon(trouble: Any) -> None:
    @virtual
    async def again() -> None:
        case = Case(trouble)
        answer = await case.say()
        assert (answer.status, answer.retry_after_seconds) == (503, 1)
        assert (await case.say()).status == 429, "not at once: whoever fails is not asked for ever"
        case.reply = {}
        await asyncio.sleep(answer.retry_after_seconds)
        assert (await case.say()).status == 200

    again()


@virtual
async def test_an_api_server_that_does_not_answer_is_not_waited_for() -> None:
    case = Case(lambda sent: asyncio.sleep(3600))
    began = clock()
    assert (await case.say()).status == 503
    assert clock() - began < EVERY_SECONDS


@virtual
async def test_a_flood_writes_a_few_at_a_time() -> None:
    busy: list[int] = []
    most = 0

    async def slow() -> dict[str, Any]:
        nonlocal most
        busy.append(1)
        most = max(most, len(busy))
        await asyncio.sleep(0.1)
        busy.pop()
        return {}

    case = Case(lambda sent: slow())
    record = case.state.pods.known[POD]
    pods: Any = case.state.pods.known
    uids = [PodUID(f"uid-{i}") for i in range(100)]
    for uid in uids:
        pods[uid] = replace(record, uid=uid)
    answers = await asyncio.gather(*(case.say(uid) for uid in uids))
    assert {answer.status for answer in answers} == {200}
    assert most == 8


@virtual
async def test_pods_that_are_gone_are_forgotten() -> None:
    case = Case()
    await case.say()
    assert len(case.checkpoints._next) == 1
    case.checkpoints.gone(POD)
    case.checkpoints.gone(OTHER)
    assert case.checkpoints._next == {}


@virtual
async def test_answers_are_counted_each_once() -> None:
    case = Case()
    for sender in (None, of(OTHER), None):
        await case.say(sender=sender)
    assert case.checkpoints.answers == {200: 1, 403: 1, 429: 1}


@given(st.text(max_size=60), st.text(max_size=60), st.binary(max_size=60))
def test_no_address_and_no_body_make_it_fail(uid: str, header: str, body: bytes) -> None:
    case = Case()

    async def said() -> Answer:
        return await case.say(PodUID(uid), Sender(header, HERE), body)

    assert uvloop.run(said()).status == 410
    assert uvloop.run(case.checkpoints.take(PodUID(uid), body)).status == 410
