"""When it plans, and that it does not when nothing changed."""

import asyncio
from collections.abc import Iterable, Sequence

from tests.unit.runtime.evicting import last_plan
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)
from tests.unit.state.test_cluster_state import free, make_cluster_state, waiting

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Assignment, Evict, EvictReason, Plan, Reason, Waits
from gpu_scheduler.core.model.preemption_policy import FAIR, PlannerMemory
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.core.steps import STEPS
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.planning import Planning, PlanningRules, Times
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import epoch_seconds

KEY = make_gpujob().key


class FakeBinder:
    def __init__(self) -> None:
        self.given: list[tuple[Assignment, Pod]] = []
        self.together: list[bool] = []

    def submit(self, decision: Assignment, pod: Pod, *, gang: bool = False) -> None:
        self.given.append((decision, pod))
        self.together.append(gang)

    @property
    def nodes(self) -> list[str]:
        return [decision.node for decision, _ in self.given]


def waiting_pod(name: str = "other", job: str = "b", version: int = 1) -> Pod:
    return make_pod(name, uid=f"uid-{name}", namespace="team-b", job=job, version=version)


def two_teams() -> ClusterState:
    """Two GPUs, both held by team-a; a pod of team-b waits. Nobody has a quota."""
    state = make_cluster_state(
        make_pod("job-0", node="a", devices=half("0", 1000), phase="Running"),
        make_pod("job-1", node="a", devices=half("1", 1000), phase="Running"),
    )
    for name in ("team-a", "team-b"):
        state.project_changed(make_project(name, quota_milli=0, generation=2))
    state.gpujob_changed(make_gpujob("other", namespace="team-b", uid="other-uid", gpu=1))
    state.job_changed(make_job("other", namespace="team-b", uid="b", owner_uid="other-uid"))
    state.pod_changed(waiting_pod())
    return state


class Case:
    def __init__(
        self, state: ClusterState, *, cycle_seconds: float = 0.5, rules: PlanningRules | None = None
    ) -> None:
        self.state, self.binder = state, FakeBinder()
        self.overbooked = False
        self.checks = 0
        self.observed: list[float] = []
        self.evicts: list[Evict] = []
        self.epoch = 0.0  # of the clock
        self.last = last_plan(state)
        self.planning = Planning(
            state,
            self.binder,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self.last,
            rules or PlanningRules(),
            Times(cycle_seconds, clock, lambda: self.epoch + clock(), self.observe),
        )

    def observe(self, seconds: float, steps: Sequence[float]) -> None:
        assert len(steps) in (0, len(STEPS))
        self.observed.append(seconds)

    def relieve(self) -> bool:
        self.checks += 1
        return self.overbooked

    def carry_out(self, evicts: Iterable[Evict]) -> None:
        for evict in evicts:
            self.evicts.append(evict)
            self.state.set_leaving(evict.pod, True)


@virtual
async def test_a_decision_is_charged_and_handed_out_with_the_pod() -> None:
    case = Case(make_cluster_state(make_pod(version=7)))
    case.planning.cycle()
    ((decision, pod),) = case.binder.given
    assert (decision.pod, decision.node) == ("uid-job-0", "a")
    assert pod.metadata.resource_version == "7"
    assert sum(free(case.state)) == 1500
    assert waiting(case.state) == {}
    case.planning.cycle()
    assert len(case.binder.given) == 1
    assert len(case.observed) == 2


@virtual
async def test_waits_are_kept_and_their_jobs_touched_when_they_change() -> None:
    case = Case(make_cluster_state(make_pod()))
    case.state.nodes.changed(make_node("a", cordoned=True))
    case.planning.cycle()
    wait = case.last.waits[KEY]
    assert wait.reason is Reason.WAITING_FOR_RESOURCES
    assert "cordoned" in wait.message
    case.state.changes.touched.clear()
    case.planning.cycle()
    assert case.state.changes.touched == set()
    case.state.nodes.changed(make_node("a"))
    case.planning.cycle()
    assert case.last.waits == {}
    assert case.state.changes.touched == {KEY}


