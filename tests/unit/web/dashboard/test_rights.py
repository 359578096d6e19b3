"""What a user may see: never longer than a minute after it was allowed, and never by a flood."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from tests.unit.web.dashboard.fakes import NAMESPACES, ApiServer, Time

from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.web.dashboard import rights as module
from gpu_scheduler.web.dashboard.answers import RefusedAnswer
from gpu_scheduler.web.dashboard.identities import Identity
from gpu_scheduler.web.dashboard.rights import IN_ALL, MOST_SECONDS, RENEW_SECONDS, Rights

ANNA = Identity("anna")
EVERYTHING = ("*gpujobs", "*gpunodes", "*gpuprojects")


class Scene:
    def __init__(self, namespaces: frozenset[str] = NAMESPACES) -> None:
        self.api, self.time, self.namespaces = ApiServer(), Time(), namespaces
        client: Any = self.api
        self.rights = Rights(client, lambda: self.namespaces, self.time, Random(1))

    async def settled(self, who: Identity = ANNA, *about: str) -> Visible:
        """After what is asked in the background."""
        await self.rights.visible(who, about)
        await asyncio.gather(*self.rights._tasks)
        return await self.rights.visible(who, about)


async def test_who_may_list_all_is_asked_about_no_namespace() -> None:
    scene = Scene()
    scene.api.user("anna", *EVERYTHING)
    assert await scene.rights.visible(ANNA) == Visible(None, inventory=True)
    assert {what for _, what in scene.api.asked} == set(EVERYTHING)


async def test_others_see_the_namespaces_that_they_may_list() -> None:
    scene = Scene()
    scene.api.user("anna", "team-a", "team-c")
    found = await scene.rights.visible(ANNA)
    assert found == Visible(frozenset({"team-a", "team-c"}), inventory=False)


@pytest.mark.parametrize("may", [("*gpunodes",), ("*gpuprojects",)])
async def test_the_inventory_takes_both_rights(may: tuple[str, ...]) -> None:
    scene = Scene()
    scene.api.user("anna", *may)
    assert not (await scene.rights.visible(ANNA)).inventory
    scene.api.user("bert", "*gpunodes", "*gpuprojects")
    assert (await scene.rights.visible(Identity("bert"))).inventory


async def test_a_verdict_is_asked_for_once_until_it_is_due() -> None:
    scene = Scene()
    scene.api.user("anna", "team-a")
    await scene.settled()
    asked = len(scene.api.asked)
    for _ in range(10):
        await scene.settled()
    scene.time.now += RENEW_SECONDS[0] - 1
    await scene.settled()
    assert len(scene.api.asked) == asked


async def test_a_right_that_was_taken_away_is_gone_within_a_minute() -> None:
    scene = Scene()
    scene.api.user("anna", "team-a")
    await scene.rights.visible(ANNA)
    scene.api.rights.clear()
    scene.time.now += MOST_SECONDS
    assert await scene.rights.visible(ANNA) == Visible(frozenset(), inventory=False)


async def test_a_right_to_see_all_that_was_taken_away_is_gone_within_a_minute() -> None:
    scene = Scene()
    scene.api.user("anna", *EVERYTHING)
    await scene.rights.visible(ANNA)
    scene.api.rights.clear()
    scene.time.now += MOST_SECONDS
    assert await scene.rights.visible(ANNA) == Visible(frozenset(), inventory=False)


async def test_a_right_that_was_given_shows_within_a_minute() -> None:
    scene = Scene()
    await scene.settled()
    scene.api.user("anna", "team-b")
    scene.time.now += RENEW_SECONDS[1]
    assert (await scene.settled()).namespaces == {"team-b"}


async def test_a_namespace_that_is_asked_about_is_looked_at_at_once() -> None:
    scene = Scene()
    await scene.settled()
    scene.api.user("anna", "team-b")
    scene.time.now += module.FRESH_SECONDS + 1
    assert (await scene.rights.visible(ANNA, ["team-b"])).namespaces == {"team-b"}


async def test_a_namespace_that_is_new_shows() -> None:
    scene = Scene()
    scene.api.user("anna", "team-new")
    await scene.settled()
    scene.namespaces = NAMESPACES | {"team-new"}
    assert (await scene.settled()).namespaces == {"team-new"}


async def test_an_api_server_that_is_away_is_no_permission() -> None:
    scene = Scene()
    scene.api.user("anna", "team-a")
    scene.api.away = True
    with pytest.raises(RefusedAnswer) as caught:
        await scene.rights.visible(ANNA)
    assert caught.value.status == 503


@pytest.mark.parametrize("may", [("team-a",), EVERYTHING])
async def test_what_was_allowed_ends_while_the_api_server_is_away(may: tuple[str, ...]) -> None:
    scene = Scene()
    scene.api.user("anna", *may)
    before = await scene.rights.visible(ANNA)
    scene.api.away = True
    scene.time.now += MOST_SECONDS - 1
    assert await scene.settled() == before
    scene.time.now += 1
    with pytest.raises(RefusedAnswer) as caught:
        await scene.settled()
    assert caught.value.status == 503


async def test_a_user_by_the_same_name_with_other_groups_is_somebody_else() -> None:
    scene = Scene()
    scene.api.user("anna", "team-a")
    assert (await scene.rights.visible(ANNA)).namespaces == {"team-a"}
    scene.api.rights.clear()
    assert not (await scene.rights.visible(Identity("anna", groups=("x",)))).namespaces


@pytest.mark.long(always=True)
async def test_many_users_and_many_namespaces_are_no_flood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Minutes that are played: nobody waits for time, which the test sets."""
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.0)
    turn = asyncio.sleep

    async def passes(seconds: float) -> None:
        await turn(0)

    monkeypatch.setattr(module.asyncio, "sleep", passes)
    scene = Scene(frozenset(f"n-{n}" for n in range(200)))
    users = [Identity(f"u-{n}") for n in range(20)]
    for number, who in enumerate(users):
        scene.api.user(who.user, f"n-{number}")

    async def idle() -> None:
        quiet = 0
        while quiet < 20:
            asked = len(scene.api.asked)
            await turn(0)
            quiet = quiet + 1 if asked == len(scene.api.asked) else 0

    minutes: list[int] = []
    for _ in range(5):
        before = len(scene.api.asked)
        for _ in range(6):
            for who in users:
                with suppress(RefusedAnswer):
                    await scene.rights.visible(who)
            await idle()
            scene.time.now += 10
        minutes.append(len(scene.api.asked) - before)
    bounds = {kind: (60 * rate, burst) for kind, (rate, burst) in IN_ALL.items()}
    assert max(minutes) <= sum(rate + burst for rate, burst in bounds.values()), minutes
    # In the end: three wide questions of each, the one that is theirs, and the share of all others.
    assert minutes[-1] <= bounds["refused"][0] + 20 * 4 * 2, minutes
    for number, who in enumerate(users):
        assert (await scene.rights.visible(who)).namespaces == {f"n-{number}"}
    scene.rights.close()
