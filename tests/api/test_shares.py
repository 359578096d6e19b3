"""Pods that ask for a share by themselves, made ours without a policy: by ``jobs.share``."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.api.account import HAS_MUTATING_POLICIES
from tests.api.pod_watch import PodWatch
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team
from tests.api.tenant import Json, Tenant, until

from gpu_scheduler.api.allocation import Allocation, parse
from gpu_scheduler.api.names import ALLOCATION, devices_annotation, memory_mib_annotation
from gpu_scheduler.api.share_keys import Compat
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation, share

pytestmark = pytest.mark.skipif(not HAS_MUTATING_POLICIES, reason="Kubernetes before 1.36")

CHART = Path(__file__).parents[2] / "charts" / "gpu-scheduler"
IMAGE = "example/operator:v1"
LAST = 4, 4, 2  # pods of each, which fit wherever those before them went
KILLS = int(os.environ.get("KILLS", "5"))
GIVEN = Installation(CapImage(IMAGE), runtime_class="")
SETTINGS = {**CALM_LEASE, "cap_image": IMAGE, "guarantee_seconds": "2"}


def template(
    gpu: str, *, controlled: bool = True, labels: Json | None = None, **notes: str
) -> Json:
    """A pod template that asks, as ``kubectl gpu render`` prints it."""
    keys = {f"gpu-scheduler.io/{key.replace('_', '-')}": word for key, word in notes.items()}
    meta = {"labels": labels or {}, "annotations": {"gpu-scheduler.io/gpu": gpu} | keys}
    return made_ours(meta, {}, controlled=controlled)


def made_ours(
    meta: Json, limits: Json, *, controlled: bool = True, compat: Compat | None = None
) -> Json:
    """A pod template that asks for GPUs in one way or another, made ours."""
    main = {"name": "main", "image": "example/placeholder:1", "resources": {"limits": limits}}
    made = share(meta, {"containers": [main]}, GIVEN, controlled=controlled, compat=compat)
    assert made is not None
    metadata, spec = made
    return {"metadata": metadata, "spec": spec}


class Web:
    """A Deployment whose pods ask for a share."""

    def __init__(self, tenant: Tenant, name: str = "web") -> None:
        self.tenant, self.name = tenant, name
        self._all = f"/apis/apps/v1/namespaces/{tenant.name}/deployments"

    def create(self, replicas: int, gpu: str, **notes: str) -> "Web":
        labels = {"app": self.name}
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template(gpu, labels=labels, **notes),
        }
        answer = self.tenant.admin.create(
            self._all, {"metadata": {"name": self.name}, "spec": spec}
        )
        assert answer.ok, answer
        return self

    def scale(self, replicas: int) -> None:
        path = f"{self._all}/{self.name}"
        assert self.tenant.admin.patch(path, {"spec": {"replicas": replicas}}).ok

    def pods(self) -> list[Json]:
        return [p for p in self.tenant.pods() if p["metadata"]["labels"].get("app") == self.name]

    def delete(self) -> None:
        assert self.tenant.admin.send("DELETE", f"{self._all}/{self.name}").ok
        until(lambda: not self.pods(), f"the pods of {self.name} are gone")


def make_pod(tenant: Tenant, name: str, made: Json) -> None:
    body = {**made, "metadata": {**made["metadata"], "name": name}}
    answer = tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/pods", body)
    assert answer.ok, answer


def allocation(pod: Json) -> Allocation | None:
    text = pod["metadata"].get("annotations", {}).get(ALLOCATION)
    return parse(text) if text else None


def running(pods: list[Json]) -> list[Json]:
    return [p for p in pods if p["status"].get("phase") == "Running" and allocation(p)]


def unscheduled(pod: Json) -> Json:
    """Its condition PodScheduled, where it is False."""
    found = (c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled")
    return next((c for c in found if c["status"] == "False"), {})


def wait_told(tenant: Tenant, name: str, words: str) -> Json:
    """Until a waiting pod says this; its condition."""

    def told() -> Any:
        pod = next((p for p in tenant.pods() if p["metadata"]["name"] == name), None)
        condition = unscheduled(pod) if pod else {}
        return words in condition.get("message", "") and condition

    return until(told, lambda: f"{name} says {words}: {json.dumps(tenant.pods())}")


def wait_running(web: Web, count: int) -> list[Json]:
    return until(
        lambda: len(r := running(web.pods())) == count and r,
        lambda: f"{count} run: {json.dumps([p['status'] for p in web.pods()])}",
    )


def test_a_deployment_shares_one_device_and_each_container_has_its_cap(team: Team) -> None:
    tenant = team(quota=4)
    web = Web(tenant).create(4, "0.25")
    pods = wait_running(web, 4)
    placed = {(a.node, g.device) for p in pods if (a := allocation(p)) for g in a.devices}
    assert len(placed) == 1, "four quarters are one device"
    for pod in pods:
        notes = pod["metadata"]["annotations"]
        assert notes[devices_annotation(0)] != "void"
        assert int(notes[memory_mib_annotation(0)]) > 0
        assert not unscheduled(pod)
    until(lambda: tenant.project_status().get("allocatedGPU") == "1", "the project pays")
    web.scale(2)
    wait_running(web, 2)
    until(lambda: tenant.project_status().get("allocatedGPU") == "0.5", "and less again")


def test_who_waits_for_quota_is_told_on_the_pod_and_starts_when_there_is_room(team: Team) -> None:
    tenant = team(quota=1, limit=1)
    web = Web(tenant).create(2, "0.5")
    wait_running(web, 2)
    web.scale(3)
    (waiting,) = until(lambda: [p for p in web.pods() if not allocation(p)], "there is a third pod")
    name = waiting["metadata"]["name"]
    condition = wait_told(tenant, name, "WaitingForQuota")
    assert condition["reason"] == "WaitingForQuota", "no autoscaler buys a node for that"
    event = tenant.wait_event(name, "WaitingForQuota")
    assert event["involvedObject"]["kind"] == "Pod"
    tenant.set_project(quota=2, limit=2)
    wait_running(web, 3)
    until(lambda: not any(map(unscheduled, web.pods())), "nobody says that it waits")


def test_where_another_node_would_help_autoscalers_hear_of_it(team: Team) -> None:
    tenant = team(quota=8)
    web = Web(tenant).create(1, "8")
    (pod,) = until(web.pods, "there is a pod")
    condition = wait_told(tenant, pod["metadata"]["name"], "Unsatisfiable")
    assert condition["reason"] == "Unschedulable"


def test_a_namespace_without_a_project_is_told_so_and_starts_with_one(team: Team) -> None:
    tenant = team()
    web = Web(tenant).create(1, "0.5")
    (pod,) = until(web.pods, "there is a pod")
    wait_told(tenant, pod["metadata"]["name"], "belongs to no project")
    assert tenant.project(tenant.name, namespaces=[tenant.name], quota=1).ok
    wait_running(web, 1)


def test_a_pod_that_was_written_to_look_like_ours_gets_nothing(team: Team) -> None:
    tenant = team(quota=8)
    bare = template("0.5")
    without_library = {
        "metadata": bare["metadata"],
        "spec": {**bare["spec"], "initContainers": []},
    }
    make_pod(tenant, "uncapped", without_library)
    everything = json.loads(json.dumps(bare))
    everything["spec"]["containers"][0]["env"].append(
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
    )
    make_pod(tenant, "everything", everything)
    make_pod(tenant, "honest", bare)
    wait_told(tenant, "uncapped", "gpu-scheduler-cap")
    wait_told(tenant, "everything", "NVIDIA_VISIBLE_DEVICES must stand there once")
    until(
        lambda: [p["metadata"]["name"] for p in running(tenant.pods())] == ["honest"],
        "only the honest one runs",
    )


def test_a_bare_pod_goes_through_the_gate(team: Team) -> None:
    tenant = team(quota=8)
    made = template("0.5", controlled=False)
    assert made["spec"]["schedulingGates"]
    make_pod(tenant, "notebook", made)
    until(lambda: running(tenant.pods()), lambda: f"it runs: {tenant.pods()}")


def test_a_gang_of_plain_pods_starts_together(team: Team) -> None:
    tenant = team(quota=8)
    member = template("1", labels={"gpu-scheduler.io/gang": "ring"}, gang_size="3")
    for name in ("a", "b"):
        make_pod(tenant, name, member)
    wait_told(tenant, "a", "WaitingForGang")
    assert not any(map(allocation, tenant.pods()))
    make_pod(tenant, "c", member)
    until(lambda: len(running(tenant.pods())) == 3, "all three run")


def test_what_a_deployment_borrowed_it_gives_back(team: Team) -> None:
    lender, borrower = team(quota=4), team(quota=4)
    web = Web(borrower).create(8, "1")
    wait_running(web, 8)
    lender.submit("mine", gpu=1, parallelism=4, completions=4)
    lender.wait_placed("mine", 4)
    until(lambda: len(running(web.pods())) == 4, "it keeps its quota")
    waiting = until(
        lambda: [p["metadata"]["name"] for p in web.pods() if not allocation(p)],
        "its controller made pods anew",
    )
    wait_told(borrower, waiting[0], "Waiting")
    assert len(running(web.pods())) == 4


def test_gpujobs_and_a_restarted_operator_know_what_they_hold(site: Site, team: Team) -> None:
    tenant = team(quota=8)
    web = Web(tenant).create(8, "0.5")
    before = {p["metadata"]["uid"] for p in wait_running(web, 8)}
    site.replica.kill()
    site.restart()
    tenant.submit("whole", gpu=1, parallelism=4, completions=4)
    tenant.wait_placed("whole", 4)
    held = [g for p in tenant.pods() if (a := allocation(p)) for g in ((a.node, a.devices),)]
    milli: dict[tuple[str, str], int] = {}
    for node, devices in held:
        for allocated in devices:
            milli[node, allocated.device] = milli.get((node, allocated.device), 0) + allocated.milli
    assert max(milli.values()) <= 1000
    assert {p["metadata"]["uid"] for p in running(web.pods())} == before


@pytest.fixture(scope="module")
def policies(site: Site) -> Iterator[None]:
    """The chart's policies that make pods ours, for an operator of that image."""
    served = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
    shown = site.running.helm(
        *("template", "shares", str(CHART), "-n", "gpu-scheduler", "--api-versions", served),
        *("--show-only", "templates/admission-shares.yaml"),
        *("--show-only", "templates/admission-share-requests.yaml"),
        *("--set", "scheduling.runtimeClass=", "--set", f"isolation.image={IMAGE}"),
    ).stdout
    site.running.kubectl("apply", "-f", "-", input=shown)
    probe = {"generateName": "p-", "labels": {"gpu-scheduler.io/gpu": "x"}}
    body = {"metadata": probe, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    path = "/api/v1/namespaces/default/pods?dryRun=All"
    try:
        until(
            lambda: "must be a share" in site.admin.create(path, body).message,
            "they are in force",
        )
        yield
    finally:
        site.running.kubectl("delete", "-f", "-", input=shown)


def asking(**limits: object) -> Json:
    """A template as its user writes it: by a label, or in its limits."""
    container: Json = {"name": "main", "image": "example/placeholder:1"}
    labels = {"app": "it"} if limits else {"app": "it", "gpu-scheduler.io/gpu": "0.5"}
    if limits:
        container["resources"] = {"limits": {f"gpu-scheduler.io/{k}": v for k, v in limits.items()}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container]}}