@virtual
async def test_nothing_is_placed_while_a_device_is_above_its_capacity() -> None:
    case = Case(make_cluster_state(make_pod()))
    case.overbooked = True
    case.planning.cycle()
    assert (case.checks, case.binder.given) == (1, [])
    case.overbooked = False
    case.planning.cycle()
    assert len(case.binder.given) == 1


@virtual
async def test_what_waited_for_evictions_is_planned_next_without_any_news() -> None:
    case = Case(make_cluster_state(make_pod()))
    case.overbooked = True
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(0.1)
        assert case.binder.given == []
        case.overbooked = False
        await asyncio.sleep(1)
        assert case.binder.nodes == ["a"]


@virtual
async def test_a_wake_without_a_change_does_not_plan() -> None:
    case = Case(make_cluster_state())
    async with Running(case.planning.run()):
        for _ in range(10):
            case.state.changes.some.set()
            await asyncio.sleep(1)
    assert case.last.cycles == 1


@virtual
async def test_a_change_is_planned_with_soon_and_its_own_decisions_are_none() -> None:
    case = Case(make_cluster_state())
    async with Running(case.planning.run()):
        await asyncio.sleep(100)
        assert case.last.cycles == 1
        case.state.pod_changed(make_pod())
        await asyncio.sleep(100)
        assert (case.last.cycles, len(case.binder.given)) == (2, 1)


@virtual
async def test_those_for_whom_one_plan_evicts_nobody_have_their_turn_in_the_next_without_news() -> (
    None
):
    """A plan helps so many at most, and it may be long until a pod that has to go is gone."""
    names = ("job-0", "job-1", "job-2")
    pods = (make_pod(name, node="a", devices=half(), phase="Running") for name in names)
    state = make_cluster_state(*pods)

    def one_at_most(given: PlanInput, session: PlannerCache) -> Plan:
        stay = [uid for uid in state.pods.known if uid not in state.pods.leaving]
        evict = (Evict(uid, KEY, KEY, EvictReason.RECLAIM, "why") for uid in stay[:1])
        return Plan((), Waits(), tuple(evict))

    case = Case(state, rules=PlanningRules(decide=one_at_most))
    async with Running(case.planning.run()):
        await asyncio.sleep(5)
    assert [evict.pod for evict in case.evicts] == [f"uid-{name}" for name in names]
    assert case.last.cycles == len(names) + 1


@virtual
async def test_promises_are_passed_on_and_what_a_plan_remembers_comes_back_to_the_next() -> None:
    given: list[tuple[object, object]] = []

    def remembers(scene: PlanInput, session: PlannerCache) -> Plan:
        given.append((scene.preemption_policy, scene.memory))
        return Plan((), Waits(), memory=PlannerMemory(at=float(len(given))))

    case = Case(
        make_cluster_state(make_pod()),
        rules=PlanningRules(preemption_policy=FAIR, decide=remembers),
    )
    case.planning.cycle()
    case.planning.cycle()
    assert given == [(FAIR, PlannerMemory()), (FAIR, PlannerMemory(at=1.0))]


@virtual
async def test_the_first_pod_of_a_burst_does_not_wait_and_the_others_are_planned_together() -> None:
    case = Case(make_cluster_state(), cycle_seconds=1.0)
    async with Running(case.planning.run()):
        for index in range(4):
            case.state.pod_changed(make_pod(f"job-{index}", index=index))
            case.state.changes.some.set()
            await asyncio.sleep(0.1)
            assert len(case.binder.given) == 1
        await asyncio.sleep(5)
    assert (case.last.cycles, len(case.binder.given)) == (2, 4)


@virtual
async def test_a_cycle_that_placed_nothing_does_not_make_the_next_one_wait() -> None:
    case = Case(make_cluster_state(), cycle_seconds=1.0)
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(0.1)
        assert case.last.cycles == 1
        case.state.pod_changed(make_pod())
        case.state.changes.some.set()
        await asyncio.sleep(0.1)
    assert case.binder.nodes == ["a"]


