"""A loop that checks something: what ends it, and what does not."""

import asyncio

import pytest
from tests.unit.runtime.fake_client import AWAY, BUSY, NOT_LEADER
from tests.unit.runtime.virtual_loop import Running, virtual

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.common.poll import poll_for_ever


class Check:
    """Raises what it is given, one after the other."""

    def __init__(self, *raised: Exception) -> None:
        self.raised, self.times = list(raised), 0

    def now(self) -> None:
        self.times += 1
        if self.raised:
            raise self.raised.pop(0)

    async def later(self) -> None:
        await asyncio.sleep(0)
        self.now()


@pytest.mark.parametrize("method", ["now", "later"])
def test_mistakes_are_counted_refusals_are_not_and_neither_ends_it(method: str) -> None:
    @virtual
    async def run() -> None:
        before, check = counts["some"], Check(BUSY, KeyError("x"), TypeError())
        async with Running(
            poll_for_ever(getattr(check, method), seconds=1, loop="some", about="things")
        ):
            await asyncio.sleep(0.9)
            assert check.times == 0
            await asyncio.sleep(5)
        assert check.times == 5
        assert counts["some"] == before + 2

    run()


@virtual
async def test_it_ends_when_the_fence_has_closed() -> None:
    with pytest.raises(errors.NotLeader):
        async with asyncio.timeout(10):  # of virtual time: a loop that goes on fails at once
            await poll_for_ever(Check(NOT_LEADER).now, seconds=1, loop="some", about="things")


@virtual
async def test_what_the_api_server_answers_again_and_again_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    check = Check(BUSY, BUSY, AWAY, AWAY, BUSY)
    async with Running(poll_for_ever(check.now, seconds=1, loop="some", about="things")):
        await asyncio.sleep(10)
    assert [line for line in caplog.messages if line.startswith("things")] == [
        f"things: {error}" for error in (BUSY, AWAY, BUSY)
    ]


@virtual
async def test_what_comes_and_goes_is_said_once_and_again_after_ten_quiet_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    check = Check()

    def flaps() -> None:
        check.now()
        if check.times % 2 and (check.times < 20 or check.times > 640):
            raise BUSY

    async with Running(poll_for_ever(flaps, seconds=1, loop="some", about="things")):
        await asyncio.sleep(600)
        assert [line for line in caplog.messages if line.startswith("things")] == [
            f"things: {BUSY}"
        ]
        await asyncio.sleep(60)
    assert sum(line.startswith("things") for line in caplog.messages) == 2
