"""Rules about other pods over whole histories: none is broken, and evictions come to an end."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import pod_shape, project, projects
from tests.unit.core.affinity.builders import HOST, ZONE, Standing
from tests.unit.core.affinity.reference import may
from tests.unit.core.properties.play import Play, Pod
from tests.unit.parts import in_parts

from gpu_scheduler.core.model.affinity import (
    AffinityInfo,
    AffinityRules,
    AffinityTerm,
    PodSelector,
    SpreadConstraint,
)
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.model.requirement import Requirement

TEAMS = ("a", "b", "c")
CYCLES, QUIET = 60, 20
IS_X = Requirement("app", "In", ("x",))


@dataclass
class RuledPlay(Play):
    """The same with rules, by pod."""

    who: dict[str, AffinityInfo] = field(default_factory=dict)

    def standing(self) -> Standing:
        found = Standing()
        for uid, (pod, running_pod) in self.running.items():
            ending = uid in self.going
            found.on(running_pod.node, self.who[pod.name], ending=ending, uid=uid)
        return found

    def cluster(self) -> Cluster:
        found = super().cluster()
        found.placed_pods = self.standing()
        return found

    def jobs(self) -> list[WaitingJob]:
        return [
            replace(
                job,
                pods=tuple(replace(pod, affinity=self.who[pod.name]) for pod in job.pods),
                ruled=any(self.who[pod.name].rules is not None for pod in job.pods),
            )
            for job in super().jobs()
        ]

    def plan(self) -> Plan:
        result = super().plan()
        self.check(result)
        return result

    def check(self, result: Plan) -> None:
        """Each placement was allowed when its turn came."""
        standing, nodes = self.standing(), self.cluster().nodes
        waiting = {pod.uid: pod for pod in self.waiting}
        by_name = {node.name: node for node in nodes}
        for place in result.assignments:
            pod = waiting[place.pod]
            who = self.who[pod.name]
            assert may(who, pod.pod_shape.where, by_name[place.node], nodes, standing.seats), place
            standing.on(place.node, who)


APP, KEY = st.sampled_from(["x", "y"]), st.sampled_from([HOST, ZONE])
RULES = st.sampled_from(["none", "near", "apart", "spread"])
TEAM, QUOTA = st.sampled_from(TEAMS), st.sampled_from([0, 1000, 2000, 4000])
KIND = st.sampled_from([pod_shape(milli) for milli in (500, 1000, 1000)])
PRIORITY, RESERVE_AFTER = st.sampled_from([50, 50, 90]), st.sampled_from([0.0, 60.0])
GPUS = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@st.composite
def affinity(draw: st.DrawFn) -> AffinityInfo:
    app = draw(APP)
    about = Requirement("app", "In", (draw(APP),))
    key, pods = draw(KEY), PodSelector(("ns",), (about,))
    rules = {
        "none": None,
        "near": AffinityRules(affinity=(AffinityTerm(key, pods),)),
        "apart": AffinityRules(anti_affinity=(AffinityTerm(key, pods),)),
        "spread": AffinityRules(spread=(SpreadConstraint(1, key, pods),)),
    }[draw(RULES)]
    return AffinityInfo("ns", (("app", app),), rules)


@st.composite
def plays(draw: st.DrawFn) -> tuple[RuledPlay, list[Pod]]:
    gpus = tuple(draw(GPUS))
    teams = [project(name, draw(QUOTA), None, 1) for name in TEAMS]
    play = RuledPlay(gpus, projects(*teams), grace=draw(st.integers(1, 2)))
    play.reserve_after_seconds = draw(RESERVE_AFTER)
    play.consolidate = draw(st.booleans())
    waves: list[list[Pod]] = []
    for wave, most in (("old", 8), ("new", 6)):
        waves.append([])
        for i in range(draw(st.integers(1, most))):
            pod = Pod(
                f"{wave}{i}",
                draw(TEAM),
                draw(KIND),
                priority=draw(PRIORITY),
                created=float(i if wave == "old" else 500 + i),
            )
            play.who[pod.name] = draw(affinity())
            waves[-1].append(pod)
    play.wait(*waves[0])
    return play, waves[1]


@pytest.mark.long
@in_parts(2, examples=200)
@given(plays())
def test_no_rule_is_broken_and_evictions_come_to_an_end(
    given_: tuple[RuledPlay, list[Pod]],
) -> None:
    play, late = given_
    evicted: list[int] = []
    for cycle in range(CYCLES):
        if cycle == 5:
            play.wait(*late)
        before = play.going.copy(), play.reservations
        result = play.cycle()
        evicted.append(len(result.evicts))
        at_rest = before == ({}, play.reservations) and not result.assignments and not result.evicts
        if cycle > 5 and at_rest:
            # Nobody ends by itself here: only the clock can make the next plan another.
            play.tick(CYCLES - cycle)
            evicted = [len(play.plan().evicts)]
            break
    assert not any(evicted[-QUIET:]), evicted


def test_room_that_is_held_for_a_pod_draws_no_other_pod_near() -> None:
    """Whoever wants to be near it starts after it: it may yet not come."""
    near_x = AffinityRules(affinity=(AffinityTerm(HOST, PodSelector(("ns",), (IS_X,))),))
    play = RuledPlay((2,), projects(project("a", 0, None, 1), project("b", 2000, None, 1)), grace=1)
    old = [
        Pod(f"old{i}", "b" if i == 2 else "a", pod_shape(500), created=float(i)) for i in range(4)
    ]
    new = [
        Pod("near", "b", pod_shape(500), created=500.0),
        Pod("x", "b", pod_shape(1000), created=501.0),
    ]
    play.who = {pod.name: AffinityInfo("ns", (("app", "x"),), None) for pod in (*old, *new)}
    play.who["old2"] = AffinityInfo("ns", (("app", "y"),), None)
    play.who["near"] = AffinityInfo("ns", (("app", "y"),), near_x)
    play.wait(*old)
    started: list[str] = []
    for cycle in range(10):
        if cycle == 5:
            play.wait(*new)
        result = play.cycle()
        started += [place.pod for place in result.assignments]
    assert started[-2:] == ["x-0", "near-0"]


def test_no_start_is_taken_back_that_another_one_leans_on() -> None:
    """One plan starts a pod, one beside it that must be near it, and finds the first in the way."""
    near_x = AffinityRules(affinity=(AffinityTerm(HOST, PodSelector(("ns",), (IS_X,))),))
    teams = [project(name, 0, None, 1) for name in TEAMS]
    play = RuledPlay((1, 1, 2), projects(*teams), grace=1)
    owners, whole = "aaaaabbc", (3, 7)
    pods = [
        Pod(f"pod{i}", owner, pod_shape(1000 if i in whole else 500), created=float(i))
        for i, owner in enumerate(owners)
    ]
    for i, pod in enumerate(pods):
        play.who[pod.name] = AffinityInfo("ns", (("app", "x"),), near_x if i in whole else None)
    play.wait(*pods)
    for _ in range(5):
        play.cycle()
