"""Pods that keep apart, together or level: placed at once, on the bind path, or told why not."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from tests.api.caller import Caller
from tests.api.fake_nodes import node, with_nodes
from tests.api.pod_watch import PodWatch
from tests.api.tenant import Json, Tenant, template, until

from cluster import Running

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
A100 = "NVIDIA-A100-PCIE-40GB"
NODES = tuple(f"r7525-{i}" for i in range(4))


def term(key: str = HOST, **labels: str) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def affinity(kind: str, *terms: Json) -> Json:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def level(key: str = HOST, **labels: str) -> Json:
    constraint = {**term(key, **labels), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [constraint]}


def labelled(app: str, **pod: object) -> Json:
    made = template(**pod)
    made["metadata"]["labels"] = {"app": app}
    return made


def hosts(tenant: Tenant, job: str) -> Counter[str]:
    return Counter(p["spec"]["nodeName"] for p in running(tenant.pods(job)))


def running(pods: list[Json]) -> list[Json]:
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def all_run(tenant: Tenant, job: str, pods: int) -> None:
    """Until so many pods of a job run."""
    until(
        lambda: len(running(tenant.pods(job))) == pods,
        lambda: f"{pods} pods of {job} run; {tenant.status(job)}",
    )


def wait_message(tenant: Tenant, job: str, message: str) -> None:
    """Until a job waits for its topology in these words: those before tell of fewer pods placed."""
    until(
        lambda: (
            (s := tenant.status(job)).get("reason") == "WaitingForTopology"
            and s["message"] == message
        ),
        lambda: f"{job} says {message}; {tenant.status(job)}",
    )


@pytest.fixture
def deployment(tenant: Tenant) -> Iterator[Callable[..., None]]:
    """Makes a plain Deployment of one pod on a node, which the stock scheduler places."""
    path = f"/apis/apps/v1/namespaces/{tenant.name}/deployments"

    def make(name: str, on: str, labels: dict[str, str], **pod: object) -> None:
        container = {"name": "main", "image": "example/placeholder:1"}
        body = {
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"nodeSelector": {HOST: on}, "containers": [container], **pod},
                },
            },
        }
        assert tenant.admin.create(path, body).ok
        key, value = next(iter(labels.items()))
        pods = f"/api/v1/namespaces/{tenant.name}/pods?labelSelector={key}%3D{value}"
        until(lambda: running(tenant.admin.get(pods).body["items"]), f"{name} runs")

    yield make
    tenant.admin.send("DELETE", path)


def bind_path(tenant: Tenant, job: str) -> bool:
    return all(p["spec"]["schedulerName"] == "gpu-scheduler" for p in tenant.pods(job))


def test_five_pods_that_keep_apart_run_on_five_empty_nodes_within_ten_seconds(
    tenant: Tenant, admin: Caller, scheduled: Running
) -> None:
    """Each at the first try: what the ten seconds of the contract would not do for a second one."""
    ever: set[str] = set()
    with (
        with_nodes(admin, node("fifth", A100, 2)),
        PodWatch(scheduled, tenant.name, ever.update) as watch,
    ):
        apart = affinity("podAntiAffinity", term(app="five"))
        tenant.submit(
            "five", gpu=0.25, parallelism=5, completions=5, template=labelled("five", **apart)
        )
        all_run(tenant, "five", 5)
        watch.up_to_now()
        assert len(ever) == 5, "nobody was put where it cannot stay"
        assert hosts(tenant, "five") == dict.fromkeys((*NODES, "fifth"), 1)
        assert bind_path(tenant, "five")
        tenant.remove("five")
        until(lambda: not tenant.pods("five"), "they are gone")


def test_the_fifth_of_five_that_keep_apart_on_four_hosts_is_told_so_and_comes_when_one_ends(
    tenant: Tenant,
) -> None:
    apart = affinity("podAntiAffinity", term(app="five"))
    tenant.submit(
        "five", gpu=0.25, parallelism=5, completions=5, template=labelled("five", **apart)
    )
    all_run(tenant, "five", 4)
    wait_message(
        tenant,
        "five",
        "4 of 5 pods placed; needs 0.25 of a GPU; affinity.podAntiAffinity[0]: one such pod per"
        f" {HOST}, and all 4 that could hold it have one (r7525-0, r7525-1, r7525-2 and 1 more);"
        " it starts when one of those has ended",
    )
    first = running(tenant.pods("five"))[0]
    path = f"/api/v1/namespaces/{tenant.name}/pods/{first['metadata']['name']}/status"
    assert tenant.admin.patch(path, {"status": {"phase": "Succeeded"}}).ok
    until(lambda: len(running(tenant.pods("five"))) == 4, "the fifth runs in its place")


def test_a_skew_of_one_over_four_hosts_puts_one_on_each(tenant: Tenant) -> None:
    body = labelled("level", **level(app="level"))
    tenant.submit("level", gpu=0.25, parallelism=4, completions=4, template=body)
    all_run(tenant, "level", 4)
    assert hosts(tenant, "level") == dict.fromkeys(NODES, 1)
    assert bind_path(tenant, "level")


def test_what_goes_the_gate_path_is_level_as_well(tenant: Tenant) -> None:
    port = {"containerPort": 80, "hostPort": 8080}
    container = {"name": "main", "image": "example/placeholder:1", "ports": [port]}
    body = labelled("level", **level(app="level"), containers=[container])
    tenant.submit("level", gpu=0.25, parallelism=4, completions=4, template=body)
    all_run(tenant, "level", 4)
    assert hosts(tenant, "level") == dict.fromkeys(NODES, 1)
    assert not bind_path(tenant, "level")


def test_a_skew_that_a_cordoned_host_keeps_up_is_told_with_numbers(
    tenant: Tenant, admin: Caller
) -> None:
    last = f"/api/v1/nodes/{NODES[-1]}"
    assert admin.patch(last, {"spec": {"unschedulable": True}}).ok
    try:
        body = labelled("level", **level(app="level"))
        tenant.submit("level", gpu=0.25, parallelism=4, completions=4, template=body)
        all_run(tenant, "level", 3)
        wait_message(
            tenant,
            "level",
            f"3 of 4 pods placed; needs 0.25 of a GPU; topologySpreadConstraints[0]: maxSkew 1 over"
            f" {HOST}: r7525-0 has 1, the least is 0 on r7525-3, which is cordoned",
        )
    finally:
        assert admin.patch(last, {"spec": {"unschedulable": None}}).ok
    all_run(tenant, "level", 4)


def test_a_job_goes_to_another_jobs_pods_and_waits_until_there_are_any(tenant: Tenant) -> None:
    near = affinity("podAffinity", term(app="first"))
    tenant.submit("second", gpu=0.25, template=labelled("second", **near))
    message = tenant.wait_reason("second", "WaitingForTopology")
    assert message == (
        "0 of 1 pods placed; needs 0.25 of a GPU; affinity.podAffinity[0]: no pod with app=first"
        f" in namespace {tenant.name} is on a node with {HOST}"
    )
    body = labelled("first", nodeSelector={HOST: NODES[2]})
    tenant.submit("first", gpu=0.25, template=body)
    all_run(tenant, "second", 1)
    assert hosts(tenant, "second") == {NODES[2]: 1}


def test_a_job_keeps_away_from_another_jobs_pods(tenant: Tenant) -> None:
    body = labelled("first", nodeSelector={HOST: NODES[0]})
    tenant.submit("first", gpu=0.25, template=body)
    all_run(tenant, "first", 1)
    apart = affinity("podAntiAffinity", term(app="first"))
    body = labelled("second", **apart)
    tenant.submit("second", gpu=0.25, parallelism=4, completions=4, template=body)
    all_run(tenant, "second", 4)
    assert NODES[0] not in hosts(tenant, "second")


def test_a_job_goes_to_a_deployments_pods(tenant: Tenant, deployment: Callable[..., None]) -> None:
    deployment("db", NODES[3], {"app": "db"})
    near = affinity("podAffinity", term(app="db"))
    tenant.submit("job", gpu=0.25, parallelism=2, completions=2, template=labelled("job", **near))
    all_run(tenant, "job", 2)
    assert hosts(tenant, "job") == {NODES[3]: 2}
    assert bind_path(tenant, "job")


def test_a_job_keeps_away_from_a_deployments_pods_and_they_from_it(
    tenant: Tenant, deployment: Callable[..., None]
) -> None:
    deployment("web", NODES[0], {"app": "web"})
    shy = affinity("podAntiAffinity", term(team="gpu"))
    deployment("shy", NODES[1], {"app": "shy"}, **shy)
    apart = affinity("podAntiAffinity", term(app="web"))
    body = labelled("job", **apart)
    body["metadata"]["labels"]["team"] = "gpu"
    tenant.submit("job", gpu=0.25, parallelism=4, completions=4, template=body)
    all_run(tenant, "job", 4)
    assert hosts(tenant, "job").keys() <= {NODES[2], NODES[3]}


def test_zones_are_kept_level_beside_a_deployments_pods(
    tenant: Tenant, admin: Caller, deployment: Callable[..., None]
) -> None:
    zones = [node(f"zoned-{i}", A100, 2, zone=f"z{i % 2}") for i in range(4)]
    with with_nodes(admin, *zones):
        deployment("old", "zoned-0", {"app": "svc", "tier": "old"})
        body = labelled("svc", **level(ZONE, app="svc"))
        tenant.submit("svc", gpu=0.25, parallelism=3, completions=3, template=body)
        all_run(tenant, "svc", 3)
        found = Counter(int(name[-1]) % 2 for name in hosts(tenant, "svc").elements())
        assert found == {0: 1, 1: 2}
        tenant.remove("svc")
        tenant.admin.send("DELETE", f"/apis/apps/v1/namespaces/{tenant.name}/deployments")
        until(lambda: not tenant.pods(), "all are gone while there is a kubelet to say so")


@pytest.mark.parametrize("same", [True, False])
def test_a_gang_that_keeps_apart_starts_as_a_whole_or_says_why_not(
    tenant: Tenant, same: bool
) -> None:
    members = 4 if same else 5
    apart = affinity("podAntiAffinity", term(app="gang"))
    tenant.submit(
        "gang",
        gpu=0.25,
        gang=True,
        parallelism=members,
        completions=members,
        template=labelled("gang", **apart),
    )
    if same:
        all_run(tenant, "gang", 4)
        assert hosts(tenant, "gang") == dict.fromkeys(NODES, 1)
    else:
        message = tenant.wait_reason("gang", "WaitingForTopology")
        assert "4 of 5 pods fit" in message and "all 4 that could hold it have one" in message
