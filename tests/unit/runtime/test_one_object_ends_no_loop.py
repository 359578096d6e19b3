"""An exception about one object, in the loops of a leader: it is counted, and others go on."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.runtime.evicting import Evicting
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import half, make_job, make_node, make_pod
from tests.unit.state.cluster_states import make_cluster_state

from gpu_scheduler.core.model.decision import Evict, EvictReason
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.objects import Lease, LeaseSpec, Meta
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.eviction.evictor import Eviction
from gpu_scheduler.runtime.eviction.preemption import Preemptor
from gpu_scheduler.runtime.informers.changed_nodes import ChangedNodes
from gpu_scheduler.runtime.informers.heartbeats import Heartbeats
from gpu_scheduler.runtime.status.device_events import DeviceEvents
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.sweeps.runtime.pruning import Pruning


class Client:
    """Answers with what a test says."""

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self.answer, self.asked = answer, list[str]()

    async def request(self, method: str, path: str, **more: Any) -> Any:
        self.asked.append(path)
        return self.answer(path)

    async def create(self, path: str, body: dict[str, Any]) -> None:
        self.asked.append(body["involvedObject"]["name"])
        self.answer(body["involvedObject"]["name"])


def failing(error: Exception) -> Callable[[str], Any]:
    def answer(about: str) -> Any:
        if "bad" in about:
            raise error
        return b"{}"

    return answer


class Silence:
    def say(self, *what: Any) -> None:
        pass


def evicting(state: ClusterState, client: Client) -> Evicting:
    return Evicting(state, client, Silence(), stuck_seconds=5, avoid_seconds=10)


def two_stuck() -> ClusterState:
    """Pods bad-0 and good-0 are placed on a node that does not exist."""
    state = make_cluster_state()
    for name in ("bad", "good"):
        state.pod_changed(make_pod(f"{name}-0", node="nowhere", devices=half()))
    return state


@virtual
async def test_recovery_survives_an_answer_that_nobody_foresaw() -> None:
    before, client = counts["evictor"], Client(failing(KeyError("metadata")))
    one = evicting(two_stuck(), client)
    async with one.running():
        await asyncio.sleep(30)
    assert any("good-0" in path for path in client.asked)
    assert sum("bad-0" in path for path in client.asked) > 1  # tried again
    assert counts["evictor"] > before


@virtual
async def test_recovery_survives_a_listener_that_fails_about_one_pod() -> None:
    before, client = counts["failed placements"], Client(lambda path: b"{}")
    one = evicting(two_stuck(), client)

    def lost(pod: Any, why: str) -> None:
        if pod.name == "bad-0":
            raise IndexError

    one.gangs.member_lost = lost  # type: ignore[method-assign]
    async with one.running():
        await asyncio.sleep(30)
    assert any("good-0" in path for path in client.asked)
    assert counts["failed placements"] == before + 1


@virtual
async def test_recovery_still_ends_when_the_fence_closes() -> None:
    one = evicting(two_stuck(), Client(failing(errors.NotLeader("over"))))
    with pytest.raises(errors.NotLeader):
        async with asyncio.timeout(60):
            async with one.running():
                await one.evictor.run()


@virtual
async def test_an_eviction_that_fails_does_not_keep_the_others() -> None:
    state, before = two_stuck(), counts["preemption"]
    client = Client(lambda path: b"{}")
    one = evicting(state, client)
    evict = one.evictor.evict

    def failing_evict(eviction: Eviction) -> bool:
        if eviction.pod.name == "bad-0":
            raise TypeError
        return evict(eviction)

    one.evictor.evict = failing_evict  # type: ignore[method-assign]
    quiet: Any = Silence()
    preemption = Preemptor(state, one.evictor, quiet, clock=clock, now=clock)
    preemption.carry_out(
        Evict(PodUID(f"uid-{n}-0"), JobKey("team-a/job"), JobKey("x/y"), EvictReason.RECLAIM, "")
        for n in ("bad", "good")
    )
    await asyncio.sleep(1)
    assert [path.split("/")[-2] for path in client.asked] == ["good-0"]
    assert counts["preemption"] == before + 1


@virtual
async def test_events_go_on_after_one_that_cannot_be_written() -> None:
    before, client = counts["events"], Client(failing(ValueError("bad")))
    events = Events(client, instance="me", clock=clock)  # type: ignore[arg-type]
    async with Running(events.run()):
        for name in ("bad", "good"):
            events.say(InvolvedObject("Node", "", name, name), "Warning", "SetAside", "why")
        await asyncio.sleep(1)
    assert client.asked == ["bad", "good"]
    assert counts["events"] == before + 1


@virtual
async def test_agents_that_fall_silent_are_told_whatever_happens_with_one() -> None:
    state, before = make_cluster_state(), counts["heartbeats"]
    state.nodes.changed(make_node("bad"))
    for node in ("bad", "a"):
        state.nodes.reported(node, (NodeDevice("GPU-1", 0, "A100", 40000),))
    beats = Heartbeats(state, ChangedNodes(), clock=clock)
    for node in ("bad", "a"):
        beats.changed(Lease(Meta(name=f"gpu-node-{node}"), LeaseSpec("me", 40, "now")))
    silent = state.nodes.agent_silent

    def failing_silent(node: str, why: str) -> None:
        if node == "bad":
            raise OverflowError
        silent(node, why)

    state.nodes.agent_silent = failing_silent  # type: ignore[method-assign]
    async with Running(beats.run()):
        await asyncio.sleep(60)
    assert "has not reported" in state.snapshot().nodes[0].unschedulable
    assert counts["heartbeats"] > before


@virtual
async def test_a_device_that_cannot_be_told_of_does_not_hide_the_next() -> None:
    said: list[str] = []

    class Some(Silence):
        def say(self, *what: Any) -> None:
            if "bad" in what[-1]:
                raise OverflowError
            said.append(what[-1])

    devices = tuple(
        NodeDevice(name, i, "A100", 40000, healthy=False) for i, name in enumerate("xy")
    )
    broken = NodeDevice("bad", 2, "A100", 40000, healthy=False)
    DeviceEvents(make_cluster_state(), Some()).changed("a", "uid", (), (broken, *devices))  # type: ignore[arg-type]
    assert [text.split()[0] for text in said] == ["x", "y"]


@virtual
async def test_a_pruned_trial_with_an_odd_time_does_not_keep_a_new_leader_from_starting() -> None:
    condition = {"type": "gpu-scheduler.io/Pruned", "status": "True", "lastTransitionTime": "never"}
    state = make_cluster_state(
        make_pod(node="a", devices=half(), phase="Running", conditions=(condition,))
    )
    state.job_changed(make_job())
    pruning = Pruning(
        state,
        Client(lambda path: b"{}"),
        evicting(state, Client(print)).evictor,
        Silence(),
        clock=clock,
        now=Clock().moment,
    )  # type: ignore[arg-type]
    async with Running(pruning.run()):
        await asyncio.sleep(5)


@pytest.mark.parametrize(
    "text", ["never", "2026-13-01T00:00:00Z", "2026-01-01T00:00:60Z", "9" * 5000, "\x00", "T", "Z"]
)
def test_a_time_that_cannot_be_read_is_none(text: str) -> None:
    assert epoch_seconds(text) == 0.0


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_the_ends_of_the_calendar_are_times(text: str) -> None:
    assert abs(epoch_seconds(text)) < 1e12
