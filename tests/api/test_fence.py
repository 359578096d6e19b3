"""Placing writes that something on the way holds back for as long as it likes overbook nothing.

They arrive when their GPUs have been given to others: by the same leader, which gave up waiting for
an answer, or by the next one, while the old one was stopped. Each is refused by the API server.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.api.caller import Answer
from tests.api.conftest import administrator
from tests.api.fenced import fenced_cluster, is_refused, operator_kubeconfig, replica
from tests.api.pod_watch import PodWatch
from tests.api.replica import CALM_LEASE, LEASE, LEASE_NAMESPACE
from tests.api.tenant import Json, Tenant, template, until
from tests.faultproxy import Fault, FaultProxy, Rule

from cluster import Running
from gpu_scheduler.api.names import TERM
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.kube.media_types import STRATEGIC_MERGE_PATCH

GPUS = 8
GATE = "example.com/wait"
LEADER = f"/api/v1/namespaces/{LEASE_NAMESPACE}/limitranges/gpu-scheduler-leader"
DEFAULT_LEASE: dict[str, str] = {}
PATHS = pytest.mark.parametrize("path", ["bind", "gate"])


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with fenced_cluster("fence") as made:
        yield made


@pytest.fixture
def tenant(running: Running) -> Iterator[Tenant]:
    made = Tenant(administrator(running)).create(quota=GPUS)
    yield made
    made.delete()


def held_back(path: str) -> Rule:
    """Holds each placing write of the job ``late`` back until the test lets them go; no dry run.

    Each, and not the first eight: one that is tried again before the last of eight was first sent
    would take another's turn, whose pod would then be placed.
    """
    rule = Rule(Fault.DELAY_REQUEST, query=r"^(?!.*dryRun)", seconds=None)
    if path == "bind":
        return replace(rule, method="POST", path=r"/pods/late-[^/]+/binding$")
    return replace(
        rule, method="PATCH", path=r"/pods/late-[^/]+$", content_type=STRATEGIC_MERGE_PATCH
    )


def news_held_back() -> Rule:
    """Holds back what a leader says on the waiting pods of the job ``late``, from 2 s on.

    It gives them another version: a late write is then refused for that, whoever may place.
    """
    path = r"/pods/late-[^/]+/status$"
    return Rule(Fault.DELAY_REQUEST, method="PATCH", path=path, seconds=None)


def let_arrive(proxy: FaultProxy, late: Rule) -> None:
    """What was held back gets to the API server, which answers."""
    proxy.release(late)
    proxy.wait_for(lambda: late.answers.total() == late.applied)


def settled(tenant: Tenant, job: str, path: str) -> None:
    """Until nobody but the operator has a reason to change the job's pods."""
    told = "PodScheduled" if path == "gate" else ""  # kube-scheduler says that they are gated
    until(
        lambda: (
            len(pods := tenant.pods(job)) == GPUS
            and all(
                not told or any(c["type"] == told for c in p["status"].get("conditions", ()))
                for p in pods
            )
        ),
        f"the pods of {job} are there: {tenant.status(job)}",
    )


def fill(tenant: Tenant, name: str, priority: int = 0, *, held: bool = False) -> None:
    """All GPUs; ``held``: its pods are made and wait, until ``let_go``."""
    gates = {"schedulingGates": [{"name": GATE}]} if held else {}
    sizes = {"parallelism": GPUS, "completions": GPUS}
    tenant.submit(name, gpu=1, **sizes, priority=priority, template=template(**gates))


def let_go(tenant: Tenant, name: str) -> bool:
    """Nobody else keeps those pods from being scheduled any more that are there now; True."""
    for pod in tenant.pods(name):
        gates = pod["spec"].get("schedulingGates", [])
        if any(gate["name"] == GATE for gate in gates):
            left = [gate for gate in gates if gate["name"] != GATE]
            answer = edit(tenant, pod, {"spec": {"schedulingGates": left}})
            assert answer.ok or answer.status == 404, answer
    return True


def edit(tenant: Tenant, pod: Json, changes: Json) -> Answer:
    path = f"/api/v1/namespaces/{tenant.name}/pods/{pod['metadata']['name']}"
    return tenant.admin.patch(path, changes)


@PATHS
def test_one_leader_gives_no_gpu_away_that_a_late_write_could_still_take(
    running: Running, tenant: Tenant, path: str
) -> None:
    late = held_back(path)
    chosen = {**DEFAULT_LEASE, "placement": path}
    with FaultProxy.of(running, rules=[late]) as proxy, PodWatch(running) as watch:
        through = proxy.kubeconfig(
            operator_kubeconfig(running), running.folder / "proxy.kubeconfig"
        )
        leader = replica(running, f"one-{path}", chosen, through).start()
        try:
            leader.wait_leading()
            fill(tenant, "late")
            proxy.wait_for(lambda: late.held >= GPUS)
            fill(tenant, "first", priority=10)
            # It waits 10 s for an answer, and as long again if it may not be sure.
            tenant.wait_placed("first", GPUS)
            let_arrive(proxy, late)
        finally:
            leader.stop()
    # Those whose turn it is no more are deleted after a while, as their Job becomes narrower.
    assert late.answers and not late.answers.keys() - {404, 409}
    assert max(watch.peak.milli.values()) == DEVICE_MILLI


