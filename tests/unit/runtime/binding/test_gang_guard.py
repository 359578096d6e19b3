"""A gang is placed whole or gives everything back: failed writes, lost members, a lost leader."""

import asyncio
from typing import Any

import pytest
from tests.unit.runtime.binding.test_failed_placements import FakeEvents
from tests.unit.runtime.evicting import Evicting
from tests.unit.runtime.fake_client import (
    AWAY,
    BUSY,
    CONFLICT,
    NOT_FOUND,
    FakeClient,
    FakeTerm,
    Sent,
)
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import half, make_assignment
from tests.unit.state.pods import test_shares as shares
from tests.unit.state.pods.test_pod_groups import RING, says
from tests.unit.state.pods.test_pod_groups import member as pod_group_member
from tests.unit.state.queue.test_gangs import make_gang, member

from gpu_scheduler.core.model.decision import (
    Evict,
    EvictReason,
    Reason,
    Reservation,
    ReservationReason,
    Wait,
)
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.jobs.place import Pin
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.binding.binder import Binder, Writing
from gpu_scheduler.runtime.eviction.preemption import Preemptor

KEY = JobKey("team-a/job")
PATIENCE = 30.0
WAIT = Wait(KEY, Reason.WAITING_FOR_GPU, "no GPU is free", 1)
RESERVED = Reservation(PodUID("x"), KEY, "a", ReservationReason.FREED, None, ())
MEMBERS = {"lead-0": ("lead", 0), "work-0": ("work", 0), "work-1": ("work", 1)}
FORBIDDEN = errors.Forbidden(403, "Forbidden", "a policy says no")


class Case:
    """A gang of three, an API server that refuses what it is told to, and all that places pods."""

    def __init__(self, *pods: Pod, concurrency: int = 3, **spec: Any) -> None:
        self.pods = {p.metadata.name: p for p in pods or (member(*m) for m in MEMBERS.values())}
        self.state = make_gang(*self.pods.values(), **spec)
        self.answers: dict[str, Any] = {}  # "binding/NAME" or "eviction/NAME" -> error or delay
        self.client = FakeClient(self._reply)
        self.events = FakeEvents()
        self.evicting = Evicting(self.state, self.client, self.events)
        self.gangs, self.plan = self.evicting.gangs, self.evicting.plan
        self.binder = Binder(
            self.state,
            self.client,  # type: ignore[arg-type]
            FakeTerm(),  # type: ignore[arg-type]
            self.gangs,
            Writing(concurrency, Pin.AFFINITY),
            clock=clock,
        )

    def _reply(self, sent: Sent) -> Any:
        name, _, verb = sent.path.split("/pods/")[1].partition("/")
        if sent.method == "GET":
            return self.pods[name]
        return self.answers.get(f"{verb}/{name}", {})

    def place_all(self) -> None:
        for at, name in enumerate(MEMBERS):
            place = make_assignment(name, "a" if at < 2 else "b", half(str(at % 2)))
            self.state.decisions.assume(place)
            self.binder.submit(place, self.pods[name], gang=True)

    def sent(self, verb: str) -> list[str]:
        return [s.path.split("/")[-2] for s in self.client.of("POST", f"/{verb}")]

    @property
    def missing(self) -> int:
        found = self.state.gang(self.state.gpujobs[KEY])
        assert found is not None
        return found.missing

    async def run(self, seconds: float = 5.0) -> None:
        async with Running(self.binder.run()):
            await asyncio.sleep(seconds)


@virtual
async def test_a_gang_whose_members_are_all_placed_is_left_alone() -> None:
    case = Case()
    case.place_all()
    await case.run()
    assert (sorted(case.sent("binding")), case.sent("eviction")) == (sorted(MEMBERS), [])
    assert case.missing == 0


@pytest.mark.parametrize("answer", [FORBIDDEN, CONFLICT, AWAY], ids=lambda e: type(e).__name__)
def test_one_member_that_is_not_placed_releases_those_that_are(answer: errors.ApiError) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answers["binding/work-0"] = answer
        case.place_all()
        await case.run()
        assert sorted(case.sent("eviction")) == ["lead-0", "work-1"]
        assert case.missing == 3  # nothing is planned until those that go have come again
        assert case.gangs.counts == {"placement": 1}
        ((name, reason, message),) = case.events.said
        assert (name, reason) == ("job", "GangReleased")
        assert "could not be placed on a" in message

    run()


