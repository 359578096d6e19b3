"""Every write of the operator on every answer of the API server: told, and not sent without end.

What is final holds nothing, is told in the server's words where it concerns somebody's job, and is
asked for ever more seldom; what may pass later is tried again with a growing delay.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.runtime import writes
from tests.unit.runtime.virtual_loop import Running, virtual
from tests.unit.runtime.writes import SCENES, Scene, call_sites

from gpu_scheduler.kube import errors

SAID = "these are the server's words"
FINAL = (400, 403, 413, 422)
LATER = (409, 429, 500, 0)
FINAL_PER_MINUTE, LATER_PER_MINUTE, IN_THE_END = 3, 20, 4
OWN_PACE: dict[Callable[[Any], Scene], int] = {
    # A leader that has no term can do nothing else than ask for it.
    writes.taking_the_term: 75,
    writes.trying_the_term: 75,
    # A dry run by which a lifted policy is noticed: in the first minute once a second, of all
    # objects together, and ever more seldom afterwards (``test_lifting``).
    writes.trying_what_was_refused: 60,
    # Each is one of its own, and said or not.
    writes.saying_an_event: 10,
}
LATER_PACE = OWN_PACE | {
    # A pod that changes all the time is tried five times, each time as it is then.
    writes.placing_a_pod: 40,
    # A disruption budget is asked every ten seconds as long as a pod has to go.
    writes.evicting_a_pod: 15,
    writes.marking_a_pod: 15,
}
# Whose answer reaches a user: in a state, a message, or an Event.
TOLD = {
    writes.creating_a_job,
    writes.creating_a_service,
    writes.putting_a_job_right,
    writes.changing_a_job,
    writes.suspending_a_job,
    writes.placing_a_pod,
    writes.evicting_a_pod,
    writes.marking_a_pod,
    writes.making_a_service_again,
    writes.storing_results,
}


def answer(code: int) -> errors.ApiError:
    if not code:
        return errors.Unavailable(message=SAID, maybe_applied=True)
    return errors.from_answer(code, b'{"kind":"Status","message":"%s"}' % SAID.encode())


def name(value: Any) -> str:
    return str(getattr(value, "__name__", value))


def test_every_write_of_the_code_has_a_scene() -> None:
    """A new one is added to ``writes.SCENES``, with what it does when it is refused."""
    assert set(call_sites()) == set(SCENES.values())


@pytest.mark.long
@pytest.mark.parametrize("code", FINAL)
@pytest.mark.parametrize("scene", SCENES, ids=name)
def test_what_is_final_is_told_and_asked_for_ever_more_seldom(
    scene: Callable[[Any], Scene], code: int
) -> None:
    @virtual
    async def run() -> None:
        own = OWN_PACE.get(scene)
        async with slows_down(
            scene(answer(code)), own or FINAL_PER_MINUTE, own or IN_THE_END
        ) as shown:
            if scene in TOLD:
                assert SAID in shown.told()
            assert not shown.holds()

    run()


@pytest.mark.long
@pytest.mark.parametrize("code", LATER)
@pytest.mark.parametrize("scene", SCENES, ids=name)
def test_what_may_pass_later_is_tried_again_with_a_growing_delay(
    scene: Callable[[Any], Scene], code: int
) -> None:
    @virtual
    async def run() -> None:
        own = LATER_PACE.get(scene)
        async with slows_down(scene(answer(code)), own or LATER_PER_MINUTE, own or IN_THE_END):
            pass

    run()


@asynccontextmanager
async def slows_down(shown: Scene, first: int, in_the_end: int) -> AsyncIterator[Scene]:
    """At most so often in its first minute, after which it can be looked at, and in a later one."""
    async with Running(*shown.works):
        assert 1 <= await sent_in(shown, 60) <= first
        yield shown
        await asyncio.sleep(400)
        assert await sent_in(shown, 60) <= in_the_end


async def sent_in(scene: Scene, seconds: float) -> int:
    before = scene.sent()
    await asyncio.sleep(seconds)
    return scene.sent() - before
