import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.unit.kube.election_stage import Stage, lead
from tests.unit.kube.fake_leases import LeaseClient, LeaseStore, Trip
from tests.unit.kube.fake_server import FakeServer
from tests.unit.kube.virtual_time import VirtualTime

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.lease import Elector, LeaseTimes
from gpu_scheduler.kube.unexpected import counts


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    await stage.stop()


async def test_the_first_candidate_creates_the_lease_and_leads(stage: Stage) -> None:
    a = stage.candidate("a", lease_seconds=0.5, renew_deadline_seconds=0.3, retry_seconds=0.1)
    assert a.remaining() == 0
    stage.run(lead(a))
    await stage.time.run_for(0)
    assert a.remaining() > 0
    assert stage.store.lease is not None
    spec = stage.store.lease["spec"]
    assert spec["holderIdentity"] == "a"
    assert spec["leaseDurationSeconds"] == 1, "half a second is rounded up in the object"


async def test_the_time_that_remains_counts_from_the_start_of_the_renewal(stage: Stage) -> None:
    a = stage.candidate("a", lambda: Trip(there=0.5, back=1.0))
    stage.run(a.acquire())
    await stage.time.run_for(2.9)  # a look, which takes 1.5, and then a claim
    assert a.remaining() == 0
    await stage.time.run_for(0.1)
    # Claimed at 1.5, confirmed at 3.0; writes end at (10 + 15) / 2 after the start.
    assert a.remaining() == pytest.approx(11.0)
    await stage.time.run_for(8.4)
    assert a.remaining() == pytest.approx(2.6)
    await stage.time.run_for(0.11)
    assert a.remaining() == 0, "the renew deadline has passed"


async def test_a_slow_renewal_counts_from_its_start_too(stage: Stage) -> None:
    trips = [Trip(), Trip(), Trip(there=1.0, back=1.0)]
    a = stage.candidate("a", lambda: trips.pop(0) if trips else Trip())
    stage.run(lead(a))
    await stage.time.run_for(4)  # renewal sent at 2, answered at 4
    assert not trips
    assert a.remaining() == pytest.approx(12.5 - 2.0)


async def test_a_leader_that_renews_stays_leader(stage: Stage) -> None:
    a, b = stage.candidate("a"), stage.candidate("b")
    stage.run(lead(a))
    await stage.time.run_for(1)
    stage.run(lead(b))
    stage.time.after_each = lambda: pytest.fail("b leads") if b.remaining() > 0 else None
    await stage.time.run_for(600)
    assert a.remaining() >= 10.0
    assert a._lease["spec"]["leaseTransitions"] == 0


async def test_a_killed_leader_is_replaced_after_its_lease_and_not_before(stage: Stage) -> None:
    a, b = stage.candidate("a"), stage.candidate("b")
    holding = stage.run(lead(a))
    await stage.time.run_for(7)
    stage.run(lead(b))
    await stage.time.run_for(0)
    await stage.stop(holding)  # SIGKILL: it just stops
    last_renewal = stage.time.now - 1
    await stage.time.run_for(13.9)
    assert b.remaining() == 0
    await stage.time.run_for(4)
    assert b.remaining() > 0
    assert stage.time.now < last_renewal + 15 + 2 * 2.4
    assert b._lease["spec"]["leaseTransitions"] == 1


async def test_a_released_lease_is_taken_at_the_next_look(stage: Stage) -> None:
    a, b = stage.candidate("a"), stage.candidate("b")
    holding = stage.run(lead(a))
    await stage.time.run_for(5)
    stage.run(lead(b))
    await stage.time.run_for(1)
    await stage.stop(holding)
    releasing = stage.run(a.release())
    await stage.time.run_for(0)
    assert releasing.done()
    assert a.remaining() == 0
    await stage.time.run_for(1.2)
    assert b.remaining() > 0


@pytest.mark.parametrize("tenths", range(0, 20, 3))
async def test_another_leads_within_three_seconds_of_any_end(stage: Stage, tenths: int) -> None:
    """A second for writes in flight, a slow way to the server, and the stand-by's next look."""
    slow = lambda: Trip(there=0.1, back=0.1)  # noqa: E731
    a, b = stage.candidate("a", slow), stage.candidate("b", slow)
    b._random = lambda: 0.999
    holding = stage.run(lead(a))
    await stage.time.run_for(5)
    stage.run(lead(b))
    await stage.time.run_for(5 + tenths / 10)
    began = stage.time.now
    await stage.time.run_for(1)
    await stage.stop(holding)
    stage.run(a.release())
    await stage.time.run_for(3 - (stage.time.now - began))
    assert b.remaining() > 0