@virtual
async def test_members_that_are_not_written_yet_stay_unwritten() -> None:
    case = Case(concurrency=1)
    case.answers["binding/lead-0"] = FORBIDDEN
    case.place_all()
    await case.run()
    assert (case.sent("binding"), case.sent("eviction")) == (["lead-0"], [])
    assert [pod.name for pod in case.state.waiting_jobs()[0].pods] == list(MEMBERS)
    assert (case.missing, case.state.pods.leaving, case.state.decisions.assumed) == (3, set(), {})
    assert case.binder.results == {"failed": 1, "released": 2}


@virtual
async def test_a_member_whose_write_ends_late_is_released_as_well() -> None:
    case = Case()
    case.answers["binding/lead-0"] = FORBIDDEN
    slow = asyncio.get_running_loop().create_future()
    case.answers["binding/work-1"] = slow
    case.place_all()
    async with Running(case.binder.run()):
        await asyncio.sleep(2)
        assert case.sent("eviction") == ["work-0"]
        assert case.missing == 3  # a plan in between must not count on the late one
        slow.set_result({})
        await asyncio.sleep(2)
    assert sorted(case.sent("eviction")) == ["work-0", "work-1"]
    assert case.missing == 3


@virtual
async def test_the_node_that_refused_is_avoided_until_the_others_are_back() -> None:
    case = Case()
    case.answers["binding/work-1"] = FORBIDDEN
    case.place_all()
    await case.run()
    (job,) = case.state.waiting_jobs()
    assert job.pods[-1].avoid == {"b"}
    case.state.waiting.expire(clock() + 50)
    assert case.state.waiting.avoided(job.key).keys() == {"b"}


@virtual
async def test_pods_of_other_jobs_fail_alone() -> None:
    case = Case(gang=False)
    case.answers["binding/work-0"] = FORBIDDEN
    for name in MEMBERS:
        place = make_assignment(name, "a", half("0"))
        case.state.decisions.assume(place)
        case.binder.submit(place, case.pods[name])
    await case.run()
    assert case.sent("eviction") == []


@virtual
async def test_a_member_that_the_kubelet_rejects_takes_the_others_with_it() -> None:
    placed = [
        member(*m, node="a", devices=half(str(i % 2))) for i, m in enumerate(MEMBERS.values())
    ]
    case = Case(*placed)
    rejected = member(
        "work", 1, node="a", devices=half(), phase="Failed", reason="OutOfcpu", version=2
    )
    seen = case.state.pod_changed(rejected)
    assert seen is not None
    case.evicting.placements.observe(seen)
    await asyncio.sleep(1)
    assert sorted(case.sent("eviction")) == ["lead-0", "work-0"]
    assert case.gangs.counts == {"member": 1}


# --- a gang that a dead leader left half placed ---


def half_placed(**spec: Any) -> Case:
    case = Case(member("lead", node="a", devices=half()), member("work"), member("work", 1), **spec)
    case.plan.waits = {KEY: WAIT}
    return case


@virtual
async def test_a_gang_that_stays_half_placed_is_released_after_a_while() -> None:
    case = half_placed()
    case.gangs.check()
    await asyncio.sleep(PATIENCE - 1)
    case.gangs.check()
    assert case.sent("eviction") == []
    await asyncio.sleep(1)
    case.gangs.check()
    await asyncio.sleep(1)
    assert case.sent("eviction") == ["lead-0"]
    assert case.gangs.counts == {"incomplete": 1}


@virtual
async def test_a_gang_that_is_completed_in_time_stays() -> None:
    case = half_placed()
    case.gangs.check()
    case.plan.waits = {}  # the planner found places
    await asyncio.sleep(PATIENCE)
    case.gangs.check()
    case.plan.waits = {KEY: WAIT}  # and lost one again
    case.gangs.check()
    await asyncio.sleep(1)
    assert case.sent("eviction") == []