@pytest.mark.usefixtures("policies")
def test_a_label_or_a_limit_is_enough_whoever_makes_the_pods(team: Team) -> None:
    tenant = team(quota=8)
    selector = {"matchLabels": {"app": "it"}}
    never = asking()
    never["spec"]["restartPolicy"] = "Never"
    apps, batch = (f"/apis/{group}/namespaces/{tenant.name}" for group in ("apps/v1", "batch/v1"))
    for path, name, spec in (
        (f"{apps}/deployments", "web", {"replicas": 2, "selector": selector, "template": asking()}),
        (
            f"{apps}/statefulsets",
            "notebook",
            {"serviceName": "n", "selector": selector, "template": asking(milligpu=500)},
        ),
        (f"{batch}/jobs", "batch", {"template": never}),
    ):
        answer = tenant.admin.create(path, {"metadata": {"name": name}, "spec": spec})
        assert answer.ok, answer
    make_pod(tenant, "bare", asking(**{"gpu-mib": 4096}))
    found = until(
        lambda: len(r := running(tenant.pods())) == 5 and r,
        lambda: f"five run: {json.dumps([p['status'] for p in tenant.pods()])}",
    )
    assert {p["metadata"]["name"].split("-")[0] for p in found} == {
        "web",
        "notebook",
        "batch",
        "bare",
    }
    for pod in found:
        assert pod["metadata"]["annotations"][devices_annotation(0)] != "void"
    for kind in ("statefulsets", "jobs"):
        name = {"statefulsets": "notebook", "jobs": "batch"}[kind]
        base = apps if kind == "statefulsets" else batch
        assert tenant.admin.send("DELETE", f"{base}/{kind}/{name}?propagationPolicy=Background").ok