async def test_release_leaves_somebody_elses_lease_alone(stage: Stage) -> None:
    a, b = stage.candidate("a"), stage.candidate("b")
    holding = stage.run(lead(a))
    await stage.time.run_for(1)
    await stage.stop(holding)
    stage.run(lead(b))
    await stage.time.run_for(20)
    assert b.remaining() > 0
    stage.run(a.release())
    await stage.time.run_for(0)
    assert stage.store.lease is not None
    assert stage.store.lease["spec"]["holderIdentity"] == "b"


async def test_a_candidate_that_never_claimed_releases_nothing(stage: Stage) -> None:
    a = stage.candidate("a")
    stage.run(a.release())
    await stage.time.run_for(0)
    assert stage.store.history == []


async def test_a_server_that_is_away_costs_leadership_at_the_renew_deadline(stage: Stage) -> None:
    away = [False]
    a = stage.candidate("a", lambda: Trip(arrives=not away[0]))
    holding = stage.run(lead(a))
    await stage.time.run_for(4)  # renewed at 4
    away[0] = True
    await stage.time.run_for(9.9)
    assert a.remaining() > 0
    assert not holding.done()
    await stage.time.run_for(0.2)
    assert a.remaining() == 0
    await stage.time.run_for(2)
    assert holding.done(), "hold must return, so that the process can end"


async def test_a_short_outage_costs_nothing(stage: Stage) -> None:
    away = [False]
    a = stage.candidate("a", lambda: Trip(arrives=not away[0]))
    holding = stage.run(lead(a))
    await stage.time.run_for(4)
    away[0] = True
    await stage.time.run_for(5)
    away[0] = False
    await stage.time.run_for(60)
    assert a.remaining() > 0
    assert not holding.done()


async def test_a_renewal_whose_answer_was_lost_is_ours_all_the_same(stage: Stage) -> None:
    trips = [Trip(), Trip(), Trip(back=99.0)]
    a = stage.candidate("a", lambda: trips.pop(0) if trips else Trip())
    holding = stage.run(lead(a))
    await stage.time.run_for(30)
    assert not trips
    assert a.remaining() > 0
    assert not holding.done()
    assert a._lease["spec"]["leaseTransitions"] == 0


async def test_a_claim_whose_answer_was_lost_is_ours_all_the_same(stage: Stage) -> None:
    trips = [Trip(), Trip(back=99.0)]
    a = stage.candidate("a", lambda: trips.pop(0) if trips else Trip())
    stage.run(lead(a))
    await stage.time.run_for(7)
    assert a.remaining() > 0
    assert a._lease["spec"]["leaseTransitions"] == 0


async def test_an_earlier_process_of_the_same_name_is_waited_out(stage: Stage) -> None:
    before = stage.candidate("a")
    holding = stage.run(lead(before))
    await stage.time.run_for(1)
    await stage.stop(holding)
    after = stage.candidate("a")
    stage.run(lead(after))
    await stage.time.run_for(14.9)
    assert after.remaining() == 0
    await stage.time.run_for(0.2)
    assert after.remaining() > 0


async def test_a_lease_taken_by_another_ends_hold_at_once(stage: Stage) -> None:
    a = stage.candidate("a")
    holding = stage.run(lead(a))
    await stage.time.run_for(3)
    thief = stage.store.get()
    thief["spec"]["holderIdentity"] = "thief"
    stage.store.replace(thief)
    await stage.time.run_for(1.1)
    assert a.remaining() == 0
    assert holding.done()


async def test_a_deleted_lease_is_made_again_by_who_holds_it(stage: Stage) -> None:
    a, b = stage.candidate("a"), stage.candidate("b")
    holding = stage.run(lead(a))
    await stage.time.run_for(3)
    stage.run(lead(b))
    await stage.time.run_for(0)
    stage.time.after_each = lambda: pytest.fail("b leads") if b.remaining() > 0 else None
    for _ in range(3):
        stage.store.lease = None
        await stage.time.run_for(10)
        assert not holding.done()
        assert a.remaining() >= 10
        assert stage.store.lease is not None
        assert stage.store.lease["spec"]["holderIdentity"] == "a"
        assert stage.store.lease["spec"]["leaseTransitions"] == 0


async def test_a_lease_that_is_made_again_with_a_lost_answer_is_ours(stage: Stage) -> None:
    trips = [Trip(), Trip(), Trip(), Trip(back=99.0)]  # look, claim, renewal, making it again
    a = stage.candidate("a", lambda: trips.pop(0) if trips else Trip())
    holding = stage.run(lead(a))
    await stage.time.run_for(1)
    stage.store.lease = None
    await stage.time.run_for(30)
    assert not trips
    assert not holding.done() and a.remaining() > 0


