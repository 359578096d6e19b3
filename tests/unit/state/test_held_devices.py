"""No GPU is given out twice, whatever becomes of nodes and of what is said of their devices.

Random histories through the real state and the real planner. The truth is the history's own: which
card is in which slot of which node, and which card the name in an allocation meant when made.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.state.builders import make_gpujob, make_job, make_node, make_pod, make_project

from gpu_scheduler.core.model.decision import Assignment, DeviceAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.state.cluster_state import ClusterState

SLOTS, CARD_MIB = 3, 40960
NODES = ("a", "b")
JOBS = {"half": 0.5, "whole": 1, "third": 0.3, "two": 2}  # GPUs of each pod
nodes = st.sampled_from(NODES)
slots = st.integers(0, SLOTS - 1)


@dataclass
class Machine:
    """One node as it is: its cards by slot, and what is said of them."""

    name: str
    cards: list[str] = field(default_factory=list)
    uuids: list[str] = field(default_factory=list)
    registered: bool = True
    labelled: int = SLOTS  # what the label says
    gpunode: str = ""  # uid; empty = there is none
    status: Any = None
    silent: str = ""


@dataclass
class Held:
    """A pod with a place: its object, and the cards that it really has."""

    pod: Pod
    place: Assignment
    cards: list[tuple[str, DeviceAllocation]]
    job: str
    echoed: bool = False


class History(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.version = 0
        self.count = 0
        self.meant: dict[str, str] = {}  # UUID -> card
        self.nodes = {name: Machine(name) for name in NODES}
        self.waiting: dict[PodUID, tuple[Pod, str]] = {}
        self.held: dict[PodUID, Held] = {}
        self.gone: list[Pod] = []
        self.state = ClusterState()

    def next(self) -> int:
        self.version += 1
        return self.version

    @initialize(with_agent=st.booleans())
    def begin(self, with_agent: bool) -> None:
        for node in self.nodes.values():
            for slot in range(SLOTS):
                self.insert(node, slot)
            if with_agent:
                self.write_report(node)
        self.restart([], [])

    def insert(self, node: Machine, slot: int) -> None:
        """A card that was not there before."""
        card = f"{node.name}-{slot}-card-{self.next()}"
        node.cards[slot : slot + 1] = [card]
        node.uuids[slot : slot + 1] = [""]
        self.name_anew(node, slot)

    def name_anew(self, node: Machine, slot: int) -> None:
        node.uuids[slot] = f"GPU-{node.name}-{slot}-{self.next()}"
        self.meant[node.uuids[slot]] = node.cards[slot]

    # --- objects, and the state being told of them ---

    def write_report(self, node: Machine, without: int = -1, like: int = -1) -> None:
        node.gpunode = node.gpunode or f"gpunode-{self.next()}"
        devices = [
            {"uuid": uuid, "index": slot, "model": "A100", "usableMiB": 40000, "healthy": True}
            for slot, uuid in enumerate(node.uuids)
            if slot != without
        ]
        if like >= 0:
            devices[like - 1]["index"] = like
        node.status = {"devices": devices}

    def tell_gpunode(self, node: Machine) -> None:
        meta = {"name": node.name, "uid": node.gpunode, "resourceVersion": str(self.next())}
        self.custom_resources.node({"metadata": meta, "status": node.status})

    def tell_node(self, node: Machine) -> None:
        self.state.nodes.changed(make_node(node.name, gpus=node.labelled))

    def tell_jobs(self) -> None:
        self.state.project_changed(make_project(quota_milli=100_000))
        for name, gpu in JOBS.items():
            uid = f"gpujob-{name}"
            self.state.gpujob_changed(make_gpujob(name, uid=uid, gpu=gpu))
            job = make_job(name, uid=f"job-{name}", owner_uid=uid, parallelism=99, completions=99)
            self.state.job_changed(job)

    @rule(order=st.lists(st.integers(0, 99)), landed=st.lists(st.booleans(), max_size=8))
    def restart(self, order: list[int], landed: list[bool]) -> None:
        """A new leader knows the objects alone; writes under way have landed, or not."""
        for number, (uid, held) in enumerate(list(self.held.items())):
            if not held.echoed and not (landed[number : number + 1] or [True])[0]:
                del self.held[uid]
                self.waiting[uid] = (held.pod, held.job)
        self.gone.clear()  # no answer outlives the leader that asked
        self.state = ClusterState()
        self.custom_resources = CustomResources(self.state, changed=lambda key: None)
        tell: list[Any] = [self.tell_jobs]
        for node in self.nodes.values():
            if node.registered:
                tell.append(lambda node=node: self.tell_node(node))
            if node.gpunode:
                tell.append(lambda node=node: self.tell_gpunode(node))
            tell.append(lambda node=node: self.state.nodes.agent_silent(node.name, node.silent))
        tell += [lambda p=pod: self.state.pod_changed(p) for pod, _ in self.waiting.values()]
        tell += [lambda held=held: self.echo(held) for held in self.held.values()]
        for number in order:
            tell.append(tell.pop(number % len(tell)))
        for each in tell:
            each()

    # --- pods ---

    @rule(job=st.sampled_from(sorted(JOBS)), count=st.integers(1, 4))
    def submit(self, job: str, count: int) -> None:
        for _ in range(count):
            self.count += 1
            name = f"{job}-{self.count}"
            pod = make_pod(name, version=self.next(), job=f"job-{job}", index=self.count % 99)
            self.waiting[PodUID(pod.metadata.uid)] = (pod, job)
            self.state.pod_changed(pod)

    @rule()
    def plan(self) -> None:
        result = plan(
            PlanInput(
                self.state.snapshot(),
                self.state.planner_projects(),
                self.state.waiting_jobs(),
                running_pods=self.state.running_pods,
                now=1_800_000_000.0,
            )
        )
        for place in result.assignments:
            self.state.decisions.assume(place)
            pod, job = self.waiting.pop(place.pod)
            cards = [(self.card(place.node, g.device), g) for g in place.devices]
            self.held[place.pod] = Held(pod, place, cards, job)

    def card(self, node: str, device: str) -> str:
        """Which card a container gets that starts now with this name."""
        if device.isdecimal():
            return self.nodes[node].cards[int(device)]
        return self.meant[device]

    def echo(self, held: Held, **more: Any) -> None:
        held.echoed = True
        name = held.pod.metadata.name
        devices, node = held.place.devices, held.place.node
        job, version = f"job-{held.job}", self.next()
        held.pod = make_pod(name, version=version, job=job, node=node, devices=devices, **more)
        self.state.pod_changed(held.pod)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), phase=st.sampled_from(["Pending", "Running"]))
    def be_seen(self, data: st.DataObject, phase: str) -> None:
        self.echo(self.held[data.draw(st.sampled_from(sorted(self.held)))], phase=phase)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def fail_to_write(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.held)))
        held = self.held[uid]
        if not held.echoed:
            del self.held[uid]
            self.waiting[uid] = (held.pod, held.job)
            self.state.forget(uid, held.pod)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), ended=st.booleans())
    def end(self, data: st.DataObject, ended: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.held)))
        held = self.held[uid]
        self.echo(held, phase="Failed" if ended else "Running")
        del self.held[uid]
        self.state.pod_gone(uid)
        self.gone.append(held.pod)

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def late_news(self, data: st.DataObject) -> None:
        """The answer to a read of a pod that is gone."""
        late = data.draw(st.sampled_from(self.gone))
        assert self.state.pod_changed(late) is None

    # --- nodes ---

    @rule(name=nodes)
    def unregister(self, name: str) -> None:
        self.nodes[name].registered = False
        self.state.nodes.gone(name)

    @rule(name=nodes, labelled=st.sampled_from([SLOTS, SLOTS, 0, 1]))
    def register(self, name: str, labelled: int) -> None:
        """A Node, new or with other labels."""
        node = self.nodes[name]
        node.registered, node.labelled = True, labelled
        self.tell_node(node)

    @rule(name=nodes)
    def delete_gpunode(self, name: str) -> None:
        node = self.nodes[name]
        if node.gpunode:
            self.custom_resources.node_gone(name, node.gpunode)
            node.gpunode, node.status = "", None

    @rule(name=nodes)
    def take_status(self, name: str) -> None:
        node = self.nodes[name]
        if node.gpunode:
            node.status = None
            self.tell_gpunode(node)

    @rule(name=nodes, without=st.integers(-1, SLOTS - 1), like=st.integers(-1, SLOTS - 1))
    def report(self, name: str, without: int, like: int) -> None:
        """All devices, or not all, or two of one index."""
        node = self.nodes[name]
        self.write_report(node, without, like if without < 0 else -1)
        self.tell_gpunode(node)

    @rule(name=nodes, slot=slots, replaced=st.booleans())
    def other_uuid(self, name: str, slot: int, replaced: bool) -> None:
        """Another card in the slot, or the same one under another name."""
        node = self.nodes[name]
        if replaced:
            self.insert(node, slot)
        else:
            self.name_anew(node, slot)
        self.write_report(node)
        self.tell_gpunode(node)

    @rule(name=nodes, why=st.sampled_from(["", "has an agent that has not reported"]))
    def fall_silent(self, name: str, why: str) -> None:
        self.nodes[name].silent = why
        self.state.nodes.agent_silent(name, why)

    # --- what always holds ---

    @invariant()
    def no_card_is_given_out_twice(self) -> None:
        milli: dict[str, int] = {}
        mib: dict[str, int] = {}
        for held in self.held.values():
            for card, allocated in held.cards:
                milli[card] = milli.get(card, 0) + allocated.milli
                mib[card] = mib.get(card, 0) + allocated.mib
        assert max(milli.values(), default=0) <= 1000, milli
        assert max(mib.values(), default=0) <= CARD_MIB, mib

    @invariant()
    def what_is_held_on_a_device_that_is_not_listed_closes_its_node(self) -> None:
        cluster, unlisted = self.state.snapshot(), self.state.ledger.unlisted
        for n, node in enumerate(cluster.nodes):
            listed = set(cluster.dev_id[cluster.first[n] : cluster.first[n + 1]])
            here = [h.place for h in self.held.values() if h.place.node == node.name]
            lost = [
                allocated.milli
                for place in here
                for allocated in self.state.ledger.resolved(node.name, place.devices)
                if allocated.device not in listed
            ]
            assert sum(unlisted.get(node.name, {}).values()) == sum(lost)
            if lost:
                assert node.unschedulable


TestHistory = pytest.mark.long(History.TestCase)
TestHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
