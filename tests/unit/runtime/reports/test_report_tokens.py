"""A report is the pod's whose token it brings, and the API server is asked once for each token."""

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runtime.fake_client import AWAY, BROKEN, FakeClient
from tests.unit.runtime.pod_tokens import FORGED, HERE, judges, now, of, review, sender, token
from tests.unit.runtime.virtual_loop import clock, virtual

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.reports import report_tokens as module
from gpu_scheduler.runtime.reports.report_tokens import (
    MOST_BYTES,
    REFUSED_SECONDS,
    ReportTokens,
    Sender,
)
from gpu_scheduler.runtime.reports.token_reviews import AT_ONCE, BURST, TokenReviews

POD, OTHER = PodUID("uid-1"), PodUID("uid-2")
DENIED = errors.Forbidden(403, "Forbidden", "tokenreviews: no")


async def status(tokens: ReportTokens, pod: PodUID, said: Sender) -> int:
    refused = await tokens.refusal(pod, said)
    if refused is None:
        return 200
    assert len(str(refused.body["error"]).split()) > 3
    return refused.status


@virtual
async def test_the_pods_own_token_is_asked_about_once_for_as_long_as_it_is_valid() -> None:
    tokens, client = judges()
    for _ in range(50):
        assert await status(tokens, POD, of(POD)) == 200
        await asyncio.sleep(10)
    (sent,) = client.sent
    assert sent.path == "/apis/authentication.k8s.io/v1/tokenreviews"
    assert sent.body["spec"] == {"token": token(POD), "audiences": ["gpu-scheduler.io/reports"]}
    await asyncio.sleep(600)
    await status(tokens, POD, of(POD))
    assert len(client.sent) == 2, "then it is asked about again"


UNASKED: dict[str, tuple[Sender, int]] = {
    "no header": (Sender("", HERE), 401),
    "a scheme alone": (Sender("Bearer ", HERE), 401),
    "another scheme": (Sender(f"Basic {token(POD)}", HERE), 401),
    "an old token": (sender("0" * 32), 401),
    "no JSON in it": (sender("a.b.c"), 401),
    "signs of no token": (sender(token(POD).replace("e", "é")), 401),
    "of no pod": (sender(token(POD, **{"kubernetes.io": {"namespace": "team-a"}})), 401),
    "one that is too long": (sender(token(POD, more="x" * MOST_BYTES)), 401),
    "for the API server": (sender(token(POD, "https://kubernetes.default.svc")), 403),
    "for somebody else": (sender(token(POD, ["vault", "sts.amazonaws.com"])), 403),
    "of another pod": (of(OTHER), 403),
}


@pytest.mark.parametrize("case", UNASKED)
def test_what_cannot_be_the_pods_token_is_refused_without_asking(case: str) -> None:
    @virtual
    async def refused() -> None:
        tokens, client = judges()
        said, expected = UNASKED[case]
        assert await status(tokens, POD, said) == expected
        assert client.sent == []

    refused()


@virtual
async def test_a_token_that_was_accepted_opens_no_other_pods_address() -> None:
    tokens, client = judges()
    assert await status(tokens, POD, of(POD)) == 200
    assert await status(tokens, OTHER, of(POD)) == 403
    assert len(client.sent) == 1


def lying(sent: Any) -> Any:
    """An API server to which the token is another pod's than it says."""
    said = review(sent)
    said["status"]["user"]["extra"] = {"authentication.kubernetes.io/pod-uid": [OTHER]}
    return said


ODD: dict[str, Any] = {
    "of another pod": lying,
    "not authenticated": lambda sent: {"status": {"authenticated": False}},
    "of nobody": lambda sent: {"status": {"authenticated": True, "audiences": ["x"], "user": {}}},
    "with no audience": lambda sent: (
        {"status": {k: v for k, v in review(sent)["status"].items() if k != "audiences"}}
    ),
    "nothing": lambda sent: {},
}


@pytest.mark.parametrize("case", ODD)
def test_what_the_api_server_does_not_call_this_pods_is_refused(case: str) -> None:
    @virtual
    async def refused() -> None:
        tokens, client = judges(ODD[case])
        assert await status(tokens, POD, of(POD)) == 401
        assert await status(tokens, POD, of(POD)) == 401
        assert len(client.sent) == 1, "for a while it is not asked again"
        client.reply = review
        await asyncio.sleep(REFUSED_SECONDS + 1)
        assert await status(tokens, POD, of(POD)) == 200

    refused()


@pytest.mark.parametrize("trouble", [AWAY, BROKEN, errors.NotLeader("no"), DENIED, [1]], ids=str)
def test_an_api_server_that_does_not_answer_is_asked_more_seldom(trouble: Any) -> None:
    @virtual
    async def seldom() -> None:
        tokens, client = judges(lambda sent: trouble)
        for _ in range(600):
            assert await status(tokens, POD, of(POD)) == 503
            await asyncio.sleep(1)
        assert len(client.sent) < 30

    seldom()