@PATHS
def test_a_write_of_a_leader_that_was_stopped_lands_no_more_once_another_one_leads(
    running: Running, tenant: Tenant, path: str
) -> None:
    late = held_back(path)
    chosen = {**CALM_LEASE, "placement": path}
    with FaultProxy.of(running) as proxy, PodWatch(running) as watch:
        through = proxy.kubeconfig(
            operator_kubeconfig(running), running.folder / "proxy.kubeconfig"
        )
        old = replica(running, f"old-{path}", chosen, through).start()
        new = replica(running, f"new-{path}", chosen, through)
        try:
            old.wait_leading()
            fill(tenant, "late", priority=20, held=True)
            settled(tenant, "late", path)
            fill(tenant, "first", priority=10, held=True)
            settled(tenant, "first", path)
            # The pods are these: none is deleted where its Job becomes narrower while it waits.
            running.pause_process("kube-controller-manager")
            proxy.rules.append(late)
            let_go(tenant, "late")
            let_go(tenant, "first")
            proxy.wait_for(lambda: late.held >= GPUS)
            assert old.process is not None
            old.process.send_signal(signal.SIGSTOP)
            proxy.rules.append(news_held_back())
            assert tenant.patch("late", priority=0).ok  # its pods stay as they are, and wait
            # Nobody need wait for the end of its Lease: writes that are late come later still.
            assert tenant.admin.patch(LEASE, {"spec": {"holderIdentity": ""}}).ok
            new.start().wait_leading()
            tenant.wait_placed("first", GPUS)
            let_arrive(proxy, late)
            old.process.send_signal(signal.SIGCONT)
            assert old.code() == 1
        finally:
            running.resume_process("kube-controller-manager")
            for each in (old, new):
                if each.alive():
                    each.kill()
            new.forget()
    assert late.answers == {403: late.applied}
    assert max(watch.peak.milli.values()) == DEVICE_MILLI


@contextmanager
def editing(tenant: Tenant, job: str, times_a_second: float) -> Iterator[Callable[[], int]]:
    """Somebody who changes an annotation of each pod that often, placed or not."""
    stop, edits = threading.Event(), [0]

    def go_on() -> None:
        while not stop.wait(1 / times_a_second):
            for pod in tenant.pods(job):
                edits[0] += 1
                edit(tenant, pod, {"metadata": {"annotations": {"own": str(edits[0])}}})

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield lambda: edits[0]
    finally:
        stop.set()
        thread.join()


@PATHS
def test_a_pod_that_is_edited_ten_times_a_second_is_placed_all_the_same(
    running: Running, tenant: Tenant, path: str
) -> None:
    leader = replica(running, f"edited-{path}", {**CALM_LEASE, "placement": path})
    leader.start()
    try:
        leader.wait_leading()
        fill(tenant, "edited", held=True)
        settled(tenant, "edited", path)
        fill(tenant, "full", priority=10)
        tenant.wait_placed("full", GPUS)
        let_go(tenant, "edited")
        with editing(tenant, "edited", 10) as edits:
            until(lambda: edits() > 2 * GPUS, "they are edited")
            tenant.remove("full")
            # One that waits for 5 s while seven have a place is made again, and is gated again.
            until(
                lambda: let_go(tenant, "edited") and len(tenant.allocations("edited")) == GPUS,
                lambda: f"all of edited are placed: {tenant.status('edited')}",
            )
    finally:
        leader.stop()


def test_a_leader_that_is_told_to_end_waits_for_no_write_that_will_be_refused(
    running: Running, tenant: Tenant
) -> None:
    late = held_back("bind")
    with FaultProxy.of(running, rules=[late]) as proxy, PodWatch(running) as watch:
        through = proxy.kubeconfig(
            operator_kubeconfig(running), running.folder / "proxy.kubeconfig"
        )
        old = replica(running, "ends", DEFAULT_LEASE, through).start()
        new = replica(running, "follows", DEFAULT_LEASE)
        try:
            old.wait_leading()
            fill(tenant, "late")
            proxy.wait_for(lambda: late.held >= GPUS)
            new.start()
            old.stop()
            assert " released the lease " in old.told()
            new.wait_leading()
            tenant.wait_placed("late", GPUS)
            let_arrive(proxy, late)
        finally:
            for each in (old, new):
                if each.alive():
                    each.stop()
    assert not late.answers.keys() - {403, 409}
    assert max(watch.peak.milli.values()) == DEVICE_MILLI


def term_of(tenant: Tenant) -> str:
    return str(tenant.admin.get(LEADER).body["metadata"]["annotations"][TERM])


@PATHS
def test_a_leader_whose_object_somebody_deletes_makes_it_again_and_goes_on(
    running: Running, tenant: Tenant, path: str
) -> None:
    leader = replica(running, f"robbed-{path}", {**CALM_LEASE, "placement": path}).start()
    try:
        leader.wait_leading()
        term = term_of(tenant)
        assert tenant.admin.send("DELETE", LEADER).ok
        # Until then its policies judge by what was there, and the leader has no reason to doubt.
        until(lambda: is_refused(running, term), "the API server knows that it is gone")
        tenant.submit("next", gpu=0.5)
        tenant.wait_placed("next")
        assert term_of(tenant).startswith(leader.name)
        assert "is gone: it is made again" in leader.told()
    finally:
        leader.stop()


def test_a_leader_whose_term_somebody_else_takes_ends_and_the_next_one_places(
    running: Running, tenant: Tenant
) -> None:
    leader = replica(running, "outbid", CALM_LEASE).start()
    leader.wait_leading()
    term = int(term_of(tenant).rpartition("/")[2])
    taken = {"metadata": {"annotations": {TERM: f"nobody/{term + 5}"}}}
    assert tenant.admin.patch(LEADER, taken).ok
    tenant.submit("later", gpu=0.5)
    assert leader.code() == 1
    assert "LimitRange gpu-scheduler-leader is that of nobody now" in leader.told()
    leader.process = None
    leader.forget()
    following = replica(running, "next", CALM_LEASE).start()
    try:
        following.wait_leading()
        tenant.wait_placed("later")
        assert term_of(tenant).endswith(f"/{term + 6}")
    finally:
        following.stop()
