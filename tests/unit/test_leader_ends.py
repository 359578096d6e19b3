"""Whatever ends a leader: it gives the Lease back if no late write does harm, and says why once."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.kube.fake_server import FakeServer

from gpu_scheduler import replica
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.leading import draining

LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases"
LEASE = f"{LEASES}/gpu-scheduler-leader"
# A Lease that nobody loses because the machine stands still.
SETTINGS = OperatorSettings(
    identity="me", admin_port=0, report_port=0, lease_seconds=600, renew_deadline_seconds=500
)


async def for_ever() -> None:
    await asyncio.Event().wait()


async def mistaken() -> None:
    raise KeyError("a mistake")


async def fails() -> None:
    try:
        await mistaken()
    except KeyError as error:
        raise ExceptionGroup("parts", [errors.NotLeader(message="over"), error]) from None


async def fenced() -> None:
    raise ExceptionGroup("parts", [errors.NotLeader(message="it is that of b now")])


async def ends() -> None:
    pass


class Leader:
    """In place of the operator: what one looks like from outside."""

    work: Callable[[], Awaitable[None]] = staticmethod(for_ever)
    in_flight = False
    guarded: bool | Exception = False

    def __init__(self, *_: Any) -> None:
        self.planning = SimpleNamespace(paused=False)
        idle, term = asyncio.Event(), SimpleNamespace(guards=self._guards)
        self.binding = SimpleNamespace(binder=SimpleNamespace(idle=idle), term=term)
        lists = SimpleNamespace(version=None)
        self.informers = SimpleNamespace(custom_resources=None, lists=lists)
        self.synced = asyncio.Event()
        if not self.in_flight:
            idle.set()

    async def run(self) -> None:
        await type(self).work()

    async def _guards(self) -> bool:
        if isinstance(self.guarded, Exception):
            raise self.guarded
        return self.guarded


class Ending:
    """A leader on a server, ended in some way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        self._patch, self._caplog = monkeypatch, caplog
        self.holder = ""
        caplog.set_level(logging.INFO)

    async def __call__(
        self,
        *,
        work: Callable[[], Awaitable[None]] = for_ever,
        kopf: Callable[[], Awaitable[None]] = for_ever,
        told: bool = False,
        **leader: Any,
    ) -> int:
        """The exit code; ``holder`` is then who has the Lease."""

        async def listen(*_: Any, ready: asyncio.Event, stop: asyncio.Event, **__: Any) -> None:
            ready.set()
            listening = asyncio.ensure_future(kopf())
            stopped = asyncio.ensure_future(stop.wait())
            await asyncio.wait({listening, stopped}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if listening.done():
                listening.result()
            listening.cancel()

        leads = asyncio.Event()

        async def works() -> None:
            leads.set()
            await work()

        made = type("Made", (Leader,), {"work": staticmethod(works), **leader})
        self._patch.setattr(replica, "Operator", made)
        self._patch.setattr(replica.handlers, "listen", listen)
        self._patch.setattr(draining, "_COURTESY_SECONDS", 0.05)
        self._patch.setattr(replica, "_DRAIN_SECONDS", 0.5)
        async with FakeServer() as server:
            running = asyncio.create_task(replica.run(SETTINGS, server.connection))
            try:
                if told:
                    leading = asyncio.ensure_future(leads.wait())
                    await asyncio.wait({leading, running}, return_when=asyncio.FIRST_COMPLETED)
                    assert leads.is_set(), running.result()
                    os.kill(os.getpid(), signal.SIGTERM)
                return await asyncio.wait_for(running, 60)
            finally:
                self.holder = server.objects[LEASE]["spec"]["holderIdentity"]

    @property
    def line(self) -> logging.LogRecord:
        """The one that says why."""
        (line,) = (r for r in self._caplog.records if "this leader ends" in r.getMessage())
        return line


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Ending:
    return Ending(monkeypatch, caplog)


async def test_a_leader_that_is_told_to_stop_gives_the_lease_back(ending: Ending) -> None:
    assert await ending(told=True) == 0
    assert ending.holder == ""
    assert ending.line.levelname == "INFO" and ending.line.exc_info is None


@pytest.mark.parametrize("part", ["work", "kopf"])
async def test_an_error_of_a_part_is_shown_with_its_place_and_the_lease_given_back(
    ending: Ending, part: str
) -> None:
    assert await ending(**{part: fails}) == 1
    assert ending.holder == ""
    assert ending.line.levelname == "ERROR"
    assert "KeyError('a mistake')" in ending.line.getMessage()  # and not the fence
    assert "in mistaken" in logging.Formatter().format(ending.line)


async def test_a_part_that_ends_without_a_word_ends_the_leader(ending: Ending) -> None:
    assert await ending(work=ends) == 1
    assert ending.holder == ""
    assert "operator ended" in ending.line.getMessage()


async def test_a_term_that_was_taken_is_no_defect(ending: Ending) -> None:
    assert await ending(work=fenced) == 1
    assert ending.holder == ""
    assert "it is that of b now" in ending.line.getMessage()
    assert ending.line.exc_info is None


async def test_writes_under_way_keep_the_lease_unless_their_term_is_refused(ending: Ending) -> None:
    assert await ending(work=fails, in_flight=True) == 1
    assert ending.holder.startswith("me_")


@pytest.mark.parametrize("told", [True, False])
async def test_writes_whose_term_will_be_refused_keep_no_lease(ending: Ending, told: bool) -> None:
    await ending(work=for_ever if told else fails, told=told, in_flight=True, guarded=True)
    assert ending.holder == ""


async def test_when_it_cannot_be_told_what_is_under_way_the_lease_is_kept(ending: Ending) -> None:
    assert await ending(work=fails, in_flight=True, guarded=TypeError("odd answer")) == 1
    assert ending.holder.startswith("me_")


async def test_a_leader_that_cannot_even_be_built_gives_the_lease_back(ending: Ending) -> None:
    def broken(self: Any, *_: Any) -> None:
        raise ValueError("a setting")

    with pytest.raises(ValueError, match="a setting"):
        await ending(__init__=broken)
    assert ending.holder == ""