@pytest.mark.usefixtures("policies")
def test_a_resource_quota_counts_what_is_bound_by_us(team: Team) -> None:
    """Behind the gate our units are taken out of the limits: no node has them."""
    tenant = team(quota=8)
    quota = {"hard": {"requests.gpu-scheduler.io/milligpu": "500"}}
    path = f"/api/v1/namespaces/{tenant.name}"
    body = {"metadata": {"name": "gpus"}, "spec": quota}
    assert tenant.admin.create(f"{path}/resourcequotas", body).ok
    made = asking(milligpu=500)
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    bound = {**made, "metadata": {**made["metadata"], "ownerReferences": [owner]}}
    until(
        lambda: tenant.admin.get(f"{path}/resourcequotas/gpus").body["status"].get("used"),
        "the quota is known",
    )

    def create(name: str, body: Json) -> str:
        named = {**body, "metadata": {**body["metadata"], "name": name}}
        return tenant.admin.create(f"{path}/pods?dryRun=All", named).message

    over = {**bound, "spec": asking(milligpu=600)["spec"]}
    assert create("fits", bound) == ""
    assert "exceeded quota" in create("over", over)
    gated = {**over, "metadata": made["metadata"]}
    assert create("gated", gated) == ""


def test_a_leader_killed_while_deployments_scale_promises_no_gpu_twice(
    site: Site, team: Team
) -> None:
    tenant, random = team(quota=8), Random(5)
    webs = [Web(tenant, f"web-{n}").create(2, gpu) for n, gpu in enumerate(("0.5", "0.3", "1"))]
    with PodWatch(site.running, tenant.name) as watch:
        for _ in range(KILLS):
            for web in webs:
                web.scale(random.randint(0, 8))
            time.sleep(random.uniform(0, 0.5))  # at another moment each time
            site.replica.kill()
            random.choice(webs).scale(random.randint(0, 8))
            site.restart()
        for web, replicas in zip(webs, LAST, strict=True):
            web.scale(replicas)
        for web, replicas in zip(webs, LAST, strict=True):
            wait_running(web, replicas)
    assert max(watch.peak.milli.values()) <= DEVICE_MILLI
    assert watch.peak.placements > len(webs)


