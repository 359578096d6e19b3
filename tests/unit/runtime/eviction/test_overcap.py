"""Who is evicted for being above a memory cap, when, and who never is."""

import asyncio
from typing import Any

import pytest
from tests.unit.runtime.binding.test_failed_placements import Case as RecoveryCase
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import half, make_pod, make_project
from tests.unit.state.nodes.test_agents import OVER, devices
from tests.unit.state.pods.test_shares import asking

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.eviction.overcap import OverCapEvictions
from gpu_scheduler.runtime.informers.custom_resources import project_record
from gpu_scheduler.state.nodes.agents import SeenContainer

UID = PodUID("uid-job-0")


class Case(RecoveryCase):
    def __init__(self, policy: str | None = None, **pod: Any) -> None:
        super().__init__()
        spec = {"overCapPolicy": policy} if policy else {}
        self.state.project_changed(project_record(project_body(**spec)))
        pod = {"node": "a", "devices": half("GPU-0"), "phase": "Running", **pod}
        self.state.pod_changed(make_pod(**pod))
        self.state.nodes.agents.set_alive("a", True)
        self.overcap = OverCapEvictions(self.state, self.evictor, clock=clock)

    def report(self, *reports: SeenContainer, node: str = "a") -> None:
        self.state.nodes.reported(node, devices(), {UID: reports} if reports else {})

    def running(self) -> Running:
        return self.evicting.running(self.overcap.run())


@virtual
async def test_policy_evict_acts_at_once_and_names_policy_and_numbers() -> None:
    case = Case("evict")
    async with case.running():
        case.report(OVER)
        await asyncio.sleep(3)
    assert case.evictions == ["job-0"]
    ((name, reason, message),) = case.events.said
    assert (name, reason) == ("job", "OverCapEvicted")
    assert message == "job-0 on a: too much; policy evict; it starts again"
    assert case.avoided() == set()  # the node is not to blame
    assert case.evictor.counts == {"over_cap": 1}
    assert case.overcap.violations == {("team-a", "evict"): 1}


@pytest.mark.parametrize("policy", ["warn", "kill"])
def test_under_these_policies_the_pod_stays(policy: str) -> None:
    @virtual
    async def stays() -> None:
        case = Case(policy)
        async with case.running():
            case.report(OVER)
            await asyncio.sleep(300)
        assert case.evictions == []
        assert case.overcap.violations == {("team-a", policy): 1}

    stays()


@virtual
async def test_by_default_an_excess_that_goes_on_for_a_minute_ends_in_an_eviction() -> None:
    case = Case()
    async with case.running():
        case.report(OVER)
        await asyncio.sleep(59)
        assert case.evictions == []
        await asyncio.sleep(4)
    assert case.evictions == ["job-0"]
    assert "60 s above the cap, by default policy evict" in case.events.said[0][2]


@virtual
async def test_by_default_short_excesses_are_only_counted() -> None:
    case = Case()
    async with case.running():
        for moment in range(5):
            case.report(SeenContainer(0, "interposer", f"since {moment}", "too much"))
            await asyncio.sleep(40)
            case.report(SeenContainer(0, "interposer"))
            await asyncio.sleep(40)
    assert case.evictions == []
    assert case.overcap.violations == {("team-a", "default"): 5}


@virtual
async def test_a_report_evicts_nobody_unless_its_agent_is_known_to_be_alive() -> None:
    for policy in ("evict", None):
        case = Case(policy)
        case.state.nodes.agents.set_alive("a", False)
        async with case.running():
            case.report(OVER)
            await asyncio.sleep(300)
            assert case.evictions == []
            case.state.nodes.agents.set_alive("a", True)
            await asyncio.sleep(59 if policy is None else 0)
            assert case.evictions == []  # the minute starts anew: the report may be an old one
            await asyncio.sleep(5)
        assert case.evictions == ["job-0"]
        assert sum(case.overcap.violations.values()) == 1


@pytest.mark.parametrize(
    ("controller", "then"),
    [("ReplicaSet", "it starts again"), ("", "nobody makes it again")],
)
def test_of_a_pod_that_asks_by_itself_it_says_who_makes_it_again(
    controller: str, then: str
) -> None:
    @virtual
    async def says() -> None:
        case = Case("evict", job=None)
        pod = asking(
            "web-1", controller=controller, node="a", devices=half("GPU-0"), phase="Running"
        )
        case.state.pod_changed(pod)
        async with case.running():
            case.state.nodes.reported("a", devices(), {PodUID("uid-web-1"): (OVER,)})
            await asyncio.sleep(3)
        assert case.evictions == ["web-1"]
        ((name, reason, message),) = case.events.said
        assert (name, reason) == ("web-1", "OverCapEvicted")
        assert message == f"web-1 on a: too much; policy evict; {then}"

    says()


@virtual
async def test_an_agent_has_no_power_over_other_pods() -> None:
    others = {
        "of another node": {"node": "b"},
        "of nobody": {"job": None},
        "ended": {"phase": "Failed", "ran": True},
        "without devices": {"devices": ()},
        "going anyway": {"deleting": True},
    }
    for what, pod in others.items():
        case = Case("evict", **pod)
        async with case.running():
            case.report(OVER)
            await asyncio.sleep(200)
        assert case.evictions == [], what


@virtual
async def test_an_eviction_that_failed_is_tried_again_without_more_words() -> None:
    from tests.unit.runtime.fake_client import BROKEN

    case = Case("evict")
    case.answer = BROKEN
    async with case.running():
        case.report(OVER)
        await asyncio.sleep(3)
        case.answer = {}
        await asyncio.sleep(10)
    assert len(case.evictions) > 1
    assert len(case.events.said) == 1
    assert case.evictor.counts == {"over_cap": 1}


@virtual
async def test_the_policy_is_that_of_the_project_that_owns_the_namespace() -> None:
    case = Case("evict")
    case.state.project_gone(make_project().project.name)
    async with case.running():
        case.report(OVER)
        await asyncio.sleep(30)
    assert case.evictions == []
    assert case.overcap.violations == {("", "default"): 1}
