"""Gangs on a real control plane: whatever fails in between, none stays in part."""

import json
from collections.abc import Callable, Iterator

import pytest
from tests.api import account
from tests.api.caller import Caller
from tests.api.fake_nodes import node, remove, with_nodes
from tests.api.gangs import SETTINGS as SETTINGS
from tests.api.gangs import bound, charged, released, wait_nodes
from tests.api.pod_watch import PodWatch
from tests.api.site import Site, Team
from tests.api.tenant import Tenant, runs, template, until
from tests.faultproxy import BINDING, Fault, FaultProxy, Rule


@pytest.fixture
def refusing(site: Site) -> Iterator[Callable[[], None]]:
    """A policy by which nobody may bind pods to node v100-1, until it is called."""
    group = "/apis/admissionregistration.k8s.io/v1"
    policies, bindings = (f"{group}/validatingadmissionpolic{e}" for e in ("ies", "ybindings"))
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    policy = {
        "metadata": {"name": "refuse"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule | {"resources": ["pods/binding"]}]},
            "validations": [{"expression": "object.target.name != 'v100-1'"}],
        },
    }
    binding = {
        "metadata": {"name": "refuse"},
        "spec": {"policyName": "refuse", "validationActions": ["Deny"]},
    }
    assert site.admin.create(policies, policy).ok and site.admin.create(bindings, binding).ok
    until(lambda: not may_bind(site.admin), "the policy is in force")

    def lift() -> None:
        site.admin.send("DELETE", f"{bindings}/refuse")
        site.admin.send("DELETE", f"{policies}/refuse")
        until(lambda: may_bind(site.admin), "the policy is gone")

    yield lift
    site.admin.send("DELETE", f"{bindings}/refuse")
    site.admin.send("DELETE", f"{policies}/refuse")


def may_bind(admin: Caller) -> bool:
    """Whether a pod that does not exist could be bound to the node of the policy."""
    body = {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "v100-1"}}
    return admin.create("/api/v1/namespaces/default/pods/x/binding", body).status != 422


def test_a_member_that_cannot_be_bound_releases_all_and_nothing_is_charged(
    site: Site, team: Team, refusing: Callable[[], None]
) -> None:
    tenant = team(quota=4)
    nodes = [node(f"v100-{i}", "Tesla-V100", 1) for i in range(3)]
    with with_nodes(site.admin, *nodes):
        with PodWatch(site.running, tenant.name) as watch:
            tenant.submit("wide", gang=True, parallelism=3, gpu=1, gpuModels=["V100"], retries=0)
            assert "could not be placed on v100-1" in released(tenant, "wide")
            until(lambda: watch.peak.placements == 2, "the others were bound, and had to go")
            until(
                lambda: not bound(tenant, "wide") and len(tenant.pods("wide")) == 3,
                "all three wait again",
            )
        with with_nodes(site.admin, node("v100-3", "Tesla-V100", 1)):
            wait_nodes(tenant, "wide", {"v100-0", "v100-2", "v100-3"})  # not the one that refuses
            assert charged(tenant, "wide") == 0
            tenant.remove("wide")
            until(lambda: not tenant.pods(), "the pods are gone")
    refusing()


def test_a_member_that_its_kubelet_rejects_takes_the_others_with_it(site: Site, team: Team) -> None:
    tenant = team(quota=4)
    nodes = [node(f"l4-{i}", "NVIDIA-L4", 1) for i in range(2)]
    rejected = template({"kwok.x-k8s.io/reject-on": "l4-1"})
    with with_nodes(site.admin, *nodes):
        pair = {"gang": True, "parallelism": 2, "gpu": 1, "gpuModels": ["L4"], "retries": 0}
        tenant.submit("pair", template=rejected, **pair)
        assert "the kubelet of l4-1 rejected" in released(tenant, "pair")
        with with_nodes(site.admin, node("l4-2", "NVIDIA-L4", 1)):
            wait_nodes(tenant, "pair", {"l4-0", "l4-2"})
            assert charged(tenant, "pair") == 0
            tenant.remove("pair")
            until(lambda: not tenant.pods(), "the pods are gone")


