"""Every handler of every watch, told everything twice, late and in every order: the leader leads.

On uvloop, as the product runs; the operator is the real one, with its workers and its planner at
work. ``HISTORIES_ORDERS`` says how many, and ``HISTORIES_SEED`` which.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
import uvloop
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from tests.unit.generated.server import Server, _refusal, place_of
from tests.unit.generated.stage import SETTINGS, Unobserved, handlers_of_kopf
from tests.unit.generated.values import Obj
from tests.unit.generated.watches import (
    NAMESPACE,
    OBJECTS,
    REFUSED,
    Event,
    ReorderedHistory,
    told_histories,
)
from tests.unit.parts import in_parts

from gpu_scheduler.kube.objects import PodGroup
from gpu_scheduler.kube.paths import POD_GROUPS
from gpu_scheduler.kube.reflector import EventHandler, Reflector
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.sweeps.runtime.sweeping import Sweeping

ORDERS = int(os.environ.get("HISTORIES_ORDERS", "120"))
SEED = int(os.environ.get("HISTORIES_SEED", "1"))
PARTS = 2
_BRISK = SETTINGS.model_copy(update={"cycle_seconds": 0.001})
_MOST_LOOKS = 30
Tell = Callable[[Event], None]


class Refusing(Server):
    """It makes no Job of one name, and has no time for any other write but that of the term."""

    async def request(self, method: str, path: str, **more: Any) -> bytes:
        if method == "POST" and path.endswith("/jobs"):
            await asyncio.sleep(0)
            if REFUSED.encode() in more["body"]:
                raise _refusal(403, "Forbidden", "no such account")
        if method == "PATCH" and "/jobs/" in path and place_of(path).key in self.objects:
            return await super().request("GET", path)  # it stays as it is, and nobody is refused
        tried = (more.get("params") or {}).get("dryRun")
        if method != "GET" and not (tried or "/limitranges" in path or path.endswith("/events")):
            await asyncio.sleep(0)
            raise _refusal(429, "TooManyRequests")
        return await super().request(method, path, **more)

    def hold(self, events: Iterable[Event]) -> None:
        """What is there, without a word to any watch."""
        for event in events:
            if not event.gone:
                self.objects[event.place] = event.obj


class Leading:
    """An operator that leads on what a server holds, and the handlers of all of its watches."""

    def __init__(self, *, plans: bool) -> None:
        self.server = Refusing()
        watches: list[Reflector[Any]] = []
        made = Reflector.__init__

        def noted(self: Reflector[Any], *args: Any, **more: Any) -> None:
            made(self, *args, **more)
            watches.append(self)

        with patch.object(Reflector, "__init__", noted):
            self.operator = Operator(self.server, _BRISK, Unobserved(), "leader", Sweeping)
        self._plans = plans
        self.operator.planning.paused = not plans
        self.tells: dict[str, Tell] = {w._path: _by_reflector(w) for w in watches}
        self.tells[POD_GROUPS["v1"]] = _by_handler(self.operator.watches.pod_groups, PodGroup)
        for collection, told in handlers_of_kopf(self.operator).items():
            self.tells[collection] = _by_kopf(told)
        self.wrong: list[Any] = []  # what the loop was told of: callbacks that raised

    async def __aenter__(self) -> "Leading":
        self._before = Counter(counts)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.wrong.append(context))
        self._task = asyncio.ensure_future(self.operator.run())
        synced = asyncio.ensure_future(self.operator.synced.wait())
        await asyncio.wait({self._task, synced}, return_when=asyncio.FIRST_COMPLETED)
        await self.turns()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def tell(self, event: Event) -> None:
        self.tells[event.place[0]](event)

    async def turns(self) -> None:
        """All keys have been worked on that are in line, and others have had their turns."""
        for _ in range(3):
            await self._planned()
            await self.operator.common.queue.emptied(10)
        if self._task.done():
            self._task.result()
        met = {loop for loop, count in counts.items() if count > self._before[loop]}
        assert not met, f"unexpected errors in: {', '.join(sorted(met))}"
        assert not self.wrong, self.wrong

    async def _planned(self) -> None:
        """A plan was made of what is known; one that changes all the while has had its time."""
        planning, state = self.operator.planning, self.operator.state
        for _ in range(_MOST_LOOKS):
            await asyncio.sleep(0.001 * self._plans)
            if planning.paused or planning._planned_version == state.changes.version:
                return


def _by_reflector(watch: Reflector[Any]) -> Tell:
    return _by_handler(watch._store._handler, watch._decoder.type)


def _by_handler(handler: EventHandler[Any], type: type[Any]) -> Tell:
    decoder = msgspec.json.Decoder(type)

    def tell(event: Event) -> None:
        _, namespace, name = event.place
        if event.gone:
            return handler.gone(namespace, name, event.obj["metadata"]["uid"])
        return handler.changed(decoder.decode(msgspec.json.encode(event.obj)))

    return tell


def _by_kopf(told: Callable[[str, Obj], None]) -> Tell:
    return lambda event: told("DELETED" if event.gone else "MODIFIED", event.obj)


def known_to(operator: Operator) -> dict[str, Any]:
    """What an operator knows, without the order and the moment in which it learnt it."""
    state = operator.state
    cluster = state.snapshot()
    devices = {
        info.name: [
            (cluster.dev_id[d], cluster.dev_usable_mib[d], cluster.free_milli[d])
            for d in range(cluster.first[n], cluster.first[n + 1])
        ]
        for n, info in enumerate(cluster.nodes)
    }
    return {
        "pods": dict(state.pods.known),
        "placeholders": dict(state.pods.placeholders),
        "jobs": dict(state.jobs.believed),
        "gpujobs": {
            key: (job.uid, job.generation, job.deleting, job.said, job.shown, job.unknown)
            for key, job in state.gpujobs.items()
        },
        "problems": {key: job.problem for key, job in state.gpujobs.items()},
        "nodes": {info.name: info for info in cluster.nodes},
        "devices": devices,
        "charges": dict(state.ledger.charges),
        "projects": dict(state.projects.records),
        "payer": state.projects.owner(NAMESPACE),
        "classes": dict(state.classes.records),
        "terminating": set(state.namespaces.terminating),
        "waiting": {job.key for job in state.waiting_jobs()},
    }


async def play(history: ReorderedHistory, *, plans: bool) -> tuple[Any, Any]:
    """What the operator knows that was told so, and what one knows that heard the truth alone."""
    async with Leading(plans=plans) as leading:
        leading.server.hold(history.truth)
        for number, event in enumerate(history.told):
            leading.tell(event)
            if number % 3 == 0:
                await leading.turns()
        await leading.turns()
        for event in history.truth:
            leading.tell(event)
        await leading.turns()
        found = known_to(leading.operator)
    async with Leading(plans=plans) as fresh:
        fresh.server.hold(history.truth)
        for event in history.truth:
            if not event.gone:
                fresh.tell(event)
        await fresh.turns()
        return found, known_to(fresh.operator)


async def test_every_watch_of_the_operator_is_told_of_here() -> None:
    assert Leading(plans=False).tells.keys() == OBJECTS.keys(), (
        "a new watch gets its objects in tests/unit/generated/watches.py"
    )


@pytest.mark.long(always=True)
@in_parts(
    PARTS,
    examples=ORDERS,
    first_seed=SEED,
    suppress_health_check=list(HealthCheck),
    phases=(
        Phase.generate,
    ),  # to make an example smaller takes minutes, and it is readable as it is
)
@given(told_histories(), st.booleans())
def test_whatever_is_told_in_any_order_the_leader_leads_and_knows_the_truth_at_last(
    history: ReorderedHistory, plans: bool
) -> None:
    found, true = uvloop.run(play(history, plans=plans))
    if not plans:  # else what it placed depends on what it knew then
        assert found == true
