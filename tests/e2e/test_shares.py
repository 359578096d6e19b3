"""Pods of others with a share of a GPU, in real containers: a label, and nothing else."""

import json
import math
from collections.abc import Iterator

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant, until
from tests.e2e.cuda_jobs import GREEDY, OUT_OF_MEMORY, PYTHON, WATCHER, printed, python
from tests.e2e.gpu_jobs import USABLE_MIB, devices_there, environment

from cluster import Running
from gpu_scheduler.api.allocation import parse
from gpu_scheduler.api.names import ALLOCATION

QUARTER = math.floor(0.25 * USABLE_MIB)


@pytest.fixture(scope="module")
def owner(operated: Running) -> Iterator[Tenant]:
    admin = Caller(operated.server, operated.ca_file, operated.token())
    made = Tenant(admin).create(quota=1, limit=1)
    yield made
    made.delete()


class Server:
    """A Deployment of a program that holds a GPU; its pods ask by a label."""

    def __init__(self, owner: Tenant, name: str) -> None:
        self.owner, self.name = owner, name
        self._all = f"/apis/apps/v1/namespaces/{owner.name}/deployments"

    def create(self, replicas: int, gpu: str, **strategy: int) -> "Server":
        template = python(WATCHER)
        template["metadata"] = {"labels": {"app": self.name, "gpu-scheduler.io/gpu": gpu}}
        spec: Json = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": self.name}},
            "template": template,
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1, **strategy}},
        }
        answer = self.owner.admin.create(self._all, {"metadata": {"name": self.name}, "spec": spec})
        assert answer.ok, answer
        return self

    def change(self, **spec: object) -> None:
        assert self.owner.admin.patch(f"{self._all}/{self.name}", {"spec": spec}).ok

    def restart(self) -> None:
        """As ``kubectl rollout restart`` does."""
        note = {"kubectl.kubernetes.io/restartedAt": "now"}
        self.change(template={"metadata": {"annotations": note}})

    def pods(self) -> list[Json]:
        found = self.owner.pods()
        return [p for p in found if p["metadata"]["labels"].get("app") == self.name]

    def running(self) -> list[Json]:
        return [
            p
            for p in self.pods()
            if p["status"].get("phase") == "Running" and not p["metadata"].get("deletionTimestamp")
        ]

    def wait_running(self, count: int) -> list[Json]:
        return until(
            lambda: len(r := self.running()) == count and r,
            lambda: f"{count} run: {json.dumps([p['status'] for p in self.pods()])}",
            120,
        )

    def waiting(self) -> list[Json]:
        return [p for p in self.pods() if ALLOCATION not in p["metadata"].get("annotations", {})]


def described(cluster: Running, pod: Json) -> str:
    """What ``kubectl describe pod`` says."""
    meta = pod["metadata"]
    where = ("describe", "pod", "-n", meta["namespace"], meta["name"])
    return cluster.kubectl(*where, check=False).stdout


def test_four_quarters_on_one_device_each_with_its_own_cap(
    operated: Running, owner: Tenant
) -> None:
    server = Server(owner, "web").create(4, "0.25")
    pods = server.wait_running(4)
    devices = {
        grant.device
        for pod in pods
        for grant in parse(pod["metadata"]["annotations"][ALLOCATION]).grants
    }
    assert len(devices) == 1
    for pod in pods:
        assert devices_there(operated, pod) == (devices, devices)
        assert environment(operated, pod)["GPU_MEMORY_LIMIT_MIB"] == str(QUARTER)
    told = until(lambda: printed(operated, pods[0]), "it has looked at its GPU", 60)
    assert told[0]["totalMiB"] == QUARTER, "the library says so inside"
    meta = pods[0]["metadata"]
    where = ("exec", "-n", meta["namespace"], meta["name"], "-c", "main", "--")
    done = operated.kubectl(*where, "env", "-i", PYTHON, "-c", GREEDY, check=False)
    assert json.loads(done.stdout.splitlines()[-1])["code"] == OUT_OF_MEMORY

    server.change(replicas=5)
    (fifth,) = until(server.waiting, "there is a fifth pod")
    until(
        lambda: "WaitingForQuota" in described(operated, fifth),
        lambda: f"kubectl describe says why it waits: {described(operated, fifth)}",
    )
    assert "uses 1 of" in described(operated, fifth) or "limit" in described(operated, fifth)
    owner.set_project(quota=2, limit=2)
    server.wait_running(5)

    owner.set_project(quota=1.25, limit=1.25)
    before = {p["metadata"]["uid"] for p in server.running()}
    server.restart()
    until(
        lambda: (
            len(r := server.running()) == 5
            and not before & {p["metadata"]["uid"] for p in r}
            and len(server.pods()) == 5
        ),
        lambda: f"all were replaced, though nothing was free: {json.dumps(server.pods())}",
        180,
    )
    server.change(replicas=0)
    until(lambda: not server.pods(), "scaled to zero", 60)
    until(lambda: owner.project_status().get("allocatedGPU") == "0", "and nothing is held")


def test_a_surge_says_what_it_waits_for(operated: Running, owner: Tenant) -> None:
    owner.set_project(quota=1, limit=1)
    server = Server(owner, "surge").create(1, "1", maxSurge=1, maxUnavailable=0)
    server.wait_running(1)
    server.restart()
    (new,) = until(server.waiting, "there is a second pod", 60)
    until(lambda: "WaitingForQuota" in described(operated, new), "it says so", 60)
    assert len(server.running()) == 1, "the old one goes on"
    server.change(replicas=0)
    until(lambda: not server.pods(), "they are gone", 60)