@virtual
async def test_a_node_that_was_avoided_is_used_again_without_any_news() -> None:
    case = Case(make_cluster_state(make_pod()))
    case.state.waiting.avoid(KEY, "a", clock(), 60)
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(59)
        assert case.binder.nodes == []
        assert "failed there" in case.last.waits[KEY].message
        await asyncio.sleep(2)
        assert case.binder.nodes == ["a"]


@virtual
async def test_what_was_said_on_an_avoided_node_is_told_to_who_waits() -> None:
    case = Case(make_cluster_state(make_pod()))
    said = "kube-scheduler could not bind job-0: 0/1 nodes are available: 1 had no free port."
    case.state.waiting.avoid(KEY, "a", clock(), 60, said)
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(1)
    assert case.last.waits[KEY].message.endswith(f"; refused on a: {said}")


@virtual
async def test_it_rests_when_an_avoided_node_runs_out_and_nothing_waits() -> None:
    case = Case(make_cluster_state())
    case.state.waiting.avoid(KEY, "a", clock(), 60)
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(3600)
    assert case.last.cycles <= 2


@virtual
async def test_a_paused_planner_places_nothing_more() -> None:
    case = Case(make_cluster_state(make_pod()))
    case.planning.paused = True
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(10)
    assert case.binder.given == []


@virtual
async def test_nothing_is_planned_with_what_cannot_be_seen_and_all_of_it_afterwards() -> None:
    blind = True
    case = Case(make_cluster_state(make_pod()), rules=PlanningRules(blind=lambda: blind))
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(10)
        assert case.binder.given == []
        blind = False
        case.state.changes.replan()
        await asyncio.sleep(1)
    assert len(case.binder.given) == 1


@virtual
async def test_a_device_above_its_capacity_does_not_spoil_its_neighbours() -> None:
    held = [
        make_pod(f"held-{i}", node="a", devices=half("0", 900), phase="Running") for i in range(2)
    ]
    case = Case(make_cluster_state(*held, make_pod()))
    assert free(case.state) == [-800, 1000]
    case.planning.cycle()
    ((decision, _),) = case.binder.given
    assert [allocated.device for allocated in decision.devices] == ["1"]


@virtual
async def test_evictions_are_handed_out_and_shares_are_kept() -> None:
    case = Case(two_teams())
    case.planning.cycle()
    assert [evict.job for evict in case.evicts] == ["team-a/job"]
    assert case.last.shares_milli == {"team-a": 1000, "team-b": 1000}


@virtual
async def test_freed_devices_stay_promised_until_the_pod_is_bound() -> None:
    case = Case(two_teams())
    case.planning.cycle()
    case.state.pod_gone(case.evicts[0].pod)
    case.planning.cycle()
    (place,) = [decision for decision, _ in case.binder.given]
    assert place.job == "team-b/other"
    case.state.forget(place.pod, waiting_pod(version=9))  # its write failed: it waits again
    rival = make_gpujob("rival", namespace="team-b", uid="rival-uid", type="interactive", gpu=1)
    case.state.gpujob_changed(rival)
    case.state.job_changed(make_job("rival", namespace="team-b", uid="r", owner_uid="rival-uid"))
    case.state.pod_changed(waiting_pod("rival", job="r"))
    case.planning.cycle()
    assert [decision.job for decision, _ in case.binder.given][1:] == ["team-b/other"]


@virtual
async def test_time_alone_makes_it_plan_when_a_reservation_comes_due() -> None:
    case = Case(make_cluster_state(make_pod(created="2026-01-01T00:00:00Z")))
    case.state.nodes.changed(make_node("a", gpus=1))
    case.state.pod_changed(
        make_pod(
            "busy", uid="busy", namespace="elsewhere", job=None, node="a", devices=half(milli=1000)
        )
    )
    case.epoch = epoch_seconds("2026-01-01T00:00:00Z") - clock()
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(59)
        assert case.last.cycles == 1
        await asyncio.sleep(2)
        assert case.last.cycles == 2