async def test_a_lease_deleted_under_a_dead_holder_is_not_made_again_too_soon(stage: Stage) -> None:
    a, b = stage.candidate("a"), stage.candidate("b")
    holding = stage.run(lead(a))
    await stage.time.run_for(3)
    stage.run(lead(b))
    await stage.time.run_for(0)
    await stage.stop(holding)
    stage.store.lease = None
    await stage.time.run_for(10)
    assert b.remaining() == 0, "the holder might not have noticed"
    await stage.time.run_for(10)
    assert b.remaining() > 0


async def test_who_finds_anothers_lease_where_his_was_ends(stage: Stage) -> None:
    a = stage.candidate("a")
    holding = stage.run(lead(a))
    await stage.time.run_for(1)
    stage.store.lease = None
    fresh = stage.candidate("fresh")
    stage.run(lead(fresh))
    await stage.time.run_for(1.1)
    assert holding.done() and a.remaining() == 0
    assert fresh.remaining() > 0


async def test_a_release_succeeds_beside_a_renewal_that_lands_late(stage: Stage) -> None:
    trips = [Trip(), Trip(), Trip(there=0.1)]  # look, claim, renewal
    # Read, and a write that comes after that renewal.
    trips += [Trip(), Trip(there=0.2)]
    a = stage.candidate("a", lambda: trips.pop(0) if trips else Trip())
    stage.run(a.acquire())
    await stage.time.run_for(0)
    stage.run(a._renew(1.0))
    await stage.time.run_for(0)
    releasing = stage.run(a.release())
    await stage.time.run_for(1)
    assert releasing.done()
    assert stage.store.lease is not None and stage.store.lease["spec"]["holderIdentity"] == ""


async def test_the_duration_in_a_foreign_record_is_what_counts(stage: Stage) -> None:
    slow = stage.candidate("slow", lease_seconds=60, renew_deadline_seconds=40)
    holding = stage.run(lead(slow))
    await stage.time.run_for(1)
    await stage.stop(holding)
    b = stage.candidate("b")
    stage.run(lead(b))
    await stage.time.run_for(59)
    assert b.remaining() == 0
    await stage.time.run_for(5)
    assert b.remaining() > 0


async def test_fields_of_others_survive_a_renewal(stage: Stage) -> None:
    a = stage.candidate("a")
    stage.run(lead(a))
    await stage.time.run_for(1)
    lease = stage.store.get()
    lease["metadata"]["labels"] = {"team": "x"}
    lease["spec"]["strategy"] = "OldestEmulationVersion"
    stage.store.replace(lease)
    await stage.time.run_for(60)
    assert a.remaining() > 0
    assert stage.store.lease is not None
    assert stage.store.lease["metadata"]["labels"] == {"team": "x"}
    assert stage.store.lease["spec"]["strategy"] == "OldestEmulationVersion"


async def test_candidates_try_through_refusals(stage: Stage) -> None:
    refusals = [errors.Forbidden(403, "Forbidden", "no"), errors.ServerError(500)]

    class Refusing(LeaseClient):
        async def get(self, path: str, *, timeout_seconds: float) -> dict[str, Any]:
            if refusals:
                raise refusals.pop()
            return await super().get(path, timeout_seconds=timeout_seconds)

    a = stage.candidate("a")
    a._client = Refusing(stage.store, stage.time)
    stage.run(lead(a))
    await stage.time.run_for(10)
    assert a.remaining() > 0


async def test_an_answer_that_is_none_ends_neither_a_candidate_nor_a_leader(stage: Stage) -> None:
    odd: list[Exception] = [
        msgspec.DecodeError("a proxy's page"),
        RuntimeError("handler is closed"),
    ]
    before = counts["lease"]

    class Odd(LeaseClient):
        async def get(self, path: str, *, timeout_seconds: float) -> dict[str, Any]:
            if odd:
                raise odd.pop()
            return await super().get(path, timeout_seconds=timeout_seconds)

        async def replace(self, path: str, *args: Any, **options: Any) -> dict[str, Any]:
            if odd:
                raise odd.pop()
            return await super().replace(path, *args, **options)

    a = stage.candidate("a")
    a._client = Odd(stage.store, stage.time)
    holding = stage.run(lead(a))
    await stage.time.run_for(5)
    assert a.remaining() > 0
    odd += [TypeError("odd"), KeyError("spec")]
    await stage.time.run_for(9)
    assert a.remaining() > 0 and not holding.done()
    assert counts["lease"] == before + 4


async def test_election_writes_are_single_attempts_past_the_fence(stage: Stage) -> None:
    client = LeaseClient(stage.store, stage.time)
    a = stage.candidate("a")
    a._client = client
    stage.run(lead(a))
    await stage.time.run_for(5)
    assert len(client.options) == 3
    for options in client.options:
        assert (options["retry"], options["fenced"]) == (False, False)
        assert options["timeout_seconds"] <= 10 / 3