def test_what_another_scheduler_was_asked_is_given_here(team: Team) -> None:
    tenant = team(quota=4)
    hami = made_ours(
        {}, {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000}, controlled=False, compat=Compat.HAMI
    )
    kai = made_ours(
        {"annotations": {"gpu-fraction": "0.5"}}, {}, controlled=False, compat=Compat.KAI
    )
    make_pod(tenant, "hami", hami)
    make_pod(tenant, "kai", kai)
    pods = until(lambda: len(r := running(tenant.pods())) == 2 and r, "both run")
    notes = {p["metadata"]["name"]: p["metadata"]["annotations"] for p in pods}
    assert notes["hami"][memory_mib_annotation(0)] == "3000"
    assert len(notes["hami"][devices_annotation(0)].split(",")) == 2
    (allocated,) = parse(notes["kai"][ALLOCATION]).devices
    assert allocated.milli == 500


def test_a_group_of_a_leader_and_workers_starts_together(team: Team) -> None:
    tenant = team(quota=4)
    prefix = "leaderworkerset.sigs.k8s.io"
    labels, notes = {f"{prefix}/group-key": "a1b2"}, {f"{prefix}/size": "2"}
    one = made_ours(
        {"labels": labels, "annotations": {**notes, "gpu-scheduler.io/gpu": "0.5"}},
        {},
        controlled=False,
    )
    make_pod(tenant, "leader", one)
    wait_told(tenant, "leader", "1 of 2")
    make_pod(tenant, "worker", one)
    until(lambda: len(running(tenant.pods())) == 2, "they run")