@virtual
async def test_an_api_server_that_stalls_is_not_waited_for() -> None:
    tokens, _ = judges(lambda sent: asyncio.sleep(3600))
    began = clock()
    assert await status(tokens, POD, of(POD)) == 503
    assert clock() - began < 5


@virtual
async def test_reports_that_bring_the_same_token_at_once_ask_once() -> None:
    tokens, client = judges(slow)
    many = [status(tokens, POD, of(POD)) for _ in range(200)]
    assert await asyncio.gather(*many) == [200] * 200
    assert len(client.sent) == 1


async def slow(sent: Any) -> Any:
    """A busy API server."""
    await asyncio.sleep(0.02)
    return review(sent)


def forged(number: int, pod: str = POD) -> str:
    return token(pod, signature=f"{number}{FORGED}")


@virtual
async def test_a_flood_of_made_up_tokens_asks_little_and_keeps_nobody_waiting() -> None:
    flying, most = 0, 0

    async def counted(sent: Any) -> Any:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        found = await slow(sent)
        flying -= 1
        return found

    tokens, client = judges(counted)
    sources = [f"10.0.1.{n}" for n in range(20)]
    flood = [
        asyncio.create_task(status(tokens, POD, sender(forged(n), sources[n % 20])))
        for n in range(4000)
    ]
    await asyncio.sleep(0)
    began = clock()
    assert await status(tokens, POD, of(POD)) == 200, "though they speak of the same pod"
    assert clock() - began < 1
    answers = Counter(await asyncio.gather(*flood))
    assert answers.keys() == {401, 429, 503}
    assert most <= AT_ONCE
    # Those that are under way when the last of the allowance is spent are asked about, too.
    assert len(client.sent) <= 20 * (BURST + 1) + 1
    before = len(client.sent)
    for n in range(600):
        for source in sources:
            await status(tokens, POD, sender(forged(10_000 + n), source))
        await asyncio.sleep(1)
    assert len(client.sent) - before <= 20 * (600 / 60 + 1), "one a minute from each"


@virtual
async def test_a_pod_that_shows_ever_new_tokens_of_its_own_is_held_up_alone() -> None:
    tokens, client = judges()
    answers = [
        await status(tokens, POD, sender(token(POD, iat=float(n), exp=n + 600.0)))
        for n in range(50)
    ]
    assert answers == [200] * int(BURST) + [429] * (50 - int(BURST))
    assert len(client.sent) == BURST
    assert await status(tokens, OTHER, of(OTHER)) == 200


@virtual
async def test_what_is_remembered_is_bounded_and_holds_no_token() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_KNOWN", 5_000)
        patch.setattr(module, "MOST_REFUSED", 2_000)
        tokens, _ = judges()
        for n in range(50):
            pod = PodUID(f"uid-{n}")
            assert await status(tokens, pod, of(pod)) == 200
            assert await status(tokens, pod, sender(forged(n, pod), f"10.1.0.{n}")) == 401
        assert 4_700 < tokens._known.bytes <= 5_000 and tokens._refused.bytes == 2_000
        assert not tokens._asking
        assert token(PodUID("uid-49")) not in repr((vars(tokens._known), vars(tokens._refused)))


@pytest.mark.parametrize("hours", [-1.0, 1.0])
def test_a_wrong_clock_changes_nothing_but_how_often_is_asked(hours: float) -> None:
    @virtual
    async def asked() -> None:
        client = FakeClient(review)
        asked: Any = client
        reviews = TokenReviews(asked, clock=clock)
        tokens = ReportTokens(reviews, clock=clock, now=lambda: now() + hours * 3600)
        for _ in range(360):
            said = sender(token(POD, at=now() // 480 * 480))  # as the kubelet renews it
            assert await status(tokens, POD, said) == 200
            await asyncio.sleep(10)
        assert len(client.sent) <= 40

    asked()


@virtual
async def test_no_token_is_logged() -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("gpu_scheduler").addHandler(handler)
    try:
        tokens, _ = judges(lambda sent: DENIED)
        await status(tokens, POD, of(POD))
    finally:
        logging.getLogger("gpu_scheduler").removeHandler(handler)
    assert said, "the log is looked at"
    assert token(POD) not in str(said)


@given(st.text(max_size=60), st.one_of(st.text(max_size=200), st.binary(max_size=200).map(str)))
def test_no_header_makes_it_fail(pod: str, header: str) -> None:
    tokens, client = judges()
    for said in (header, f"Bearer {header}", f"Bearer a.{header}.b"):
        refused = uvloop.run(tokens.refusal(PodUID(pod), Sender(said, HERE)))
        assert refused is not None and refused.status in (401, 403)
    assert client.sent == []