@pytest.mark.parametrize(
    "times",
    [
        {"lease_seconds": 10.0, "renew_deadline_seconds": 10.0},
        {"renew_deadline_seconds": 2.0, "retry_seconds": 2.0},
        {"retry_seconds": 0.0},
    ],
)
def test_times_that_cannot_be_safe_are_refused(times: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be below"):
        LeaseTimes(**times)


def test_an_empty_identity_is_refused() -> None:
    with pytest.raises(ValueError, match="identity"):
        Elector(LeaseClient(LeaseStore(), VirtualTime()), "ns", "leader", "")


async def test_election_works_over_a_real_connection() -> None:
    async with FakeServer() as server:
        async with Client(server.connection) as one, Client(server.connection) as two:
            times = LeaseTimes(3.0, renew_deadline_seconds=2.0, retry_seconds=0.02)
            a = Elector(one, "gpu-system", "leader", "a", times)
            b = Elector(two, "gpu-system", "leader", "b", times)
            await a.acquire()
            waiting = asyncio.create_task(b.acquire())
            holding = asyncio.create_task(a.hold())
            await server.changes.until(lambda: sum(s.method == "PUT" for s in server.seen) >= 2)
            assert a.remaining() > 0
            assert b.remaining() == 0
            holding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await holding
            await a.release()
            await waiting
            assert b.remaining() > 0
            assert a.remaining() == 0
            assert b._lease["spec"]["leaseTransitions"] == 1


async def test_a_machine_that_was_suspended_wakes_up_with_a_closed_fence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux' monotonic clock stands still meanwhile, and other machines' do not."""
    slept = 0.0
    clock_gettime = time.clock_gettime
    monkeypatch.setattr(
        time,
        "clock_gettime",
        lambda which: clock_gettime(which) + (slept if which == time.CLOCK_BOOTTIME else 0.0),
    )
    async with FakeServer() as server, Client(server.connection) as client:
        elector = Elector(client, "ours", "leader", "me")
        await elector.acquire()
        assert elector.remaining() > 0
        slept = 11.0
        assert elector.remaining() == 0
        assert (await elector.hold()).endswith("not renewed within 10 s")


async def test_a_process_that_was_stopped_goes_on_with_a_closed_fence(stage: Stage) -> None:
    a = stage.candidate("a")
    holding = stage.run(lead(a))
    await stage.time.run_for(5)
    assert a.remaining() > 0
    stage.time.now += 60  # nothing of it runs meanwhile
    assert a.remaining() == 0
    await stage.time.run_for(2)
    assert holding.done()


async def test_who_loses_the_lease_says_why(stage: Stage) -> None:
    a = stage.candidate("a")
    stage.run(a.acquire())
    await stage.time.run_for(0)
    assert stage.store.lease is not None
    stage.store.lease["spec"]["holderIdentity"] = "b"
    stage.store.lease["metadata"]["resourceVersion"] = "9999"
    holding = stage.run(a.hold())
    await stage.time.run_for(3)
    assert holding.result().startswith("a lost the lease /apis/coordination.k8s.io/v1/namespaces/")
    assert holding.result().endswith("/leases/leader: it is now held by b")


async def test_a_cause_that_comes_and_goes_is_said_once_by_candidate_and_leader(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Every third request is refused, in the same words, then in others, and once much later."""
    words, asked = "refused", 0

    def now_and_then() -> None:
        nonlocal asked
        asked += 1
        if asked % 3 == 0 and words:
            raise errors.ServerError(500, "InternalError", words)

    class Flapping(LeaseClient):
        async def get(self, path: str, *, timeout_seconds: float) -> dict[str, Any]:
            now_and_then()
            return await super().get(path, timeout_seconds=timeout_seconds)

        async def replace(self, *args: Any, **options: Any) -> dict[str, Any]:
            now_and_then()
            return await super().replace(*args, **options)

    def said() -> int:
        return sum(line.startswith("lease: ") for line in caplog.messages)

    stage.run(lead(stage.candidate("other")))
    await stage.time.run_for(1)
    b = stage.candidate("b")
    b._client = Flapping(stage.store, stage.time)
    stage.run(lead(b))
    await stage.time.run_for(30)
    assert b.remaining() == 0 and said() == 1
    await stage.stop(stage.tasks[0])
    await stage.time.run_for(120)
    assert b.remaining() > 0 and said() == 1
    words = "another"
    await stage.time.run_for(60)
    assert b.remaining() > 0 and said() == 2
    words = ""
    await stage.time.run_for(700)
    words = "another"
    await stage.time.run_for(60)
    assert b.remaining() > 0 and said() == 3