def test_a_node_that_vanishes_under_a_member_releases_all(site: Site, team: Team) -> None:
    tenant = team(quota=4)
    ghost = node("l40-1", "NVIDIA-L40", 1)
    del ghost["metadata"]["annotations"]  # nobody plays its kubelet: pods there never start
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ghost["status"]["conditions"] = [ready]
    with with_nodes(site.admin, node("l40-0", "NVIDIA-L40", 1), ghost):
        pair = {"gang": True, "parallelism": 2, "gpu": 1, "gpuModels": ["L40"], "retries": 0}
        tenant.submit("pair", **pair)
        wait_nodes(tenant, "pair", {"l40-0", "l40-1"})
        remove(site.admin, "l40-1")
        assert "the node is gone" in released(tenant, "pair")
        until(lambda: not bound(tenant, "pair"), "nobody holds a GPU")
        with with_nodes(site.admin, node("l40-2", "NVIDIA-L40", 1)):
            wait_nodes(tenant, "pair", {"l40-0", "l40-2"})
            assert charged(tenant, "pair") == 0
            tenant.remove("pair")
            until(lambda: not tenant.pods(), "the pods are gone")


MANY, PLACED = 40, 7
STORED = r"^(?!.*dryRun)"


@pytest.fixture
def slow_writer(site: Site) -> Iterator[FaultProxy]:
    """The operator writes one placement after the other, through this proxy.

    Whatever happens, one that does not runs afterwards.
    """
    before = dict(site.replica.settings), site.replica.kubeconfig
    site.replica.stop()
    with FaultProxy.of(site.running) as proxy:
        way = proxy.kubeconfig(account.kubeconfig(site.running), site.running.folder / "slow")
        site.replica.settings["write_concurrency"] = "1"
        site.replica.kubeconfig = way
        site.restart()
        yield proxy
        if site.replica.alive():
            site.replica.stop()
    site.replica.settings, site.replica.kubeconfig = before
    site.restart()


def kill_amid(site: Site, tenant: Tenant, proxy: FaultProxy) -> None:
    """Kill the leader at a write amid those that place a gang; a proxy leads to it no more."""
    passes = Rule(Fault.DELAY_REQUEST, path=BINDING, query=STORED, times=PLACED)
    held = Rule(Fault.DELAY_REQUEST, path=BINDING, query=STORED, seconds=None)
    proxy.rules[:] = [passes, held]
    shape = {"gpu": 0.1, "gpuModels": ["M60"], "distinctGPUs": False, "retries": 0}
    tenant.submit("many", gang=True, parallelism=MANY, **shape)
    proxy.wait_for(lambda: held.held > 0)
    site.replica.kill()
    site.replica.kubeconfig = None
    assert len(tenant.allocations("many")) == PLACED


def test_a_leader_that_dies_between_its_writes_leaves_a_gang_that_the_next_one_completes(
    site: Site, team: Team, slow_writer: FaultProxy
) -> None:
    tenant = team(quota=8)
    with with_nodes(site.admin, node("m60-0", "Tesla-M60", 4)):
        kill_amid(site, tenant, slow_writer)
        site.restart()
        tenant.wait_placed("many", MANY)
        assert charged(tenant, "many") == 0
        assert "GangReleased" not in [event["reason"] for event in tenant.events("many")]
        tenant.remove("many")
        until(lambda: not tenant.pods(), "the pods are gone")


def test_what_a_dead_leader_left_half_placed_is_released_when_the_rest_has_no_place(
    site: Site, team: Team, slow_writer: FaultProxy
) -> None:
    tenant = team(quota=8)
    path = "/api/v1/nodes/m60-0"
    with with_nodes(site.admin, node("m60-0", "Tesla-M60", 4)):
        kill_amid(site, tenant, slow_writer)
        assert site.admin.patch(path, {"spec": {"unschedulable": True}}).ok
        site.restart()
        released(tenant, "many")
        until(lambda: not bound(tenant, "many"), "nobody holds a GPU")
        assert site.admin.patch(path, {"spec": {"unschedulable": None}}).ok
        until(
            lambda: len(bound(tenant, "many")) == MANY,
            lambda: f"the gang starts as a whole; status {json.dumps(tenant.status('many'))}",
        )
        assert charged(tenant, "many") == 0
        tenant.remove("many")
        until(lambda: not tenant.pods(), "the pods are gone")


def test_when_a_role_fails_for_good_nobody_goes_on(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    fails = template(runs(1, exit_code="1"))
    tenant.submit(
        "broken",
        roles=[
            {"name": "lead", "gpu": 1},
            {"name": "work", "replicas": 2, "gpu": 1, "template": fails},
        ],
        retries=0,
    )
    status = tenant.wait_phase("broken", "Failed")
    assert status["message"].startswith("role work: "), json.dumps(status)
    until(lambda: not bound(tenant, ""), "no pod holds a GPU any more")
    assert tenant.batch_job("broken-lead")["spec"]["suspend"]
