"""When an agent counts as alive: by what we saw and our own clock, not by times in the Lease."""

import asyncio
from typing import Any

import msgspec
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.nodes.test_agents import devices
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.kube.objects import Lease
from gpu_scheduler.runtime.informers.changed_nodes import ChangedNodes
from gpu_scheduler.runtime.informers.heartbeats import Heartbeats


def lease(renewed: str = "1", node: str = "a", **spec: Any) -> Lease:
    body = {
        "metadata": {"name": f"gpu-node-{node}"},
        "spec": {"holderIdentity": node, "renewTime": renewed, "leaseDurationSeconds": 40, **spec},
    }
    return msgspec.convert(body, Lease)


class Case:
    def __init__(self) -> None:
        self.state = make_cluster_state()
        self.state.nodes.reported("a", devices())
        self.changed = ChangedNodes()
        self.state.changes.some.clear()
        self.beats = Heartbeats(self.state, self.changed, clock=clock)

    @property
    def woken(self) -> bool:
        return self.state.changes.some.is_set()

    @property
    def unschedulable(self) -> str:
        return self.state.snapshot().nodes[0].unschedulable

    def running(self) -> Running:
        return Running(self.beats.run())


@virtual
async def test_a_lease_that_is_not_renewed_closes_the_node_and_a_renewal_opens_it() -> None:
    case = Case()
    async with case.running():
        case.beats.changed(lease("long ago"))
        await asyncio.sleep(39)
        assert case.unschedulable == ""
        await asyncio.sleep(3)
        assert (
            case.unschedulable == "has an agent that has not reported for 40 s (Lease gpu-node-a)"
        )
        assert case.woken
        case.state.changes.some.clear()
        await asyncio.sleep(100)
        assert not case.woken  # the sentence stays as it is
        case.beats.changed(lease("in the future"))
        assert (case.unschedulable, case.woken) == ("", True)


@virtual
async def test_renewals_keep_it_open() -> None:
    case = Case()
    async with case.running():
        for renewal in range(20):
            case.beats.changed(lease(str(renewal)))
            await asyncio.sleep(10)
        assert case.unschedulable == ""
        assert not case.woken


@virtual
async def test_a_change_that_is_no_renewal_is_no_sign_of_life() -> None:
    case = Case()
    async with case.running():
        for _ in range(5):
            case.beats.changed(lease("1"))  # a label, say
            await asyncio.sleep(10)
        assert case.unschedulable


@virtual
async def test_another_holder_is_a_sign_of_life() -> None:
    case = Case()
    async with case.running():
        case.beats.changed(lease("1"))
        await asyncio.sleep(30)
        case.beats.changed(lease("1", holderIdentity="its successor"))
        await asyncio.sleep(30)
        assert case.unschedulable == ""


@virtual
async def test_an_agent_is_alive_once_it_was_seen_to_renew_its_lease() -> None:
    """A new leader finds Leases of agents that died long ago."""
    case = Case()
    agents = case.state.nodes.agents
    async with case.running():
        case.beats.changed(lease("1"))
        assert not agents.is_alive("a")
        case.beats.changed(lease("2"))
        assert agents.is_alive("a")
        await asyncio.sleep(42)
        assert not agents.is_alive("a")
        case.beats.changed(lease("3"))  # it is back, its report may still be the old one
        assert not agents.is_alive("a") and case.unschedulable == ""
        case.beats.changed(lease("4"))
        assert agents.is_alive("a")
        case.beats.gone("", "gpu-node-a", "uid")
        assert not agents.is_alive("a")


@virtual
async def test_the_lease_says_how_long_it_lives() -> None:
    case = Case()
    async with case.running():
        case.beats.changed(lease(leaseDurationSeconds=3))
        await asyncio.sleep(5)
        assert "for 3 s" in case.unschedulable
        case.beats.changed(lease("2", leaseDurationSeconds=None))
        await asyncio.sleep(39)
        assert case.unschedulable == ""


@virtual
async def test_a_node_without_a_lease_is_taken_at_its_word() -> None:
    case = Case()
    async with case.running():
        await asyncio.sleep(1000)
        assert case.unschedulable == ""
        case.beats.changed(lease())
        await asyncio.sleep(50)
        assert case.unschedulable
        case.beats.gone("", "gpu-node-a", "uid")
        assert case.unschedulable == ""


@virtual
async def test_leases_of_others_mean_nothing() -> None:
    case = Case()
    async with case.running():
        other = msgspec.structs.replace(
            lease(), metadata=msgspec.structs.replace(lease().metadata, name="a")
        )
        case.beats.changed(other)
        case.beats.changed(lease(node="no-such-node"))
        await asyncio.sleep(100)
        case.beats.gone("", "a", "uid")
        assert (case.unschedulable, case.woken) == ("", False)


@virtual
async def test_whoever_tells_the_agents_hears_of_leases_that_are_new_overdue_or_gone() -> None:
    case = Case()
    heard: list[str] = []
    case.changed.add = heard.append  # type: ignore[method-assign]
    assert case.beats.lease("a") == ("", False)
    async with case.running():
        case.beats.changed(versioned("1", "7"))
        assert (heard, case.beats.lease("a")) == (["a"], ("7", False))
        await asyncio.sleep(19)
        case.beats.changed(versioned("2", "8"))
        await asyncio.sleep(19)
        assert (heard, case.beats.lease("a")) == (["a"], ("8", False))
        case.beats.changed(versioned("2", "9"))  # a label, say: no renewal, and another version
        await asyncio.sleep(3)
        assert case.beats.lease("a") == ("9", True)
        assert heard[1:]
        heard.clear()
        case.beats.gone("", "gpu-node-a", "uid")
        assert (heard, case.beats.lease("a")) == (["a"], ("", False))


def versioned(renewed: str, version: str) -> Lease:
    made = lease(renewed)
    meta = msgspec.structs.replace(made.metadata, resource_version=version)
    return msgspec.structs.replace(made, metadata=meta)


@virtual
async def test_an_agent_lives_whatever_its_clock_says_and_dies_whatever_it_said() -> None:
    case = Case()
    hours = ("12", "13", "11", "12", "23")
    times = [f"2026-01-01T{hour}:00:00.000000Z" for hour in hours] + ["2056-01-01T00:00:00.000000Z"]
    async with case.running():
        for at in times:  # its clock is set forward and back
            case.beats.changed(lease(at))
            await asyncio.sleep(10)
        assert case.state.nodes.agents.is_alive("a") and case.unschedulable == ""
        await asyncio.sleep(32)  # and it is silent: thirty years are no sign of life
        assert not case.state.nodes.agents.is_alive("a") and case.unschedulable
