"""Whose a token is: asked once a minute at most, and bounded by token before address."""

import logging
from base64 import urlsafe_b64encode
from json import dumps
from random import Random
from typing import Any

import pytest
from tests.unit.web.dashboard.fakes import ApiServer, Time

from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import (
    GOOD_SECONDS,
    MOST_SECONDS,
    REFUSED_SECONDS,
    WRONG_BURST,
    Identities,
    Identity,
    bearer,
)

HERE = "10.0.0.1"


class Scene:
    def __init__(self) -> None:
        self.api, self.time = ApiServer(), Time()
        client: Any = self.api
        self.identities = Identities(client, Clock(self.time, self.time), Random(1))
        self.token = self.api.user("anna")

    async def of(self, token: str, source: str = HERE) -> Identity:
        return await self.identities.of(token, source)

    async def refused(self, token: str, source: str = HERE) -> int:
        with pytest.raises(RefusedAnswer) as caught:
            await self.of(token, source)
        return caught.value.status


def jwt(exp: float) -> str:
    claims = urlsafe_b64encode(dumps({"exp": exp}).encode()).decode().rstrip("=")
    return f"head.{claims}.signature"


async def test_a_token_is_asked_about_once_a_minute() -> None:
    scene = Scene()
    for _ in range(5):
        assert (await scene.of(scene.token)).user == "anna"
    assert scene.api.count("token") == 1
    scene.time.now += MOST_SECONDS
    await scene.of(scene.token)
    assert scene.api.count("token") == 2


async def test_a_token_that_was_taken_away_is_refused_within_a_minute() -> None:
    scene = Scene()
    await scene.of(scene.token)
    del scene.api.tokens[scene.token]
    scene.time.now += MOST_SECONDS
    assert await scene.refused(scene.token) == 401


async def test_a_token_is_believed_no_longer_than_it_lives() -> None:
    scene = Scene()
    token = jwt(scene.time.now + 5)
    scene.api.tokens[token] = "anna"
    await scene.of(token)
    del scene.api.tokens[token]
    scene.time.now += 6
    assert await scene.refused(token) == 401


async def test_what_is_long_over_by_its_own_word_is_not_asked_about() -> None:
    scene = Scene()
    assert await scene.refused(jwt(scene.time.now - 3600)) == 401
    assert scene.api.asked == []


async def test_a_refused_token_is_not_asked_about_again_for_a_while() -> None:
    scene = Scene()
    for _ in range(20):
        assert await scene.refused("made-up") == 401
    assert scene.api.count("token") == 1
    scene.time.now += REFUSED_SECONDS
    await scene.refused("made-up")
    assert scene.api.count("token") == 2


async def test_expired_tokens_lock_nobody_out_who_comes_from_the_same_address() -> None:
    scene = Scene()
    for _ in range(100):
        for number in range(10):
            assert await scene.refused(f"expired-{number}") == 401
    assert (await scene.of(scene.token)).user == "anna"


async def test_made_up_tokens_of_an_address_are_bounded_and_who_was_good_stays_in() -> None:
    scene = Scene()
    await scene.of(scene.token)
    answers = {await scene.refused(f"made-up-{n}") for n in range(2 * int(WRONG_BURST))}
    assert answers == {401, 429}
    assert scene.api.count("token") <= WRONG_BURST + 1
    scene.time.now += MOST_SECONDS
    for n in range(2 * int(WRONG_BURST)):  # the flood goes on
        await scene.refused(f"more-{n}")
    assert (await scene.of(scene.token)).user == "anna"
    assert (await scene.of(scene.api.user("bert"), "10.0.0.2")).user == "bert"


async def test_an_api_server_that_is_away_lets_nobody_in() -> None:
    scene = Scene()
    await scene.of(scene.token)
    scene.api.away = True
    assert await scene.refused(scene.api.user("bert")) == 503
    scene.time.now += MOST_SECONDS
    assert await scene.refused(scene.token) == 503
    scene.api.away = False
    scene.time.now += MOST_SECONDS
    assert (await scene.of(scene.token)).user == "anna"


async def test_neither_token_nor_name_reaches_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    scene = Scene()
    scene.api.away = True
    await scene.refused(scene.token)
    assert "nobody can log in" in caplog.text, "the log is looked at"
    assert scene.token not in caplog.text and "anna" not in caplog.text
    assert "anna" not in repr(Identity("anna", groups=("anna",)))


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer a b", "Bearer é", f"Bearer {'x' * 9000}"],
)
def test_what_is_no_bearer_token_is_refused(header: str) -> None:
    with pytest.raises(RefusedAnswer) as caught:
        bearer(header)
    assert caught.value.status == 401


def test_a_good_token_is_known_for_longer_than_a_verdict() -> None:
    assert GOOD_SECONDS > MOST_SECONDS
