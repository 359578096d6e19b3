"""Gangs on a real control plane: all pods start or none, whatever fails in between."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.api.caller import Caller
from tests.api.fake_nodes import node, remove, with_nodes
from tests.api.pod_watch import Pods, PodWatch, placed
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team, site_with, team_on
from tests.api.tenant import Json, Tenant, runs, template, until

from gpu_scheduler.api.names import LABEL_JOB, RANK

STUCK_SECONDS = 3
SETTINGS = {**CALM_LEASE, "stuck_seconds": str(STUCK_SECONDS)}
ZONE = {"key": "topology.kubernetes.io/zone"}
FORTY: dict[str, Any] = {
    "gpuModels": ["T4"],
    "roles": [
        {"name": "master", "gpu": 4},
        {"name": "worker", "replicas": 9, "gpu": 4},
        {"name": "ps", "replicas": 3},
    ],
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with site_with("gangs", SETTINGS) as made:
        yield made


@pytest.fixture
def team(site: Site) -> Iterator[Team]:
    with team_on(site) as make:
        yield make


def pods_by_job(pods: Pods) -> Counter[str]:
    """Pods that hold places at this instant, by GPUJob."""
    return Counter(p["metadata"]["labels"][LABEL_JOB] for p in pods.values() if placed(p))


def bound(tenant: Tenant, job: str) -> list[Json]:
    """Pods of a job that have a node, have not ended and are not on their way out."""
    return [
        pod
        for pod in tenant.pods(job)
        if pod["spec"].get("nodeName")
        and not pod["metadata"].get("deletionTimestamp")
        and pod["status"].get("phase") not in ("Failed", "Succeeded")
    ]


def wait_nodes(tenant: Tenant, job: str, nodes: set[str]) -> None:
    """Until the job has one pod on each of these nodes and nowhere else."""
    until(
        lambda: sorted(p["spec"]["nodeName"] for p in bound(tenant, job)) == sorted(nodes),
        lambda: f"{job} is on {nodes}; status {json.dumps(tenant.status(job))}",
        90,
    )


def charged(tenant: Tenant, *jobs: str) -> int:
    """Failures that the Jobs have counted."""
    return sum(int(tenant.batch_job(job)["status"].get("failed", 0)) for job in jobs)


def events(tenant: Tenant, job: str) -> dict[str, str]:
    return {event["reason"]: event["message"] for event in tenant.events(job)}


def test_forty_gpus_start_with_forty_and_not_with_thirty_nine(site: Site, team: Team) -> None:
    other, tenant = team(quota=1), team(quota=40)
    nodes = [node(f"t4-{i}", "Tesla-T4", 4) for i in range(10)]
    with with_nodes(site.admin, *nodes):
        other.submit("one", gpu=1, gpuModels=["T4"])
        other.wait_placed("one")
        with PodWatch(site.running, tenant.name) as watch:
            tenant.submit("train", framework="torch", **FORTY)
            until(lambda: len(watch.pods) == 13, "all pods exist")
            status = until(
                lambda: "39" in (s := tenant.status("train")).get("message", "") and s,
                lambda: f"it says what is free: {tenant.status('train')}",
            )
            assert status["reason"] == "WaitingForGang" and "40" in status["message"], status
            assert watch.peak.placements == 0
        other.remove("one")
        tenant.wait_placed("train", 13, 90)
        status = tenant.wait_phase("train", "Running")
        status = until(
            lambda: (s := tenant.status("train"))["podSummary"] == "13/0/13" and s, "all run"
        )
        assert (status["gpu"], status["reason"]) == ("40/40", "")
        held = [(a.node, g.device) for a in tenant.allocations("train") for g in a.grants]
        assert len(held) == len(set(held)) == 40
        service = site.admin.get(f"/api/v1/namespaces/{tenant.name}/services/train").body
        assert service["spec"]["clusterIP"] == "None"
        ranks = {p["spec"]["hostname"]: p["metadata"]["annotations"][RANK] for p in tenant.pods()}
        assert [ranks[f"train-{h}"] for h in ("master-0", "worker-0", "worker-8", "ps-2")] == [
            "0",
            "1",
            "9",
            "12",
        ]
        hosts = [f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in tenant.pods()]
        told = env(tenant.pods()[0])["GPUJOB_HOSTS"].split(",")
        assert sorted(told) == sorted(hosts) and told[0] == "train-master-0.train"
        tenant.remove("train")
        until(lambda: not tenant.pods(), "the pods go with their job", 90)
        path = f"/api/v1/namespaces/{tenant.name}/services/train"
        until(lambda: site.admin.get(path).status == 404, "and so does the Service", 90)


def env(pod: Json) -> dict[str, str]:
    return {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][0]["env"]}


def test_two_gangs_of_three_share_four_gpus_one_after_the_other(site: Site, team: Team) -> None:
    tenant = team(quota=4)
    gang: dict[str, Any] = {"gang": True, "parallelism": 3, "gpu": 1, "gpuModels": ["P4"]}
    mixed: list[Counter[str]] = []

    def check(pods: Pods) -> None:
        if len(found := pods_by_job(pods)) > 1:
            mixed.append(found)

    with with_nodes(site.admin, node("p4-0", "Tesla-P4", 4)):
        with PodWatch(site.running, tenant.name, check):
            for name in ("first", "second"):
                tenant.submit(name, template=template(runs(3)), **gang)
            for name in ("first", "second"):
                tenant.wait_phase(name, "Succeeded", 60)
        assert mixed == []
        assert charged(tenant, "first", "second") == 0


def test_a_zone_must_have_all_models_and_the_message_says_which_it_lacks(
    site: Site, team: Team
) -> None:
    tenant = team(quota=8)
    nodes = [
        node("za-t4", "Tesla-T4", 1, zone="a"),
        node("za-k80", "Tesla-K80", 1, zone="a"),
        node("zb-t4", "Tesla-T4", 1, zone="b"),
        node("zb-p100", "Tesla-P100", 1, zone="b"),
    ]
    roles = [{"name": m.lower(), "gpu": 1, "gpuModels": [m]} for m in ("T4", "K80", "P100")]
    with with_nodes(site.admin, *nodes):
        tenant.submit("mixed", roles=roles, topology=ZONE)
        message = tenant.wait_reason("mixed", "Unsatisfiable")
        assert "P100" in message.upper() and "K80" in message.upper(), message
        assert bound(tenant, "mixed") == []
        with with_nodes(site.admin, node("zb-k80", "Tesla-K80", 1, zone="b")):
            tenant.wait_placed("mixed", 3)
            assert {p["spec"]["nodeName"] for p in tenant.pods()} == {"zb-t4", "zb-p100", "zb-k80"}
            tenant.remove("mixed")
            until(lambda: not tenant.pods(), "the pods are gone", 90)


def test_a_label_that_no_node_bears_is_named(team: Team) -> None:
    tenant = team(quota=8)
    key = "topology.example.com/rack"
    tenant.submit("racks", gang=True, parallelism=2, gpu=1, topology={"key": key})
    assert key in tenant.wait_reason("racks", "Unsatisfiable")


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
            until(lambda: "GangReleased" in events(tenant, "wide"), "the gang is released")
            assert "could not be placed on v100-1" in events(tenant, "wide")["GangReleased"]
            assert watch.peak.placements == 2  # the others were bound, and had to go
            until(
                lambda: not bound(tenant, "wide") and len(tenant.pods("wide")) == 3,
                "all three wait again",
            )
        with with_nodes(site.admin, node("v100-3", "Tesla-V100", 1)):
            wait_nodes(tenant, "wide", {"v100-0", "v100-2", "v100-3"})  # not the one that refuses
            assert charged(tenant, "wide") == 0
            tenant.remove("wide")
            until(lambda: not tenant.pods(), "the pods are gone", 90)
    refusing()


def test_a_member_that_its_kubelet_rejects_takes_the_others_with_it(site: Site, team: Team) -> None:
    tenant = team(quota=4)
    nodes = [node(f"l4-{i}", "NVIDIA-L4", 1) for i in range(2)]
    rejected = template({"kwok.x-k8s.io/reject-on": "l4-1"})
    with with_nodes(site.admin, *nodes):
        pair = {"gang": True, "parallelism": 2, "gpu": 1, "gpuModels": ["L4"], "retries": 0}
        tenant.submit("pair", template=rejected, **pair)
        until(lambda: "GangReleased" in events(tenant, "pair"), "the gang is released", 60)
        assert "the kubelet of l4-1 rejected" in events(tenant, "pair")["GangReleased"]
        with with_nodes(site.admin, node("l4-2", "NVIDIA-L4", 1)):
            wait_nodes(tenant, "pair", {"l4-0", "l4-2"})
            assert charged(tenant, "pair") == 0
            tenant.remove("pair")
            until(lambda: not tenant.pods(), "the pods are gone", 90)


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
        until(lambda: "GangReleased" in events(tenant, "pair"), "the gang is released", 60)
        assert "the node is gone" in events(tenant, "pair")["GangReleased"]
        until(lambda: not bound(tenant, "pair"), "nobody holds a GPU", 60)
        with with_nodes(site.admin, node("l40-2", "NVIDIA-L40", 1)):
            wait_nodes(tenant, "pair", {"l40-0", "l40-2"})
            assert charged(tenant, "pair") == 0
            tenant.remove("pair")
            until(lambda: not tenant.pods(), "the pods are gone", 90)


MANY = 40


@pytest.fixture
def slow_writer(site: Site) -> Iterator[None]:
    """The operator writes one placement after the other; whatever happens, one runs afterwards."""
    site.replica.stop()
    site.replica.settings["write_concurrency"] = "1"
    site.restart()
    yield
    del site.replica.settings["write_concurrency"]
    if site.replica.process is not None:
        site.replica.stop()
    site.restart()


def kill_amid(site: Site, tenant: Tenant) -> None:
    """Have a gang placed and kill the leader before it is done."""

    def kill(pods: Pods) -> None:
        if site.replica.process is not None and any(map(placed, pods.values())):
            site.replica.kill()

    with PodWatch(site.running, tenant.name, kill):
        shape = {"gpu": 0.1, "gpuModels": ["M60"], "distinctGPUs": False, "retries": 0}
        tenant.submit("many", gang=True, parallelism=MANY, **shape)
        until(lambda: site.replica.process is None, "the leader is killed")
    assert 0 < len(tenant.allocations("many")) < MANY, "the leader was not killed in between"


def test_a_leader_that_dies_between_its_writes_leaves_a_gang_that_the_next_one_completes(
    site: Site, team: Team, slow_writer: None
) -> None:
    tenant = team(quota=8)
    with with_nodes(site.admin, node("m60-0", "Tesla-M60", 4)):
        kill_amid(site, tenant)
        site.restart()
        tenant.wait_placed("many", MANY, 60)
        assert charged(tenant, "many") == 0
        assert "GangReleased" not in events(tenant, "many")
        tenant.remove("many")
        until(lambda: not tenant.pods(), "the pods are gone", 90)


def test_what_a_dead_leader_left_half_placed_is_released_when_the_rest_has_no_place(
    site: Site, team: Team, slow_writer: None
) -> None:
    tenant = team(quota=8)
    path = "/api/v1/nodes/m60-0"
    with with_nodes(site.admin, node("m60-0", "Tesla-M60", 4)):
        kill_amid(site, tenant)
        assert site.admin.patch(path, {"spec": {"unschedulable": True}}).ok
        site.restart()
        until(lambda: "GangReleased" in events(tenant, "many"), "the gang is released")
        until(lambda: not bound(tenant, "many"), "nobody holds a GPU")
        assert site.admin.patch(path, {"spec": {"unschedulable": None}}).ok
        until(lambda: len(bound(tenant, "many")) == MANY, "the gang starts as a whole", 60)
        assert charged(tenant, "many") == 0
        tenant.remove("many")
        until(lambda: not tenant.pods(), "the pods are gone", 90)


def test_a_gang_gives_way_as_a_whole_and_comes_back_as_a_whole(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    roles = [{"name": "work", "replicas": 4, "gpu": 1}, {"name": "ps"}]
    nodes = [node(f"rtx-{i}", "Quadro-RTX-6000", 2) for i in range(2)]
    with with_nodes(site.admin, *nodes):
        tenant.submit("gang", gpuModels=["RTX"], priority=10, retries=0, roles=roles)
        tenant.wait_placed("gang", 5)
        tenant.submit("urgent", gpu=1, gpuModels=["RTX"], priority=90, template=template(runs(10)))
        tenant.wait_placed("urgent")
        message = tenant.wait_reason("gang", "Preempted")
        assert f"way to {tenant.name}/urgent" in message
        assert bound(tenant, "gang") == []  # no member stays, with or without a GPU
        tenant.wait_phase("urgent", "Succeeded")
        tenant.wait_placed("gang", 5, 60)
        until(lambda: not tenant.status("gang").get("preemptedBy"), "it has all it had")
        assert charged(tenant, "gang-work", "gang-ps") == 0
        tenant.remove("gang")
        until(lambda: not tenant.pods("gang"), "the pods are gone", 90)


def test_a_gang_that_borrows_gives_gpus_back_as_a_whole(site: Site, team: Team) -> None:
    borrower, owner = team(quota=0), team(quota=8)
    for name in ("one", "two"):
        borrower.submit(name, gang=True, parallelism=4, gpu=1, retries=0)
        borrower.wait_placed(name, 4)
    owner.submit("own", gpu=1, parallelism=4)
    owner.wait_placed("own", 4)
    left = {name: len(bound(borrower, name)) for name in ("one", "two")}
    assert sorted(left.values()) == [0, 4], left
    (gone,) = (name for name, pods in left.items() if not pods)
    assert f"{owner.name}/own" in borrower.wait_reason(gone, "Preempted")
    owner.remove("own")
    borrower.wait_placed(gone, 4, 120)
    assert charged(borrower, "one", "two") == 0


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
