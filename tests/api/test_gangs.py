"""Gangs on a real control plane: all pods start or none."""

from collections import Counter
from typing import Any

from tests.api.fake_nodes import node, with_nodes
from tests.api.gangs import SETTINGS as SETTINGS
from tests.api.gangs import bound, charged
from tests.api.pod_watch import Pods, PodWatch, placed
from tests.api.site import Site, Team
from tests.api.tenant import Json, runs, template, until

from gpu_scheduler.api.names import LABEL_JOB, RANK

ZONE = {"key": "topology.kubernetes.io/zone"}
FORTY: dict[str, Any] = {
    "gpuModels": ["T4"],
    "roles": [
        {"name": "master", "gpu": 4},
        {"name": "worker", "replicas": 9, "gpu": 4},
        {"name": "ps", "replicas": 3},
    ],
}


def pods_by_job(pods: Pods) -> Counter[str]:
    """Pods that hold places at this instant, by GPUJob."""
    return Counter(p["metadata"]["labels"][LABEL_JOB] for p in pods.values() if placed(p))


def test_forty_gpus_start_with_forty_and_not_with_thirty_nine(site: Site, team: Team) -> None:
    other, tenant = team(quota=1), team(quota=40)
    nodes = [node(f"t4-{i}", "Tesla-T4", 4) for i in range(10)]
    with with_nodes(site.admin, *nodes):
        other.submit("one", gpu=1, gpuModels=["T4"])
        other.wait_placed("one")
        with PodWatch(site.running, tenant.name) as watch:
            tenant.submit("train", framework="torch", **FORTY)
            status = until(
                lambda: "39" in (s := tenant.status("train")).get("message", "") and s,
                lambda: f"it says what is free: {tenant.status('train')}",
            )
            assert status["reason"] == "WaitingForGang" and "40" in status["message"], status
            watch.up_to_now()
            assert watch.peak.placements == 0 and not watch.pods, "what waits has no pods"
        other.remove("one")
        tenant.wait_placed("train", 13)
        status = tenant.wait_phase("train", "Running")
        status = until(
            lambda: (s := tenant.status("train"))["podSummary"] == "13/0/13" and s, "all run"
        )
        assert (status["gpu"], status["reason"]) == ("40/40", "")
        held = [(a.node, g.device) for a in tenant.allocations("train") for g in a.devices]
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
        until(lambda: not tenant.pods(), "the pods go with their job")
        path = f"/api/v1/namespaces/{tenant.name}/services/train"
        until(lambda: site.admin.get(path).status == 404, "and so does the Service")


def env(pod: Json) -> dict[str, str]:
    return {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][0]["env"]}


def test_two_gangs_of_three_share_four_gpus_one_after_the_other(site: Site, team: Team) -> None:
    tenant = team(quota=4)
    gang: dict[str, Any] = {"gang": True, "parallelism": 3, "gpu": 1, "gpuModels": ["P4"]}
    mixed: list[Counter[str]] = []
    turns: list[str] = []

    def check(pods: Pods) -> None:
        found = pods_by_job(pods)
        turns.extend(name for name in found if name not in turns)
        if len(found) > 1 and found[turns[0]] > 1:  # beside its last pod the others have room
            mixed.append(found)

    with with_nodes(site.admin, node("p4-0", "Tesla-P4", 4)):
        with PodWatch(site.running, tenant.name, check):
            for name in ("first", "second"):
                tenant.submit(name, template=template(runs(3)), **gang)
            for name in ("first", "second"):
                tenant.wait_phase(name, "Succeeded")
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
            until(lambda: not tenant.pods(), "the pods are gone")


def test_a_label_that_no_node_bears_is_named(team: Team) -> None:
    tenant = team(quota=8)
    key = "topology.example.com/rack"
    tenant.submit("racks", gang=True, parallelism=2, gpu=1, topology={"key": key})
    assert key in tenant.wait_reason("racks", "Unsatisfiable")


def test_a_gang_gives_way_as_a_whole_and_comes_back_as_a_whole(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    roles = [{"name": "work", "replicas": 4, "gpu": 1}, {"name": "ps"}]
    nodes = [node(f"rtx-{i}", "Quadro-RTX-6000", 2) for i in range(2)]
    with with_nodes(site.admin, *nodes):
        tenant.submit("gang", gpuModels=["RTX"], priority=10, retries=0, roles=roles)
        tenant.wait_placed("gang", 5)
        tenant.submit("urgent", gpu=1, gpuModels=["RTX"], priority=90)
        tenant.wait_placed("urgent")
        message = tenant.wait_reason("gang", "Preempted")
        assert f"way to {tenant.name}/urgent" in message
        until(lambda: not bound(tenant, "gang"), "no member stays, with or without a GPU")
        tenant.finish("urgent")
        tenant.wait_placed("gang", 5)
        until(lambda: not tenant.status("gang").get("preemptedBy"), "it has all it had")
        assert charged(tenant, "gang-work", "gang-ps") == 0
        tenant.remove("gang")
        until(lambda: not tenant.pods("gang"), "the pods are gone")


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
    borrower.wait_placed(gone, 4)
    assert charged(borrower, "one", "two") == 0
