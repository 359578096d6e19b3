"""A plan that raises: the object that it is about is quarantined, and all others are planned."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.runtime.evicting import FakePreemption, last_plan
from tests.unit.runtime.test_planning import FakeBinder
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)
from tests.unit.state.pods.test_shares import asking

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.common.events import InvolvedObject
from gpu_scheduler.runtime.planning import Planning, PlanningRules, Times
from gpu_scheduler.state.cluster_state import ClusterState

TEAMS = ("team-a", "team-b", "team-c")


class Marked:
    """``plan``, but for marked objects, with which it cannot work."""

    def __init__(self, *marked: str) -> None:
        self.marked = set(marked)
        self.calls = 0

    def __call__(self, given: PlanInput, session: PlannerCache) -> Plan:
        self.calls += 1
        cluster, projects, jobs = given.cluster, given.projects, given.jobs
        there = {job.key for job in jobs if cluster.nodes} | set()
        there |= {node.name for node in cluster.nodes if jobs}
        there |= {name for name in projects if any(job.project == name for job in jobs)}
        held = [each for node in cluster.nodes for each in given.running_pods.on(node.name)]
        there |= {each.uid for each in held} | {hold.pod for hold in given.reservations}
        if found := there & self.marked:
            raise IndexError(f"cannot work with {sorted(found)}")
        return plan(given, session)


def make_cluster_state(jobs: int = 4, nodes: int = 3) -> ClusterState:
    state = ClusterState()
    for n in range(nodes):
        state.nodes.changed(make_node(f"n{n}", gpus=4))
    for team in TEAMS:
        state.project_changed(make_project(team))
        for n in range(jobs):
            add_job(state, team, f"j{n}")
    return state


def add_job(state: ClusterState, team: str, name: str, **pod: Any) -> None:
    uid = f"{team}-{name}"
    state.gpujob_changed(make_gpujob(name, namespace=team, uid=uid))
    state.job_changed(make_job(name, namespace=team, uid=f"{uid}-job", owner_uid=uid))
    pod = {"uid": f"{team}/{name}", "namespace": team, "job": f"{uid}-job"} | pod
    state.pod_changed(make_pod(f"{name}-0", **pod))


class Case:
    def __init__(self, state: ClusterState, *marked: str) -> None:
        self.state, self.binder, self.decide = state, FakeBinder(), Marked(*marked)
        self.said: list[tuple[str, str, str]] = []
        self.planning = self.leader()

    def leader(self) -> Planning:
        """One that knows nothing of what was quarantined before."""
        self.last = last_plan(self.state, self._say)
        return Planning(
            self.state,
            self.binder,  # type: ignore[arg-type]
            FakePreemption(),  # type: ignore[arg-type]
            self.last,
            PlanningRules(decide=self.decide),
            Times(0.5, clock, clock),
        )

    def _say(self, subject: InvolvedObject, reason: str, message: str) -> None:
        self.said.append((subject.kind, subject.name, reason))

    @property
    def placed(self) -> set[str]:
        return {str(decision.pod) for decision, _ in self.binder.given}

    async def settle(self, seconds: float = 20) -> None:
        async with Running(self.planning.run()):
            self.state.changes.some.set()
            await asyncio.sleep(seconds)


ALL = {f"{team}/j{n}" for team in TEAMS for n in range(4)}


@virtual
async def test_a_job_that_cannot_be_planned_waits_and_all_others_start() -> None:
    before = counts["planning"]
    case = Case(make_cluster_state(), "team-b/j2")
    await case.settle()
    assert case.placed == ALL - {"team-b/j2"}
    wait = case.last.waits[JobKey("team-b/j2")]
    assert wait.reason == "Invalid"
    assert "IndexError" in wait.message
    assert "set aside" in wait.message
    assert case.said == [("GPUJob", "j2", "SetAside")]
    assert case.last.quarantine.counts() == {"job": 1, "node": 0, "project": 0}
    assert counts["planning"] > before


@virtual
async def test_a_node_that_cannot_be_planned_takes_no_pods_and_what_it_holds_stays_charged() -> (
    None
):
    state = make_cluster_state()
    add_job(state, "team-a", "runs", node="n1", devices=half(), phase="Running")
    case = Case(state, "n1")
    await case.settle()
    assert case.placed == ALL
    assert set(case.binder.nodes) == {"n0", "n2"}
    assert case.said == [("Node", "n1", "SetAside")]
    assert state.snapshot().allocated_milli["team-a"] == 5 * 500


@virtual
async def test_a_project_that_cannot_be_planned_waits_with_all_its_jobs() -> None:
    case = Case(make_cluster_state(), "team-c")
    await case.settle()
    assert case.placed == {uid for uid in ALL if not uid.startswith("team-c")}
    assert case.said == [("GPUProject", "team-c", "SetAside")]
    waits = case.last.waits
    assert {key for key in waits if "GPUProject team-c is set aside" in waits[key].message} == {
        f"team-c/j{n}" for n in range(4)
    }


@virtual
async def test_a_pod_that_holds_devices_and_cannot_be_planned_concerns_its_job() -> None:
    state = make_cluster_state()
    add_job(state, "team-a", "runs", node="n1", devices=half(), phase="Running")
    case = Case(state, "team-a/runs")
    await case.settle()
    assert case.placed == ALL
    assert case.said == [("GPUJob", "runs", "SetAside")]


@virtual
async def test_a_pod_that_asks_by_itself_and_cannot_be_planned_with_is_told_so_itself() -> None:
    state = make_cluster_state()
    state.pod_changed(asking(node="n1", devices=half(), phase="Running"))
    state.pod_changed(asking("web-2", cpu="999"))  # somebody has to look at who runs
    case = Case(state, "uid-web-1")
    await case.settle()
    assert case.said == [("Pod", "web-1", "SetAside")]
    waiting = Case(make_cluster_state(), "team-a/pod web-2")
    waiting.state.pod_changed(asking("web-2"))
    await waiting.settle()
    assert waiting.said == [], "its condition says it"
    assert waiting.last.waits[JobKey("team-a/pod web-2")].reason == "Invalid"


@virtual
async def test_a_new_leader_sets_aside_the_same_and_plans_the_rest_from_its_first_cycle() -> None:
    case = Case(make_cluster_state(), "team-b/j2", "n1")
    await case.settle()
    add_job(case.state, "team-a", "late")
    case.planning = case.leader()
    await case.settle()
    assert case.placed == ALL - {"team-b/j2"} | {"team-a/late"}


@virtual
async def test_what_is_set_aside_is_tried_again_when_it_changes() -> None:
    case = Case(make_cluster_state(), "team-b/j2")
    await case.settle()
    case.decide.marked.clear()
    async with Running(case.planning.run()):
        case.state.gpujob_changed(
            make_gpujob("j2", namespace="team-b", uid="team-b-j2", generation=2)
        )
        case.state.changes.some.set()
        await asyncio.sleep(5)
    assert case.placed == ALL
    assert case.last.quarantine.counts() == {"job": 0, "node": 0, "project": 0}
    assert case.last.waits == {}


@virtual
async def test_it_is_tried_again_after_a_growing_time_which_costs_the_others_one_plan() -> None:
    case = Case(make_cluster_state(), "team-b/j2")
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(50)
        trials = []
        for _ in range(4000):
            calls = case.decide.calls
            await asyncio.sleep(1)
            if case.decide.calls > calls:
                trials.append(clock())
                assert case.decide.calls - calls == 2
        pauses = [round(b - a) for a, b in zip(trials, trials[1:], strict=False)]
        assert pauses[:4] == [120, 240, 480, 960]
        case.decide.marked.clear()
        await asyncio.sleep(1900)
    assert case.placed == ALL


@virtual
async def test_planning_that_raises_on_nothing_at_all_goes_on_trying() -> None:
    case = Case(make_cluster_state())
    broken = True

    def decide(given: PlanInput, session: PlannerCache) -> Plan:
        if broken:
            raise ZeroDivisionError
        return plan(given, session)

    case.decide = decide  # type: ignore[assignment]
    case.planning = case.leader()
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(10)
        broken = False
        await asyncio.sleep(5)
    assert case.placed == ALL
    assert case.said == []


@virtual
async def test_others_run_between_two_questions() -> None:
    case = Case(make_cluster_state(), "n1")
    most, calls = 0, 0

    async def beside() -> None:
        nonlocal most, calls
        while True:
            most, calls = max(most, case.decide.calls - calls), case.decide.calls
            await asyncio.sleep(0)

    case.state.changes.some.set()
    task = asyncio.ensure_future(case.planning.run())
    other = asyncio.ensure_future(beside())
    for _ in range(300):
        await asyncio.sleep(0)
    task.cancel()
    other.cancel()
    assert case.decide.calls > 5
    assert most <= 2


def _raising(state: ClusterState, name: str, key: str) -> Callable[..., Any]:
    real = getattr(state, name)

    def raising(of: str) -> Any:
        if of == key:
            raise KeyError(of)
        return real(of)

    return raising


@virtual
async def test_a_job_or_project_that_cannot_be_read_is_set_aside_too() -> None:
    case = Case(make_cluster_state())
    state = case.state
    state.waiting_job = _raising(state, "waiting_job", "team-a/j1")  # type: ignore[method-assign]
    state.planner_project = _raising(state, "planner_project", "team-c")  # type: ignore[method-assign]
    await case.settle()
    assert case.placed == {u for u in ALL - {"team-a/j1"} if not u.startswith("team-c")}
    assert sorted(case.said) == [("GPUJob", "j1", "SetAside"), ("GPUProject", "team-c", "SetAside")]


@virtual
async def test_a_decision_that_cannot_be_carried_out_concerns_its_job() -> None:
    case = Case(make_cluster_state())
    submit = case.binder.submit

    def failing(decision: Any, pod: Any, *, gang: bool = False) -> None:
        if decision.job == "team-a/j1":
            raise TypeError("no")
        submit(decision, pod, gang=gang)

    case.binder.submit = failing  # type: ignore[method-assign]
    await case.settle()
    assert case.placed == ALL - {"team-a/j1"}
    assert case.said == [("GPUJob", "j1", "SetAside")]
    assert case.state.snapshot().allocated_milli["team-a"] == 3 * 500


@virtual
async def test_a_cycle_that_fails_outside_of_any_object_does_not_end_the_leader() -> None:
    case = Case(make_cluster_state())
    snapshot = case.state.snapshot

    def failing() -> Cluster:
        raise OverflowError

    case.state.snapshot = failing  # type: ignore[method-assign]
    async with Running(case.planning.run()):
        case.state.changes.some.set()
        await asyncio.sleep(5)
        case.state.snapshot = snapshot  # type: ignore[method-assign]
        await asyncio.sleep(5)
    assert case.placed == ALL


@pytest.mark.long
@settings(max_examples=30)
@given(
    jobs=st.sets(st.sampled_from(sorted(ALL)), max_size=3),
    nodes=st.sets(st.sampled_from(["n0", "n1", "n2", "n3", "n4", "n5"]), max_size=2),
)
def test_whatever_raises_every_other_job_starts(jobs: set[str], nodes: set[str]) -> None:
    @virtual
    async def run() -> None:
        case = Case(make_cluster_state(nodes=6), *jobs, *nodes)
        await case.settle(40)
        assert case.placed == ALL - jobs
        assert not nodes & set(case.binder.nodes)
        assert min(case.state.snapshot().free_milli) >= 0

    run()