def with_more(*names: str) -> Case:
    """A PodGroup that starts with two pods: ``a`` and ``b`` have places, and others have come."""
    case = Case()
    state = case.state = shares.state()
    says(state, 2)
    for name in names:
        placed: dict[str, Any] = {"node": "a", "devices": half(str(len(state.pods.known) % 2))}
        state.pod_changed(pod_group_member(name, **(placed if name in "ab" else {})))
    case.evicting = Evicting(state, case.client, case.events)
    case.gangs, case.plan = case.evicting.gangs, case.evicting.plan
    case.plan.waits = {RING: WAIT}
    return case


@virtual
async def test_who_waits_beyond_the_least_of_a_podgroup_releases_nobody() -> None:
    for names, released in (("abc", []), ("ac", ["a"])):
        case = with_more(*names)
        if released:
            case.state.pod_changed(pod_group_member("d"))
        case.gangs.check()
        await asyncio.sleep(PATIENCE)
        case.gangs.check()
        await asyncio.sleep(1)
        assert case.sent("eviction") == released


@virtual
async def test_one_beyond_the_least_that_cannot_start_leaves_the_others() -> None:
    case = with_more("a", "b", "c")
    known = {pod.name: pod for pod in case.state.pods.known.values()}
    case.gangs.member_lost(known["c"], "it cannot start")
    case.gangs.placement_failed(RING, "no")
    await asyncio.sleep(1)
    assert case.sent("eviction") == []
    case.gangs.member_lost(known["b"], "it cannot start")
    await asyncio.sleep(1)
    assert case.sent("eviction") == ["a", "b"]


@pytest.mark.parametrize("why", ["room is being made", "a member is still to come", "no gang"])
def test_a_gang_that_waits_for_something_else_stays(why: str) -> None:
    @virtual
    async def run() -> None:
        case = half_placed(gang=why != "no gang")
        if why == "room is being made":
            case.plan.reservations = {PodUID("x"): RESERVED}
        elif why == "a member is still to come":
            case.state.pod_gone(PodUID("uid-work-1"))
        for _ in range(3):
            case.gangs.check()
            await asyncio.sleep(PATIENCE)
        assert case.sent("eviction") == []

    run()


@virtual
async def test_an_eviction_that_a_budget_refuses_for_long_is_tried_again() -> None:
    case = half_placed()
    case.answers["eviction/lead-0"] = BUSY
    async with case.evicting.running(case.gangs.run()):
        await asyncio.sleep(PATIENCE + 60)
        assert case.state.pods.leaving == set()  # given up, so it counts as placed again
        case.answers["eviction/lead-0"] = {}
        tried = len(case.sent("eviction"))
        await asyncio.sleep(PATIENCE + 5)
    assert len(case.sent("eviction")) == tried + 1
    assert case.state.pods.leaving == {"uid-lead-0"}


# --- a gang that gives way to another job ---


@virtual
async def test_a_gang_gives_way_as_a_whole_and_is_told_once() -> None:
    pods = [
        member("lead", node="a", devices=half(), phase="Running"),
        member("work", node="b", devices=half(), phase="Running"),
        member("work", 1, node="b", phase="Running"),  # holds no GPU: the planner does not know it
    ]
    case = Case(*pods)
    preemption = Preemptor(
        case.state,
        case.evicting.evictor,
        case.events,  # type: ignore[arg-type]
        clock=clock,
        now=clock,
    )
    evicts = [
        Evict(PodUID(f"uid-{pod}"), KEY, JobKey("team-b/x"), EvictReason.RECLAIM, "gives", True)
        for pod in ("lead-0", "work-0")
    ]
    preemption.carry_out(evicts)
    await asyncio.sleep(1)
    assert sorted(case.sent("eviction")) == sorted(MEMBERS)
    assert case.missing == 3
    assert [said[1:] for said in case.events.said] == [("Preempted", "gives")]
    assert preemption.counts == {"reclaim": 2}


@virtual
async def test_what_is_gone_is_not_remembered() -> None:
    case = Case()
    case.answers |= {"binding/lead-0": FORBIDDEN, "eviction/work-0": NOT_FOUND}
    case.place_all()
    await case.run()
    for name in MEMBERS:
        case.state.pod_gone(PodUID(f"uid-{name}"))
    assert case.state.pods.leaving == set()
