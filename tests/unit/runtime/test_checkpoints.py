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
from tests.unit.runtime.virtual_loop import clock, virtual
from tests.unit.state.builders import half, make_gpujob, make_pod
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.api.names import CHECKPOINT_URL, CHECKPOINTED
from gpu_scheduler.core.model.decision import Assignment, Grant
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.tokens import address, token_of
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.answer import Answer
from gpu_scheduler.runtime.checkpoint_urls import CheckpointUrls
from gpu_scheduler.runtime.checkpoints import EVERY_SECONDS, Checkpoints
from gpu_scheduler.state.cluster_state import ClusterState

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POD, OTHER = PodUID("uid-job-0"), PodUID("uid-job-1")
URLS = {uid: address("http://r/reports/checkpoints", uid) for uid in (POD, OTHER)}


def pod(index: int = 0, version: int = 1, **changes: Any) -> Any:
    given: dict[str, Any] = {"node": "a", "grants": half(str(index)), "phase": "Running"}
    annotations = {CHECKPOINT_URL: URLS[PodUID(f"uid-job-{index}")]}
    return make_pod(
        f"job-{index}", index=index, version=version, annotations_=annotations, **(given | changes)
    )


@dataclass
class Case:
    """Two pods that run."""

    reply: Any = field(default_factory=dict)
    state: ClusterState = field(default_factory=lambda: make_cluster_state(pod(0), pod(1)))
    client: FakeClient = field(init=False)
    checkpoints: Checkpoints = field(init=False)

    def __post_init__(self) -> None:
        self.client = FakeClient(self._reply)
        client: Any = self.client
        self.checkpoints = Checkpoints(self.state, client, clock=clock, now=lambda: NOON)

    def _reply(self, sent: Sent) -> Any:
        return self.reply(sent) if callable(self.reply) else self.reply

    async def say(self, uid: PodUID = POD, token: str | None = None, body: bytes = b"") -> Answer:
        given = token_of(URLS[uid]) if token is None else token
        refused = self.checkpoints.refusal(uid, given)
        return refused or await self.checkpoints.take(uid, given, body)


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
    assert (await case.say(POD, token=token_of(URLS[OTHER]))).status == 403
    for token in ("", "0" * 32, "é"):
        assert (await case.say(POD, token=token)).status == 403
    case.state.pod_changed(make_pod(version=2, node="a", grants=half(), phase="Running"))
    assert (await case.say(POD, token="")).status == 403, "of a job without a checkpoint"
    assert case.client.sent == []


@virtual
async def test_who_does_not_run_is_told_so() -> None:
    case = Case()
    assert (await case.say(PodUID("nobody"), token="x")).status == 410
    case.state.pod_changed(pod(0, 2, phase="Failed"))
    assert (await case.say()).status == 410
    case.state.pod_gone(OTHER)
    assert (await case.say(OTHER)).status == 410


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
    record = case.state.pods[POD]
    pods: Any = case.state._pods.known
    uids = [PodUID(f"uid-{i}") for i in range(100)]
    for uid in uids:
        pods[uid] = replace(record, uid=uid)
    answers = await asyncio.gather(*(case.say(uid, token_of(URLS[POD])) for uid in uids))
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
    for token in (None, "x", None):
        await case.say(token=token)
    assert case.checkpoints.answers == {200: 1, 403: 1, 429: 1}


@given(st.text(max_size=60), st.text(max_size=60), st.binary(max_size=60))
def test_no_address_and_no_body_make_it_fail(uid: str, token: str, body: bytes) -> None:
    case = Case()
    answer = uvloop.run(case.checkpoints.take(PodUID(uid), token, body))
    assert answer.status in (403, 410)


class Nothing:
    """Sets what it is told to."""

    def prepare(self, decision: Assignment, then: Any) -> bool:
        return True

    def annotations(self, decision: Assignment) -> dict[str, str]:
        return {"other": "kept"}


def urls(base: str, **spec: Any) -> dict[str, str]:
    state = make_cluster_state(make_pod())
    state.gpujob_changed(make_gpujob(**spec))
    decision = Assignment(make_gpujob().key, POD, "a", (Grant(0, "0", 500, 1),))
    return dict(CheckpointUrls(state, Nothing(), base).annotations(decision))


SAVING = {"checkpoint": {"volume": {"hostPath": {"path": "/a"}}}}


def test_a_pod_of_a_job_with_a_checkpoint_is_given_an_address_of_its_own() -> None:
    found = urls("http://r/reports/", **SAVING)
    assert found["other"] == "kept"
    base, _, token = found[CHECKPOINT_URL].rpartition("/")
    assert base == "http://r/reports/checkpoints/uid-job-0"
    assert len(token) == 32
    assert found != urls("http://r/reports/", **SAVING)


def test_other_pods_are_given_none_and_nobody_is_where_reports_are_off() -> None:
    assert urls("http://r/reports") == {"other": "kept"}
    assert urls("", **SAVING) == {"other": "kept"}
