"""Pods that ask for a share by themselves, on the real node: who makes them, and what they have."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant
from tests.e2e.cuda_jobs import GREEDY, OUT_OF_MEMORY, PYTHON, WATCHER, printed, python
from tests.e2e.gpu_jobs import USABLE_MIB, devices_there, environment
from tests.e2e.waits import NodeTenant, until

from cluster import Running
from gpu_scheduler.api.allocation import parse
from gpu_scheduler.api.names import ALLOCATION, ASK_GPU
from gpu_scheduler.core.model.decision import DeviceAllocation

STEP_MIB = 256  # of the greedy program
DEPLOYMENTS, STATEFUL_SETS = "apps/v1/deployments", "apps/v1/statefulsets"
DAEMON_SETS, CRON_JOBS = "apps/v1/daemonsets", "batch/v1/cronjobs"


@contextmanager
def team(cluster: Running, **project: Any) -> Iterator[Tenant]:
    """A namespace with a project; what makes pods there goes before they do."""
    admin = Caller(cluster.server, cluster.ca_file, cluster.token())
    made = NodeTenant(admin).create(**project)
    try:
        yield made
    finally:
        for kind in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, CRON_JOBS):
            answer = admin.send("DELETE", f"{_all(made, kind)}?propagationPolicy=Background")
            assert answer.ok, answer
        admin.send("DELETE", _pods(made))
        made.delete()


def _all(owner: Tenant, kind: str) -> str:
    group, _, plural = kind.rpartition("/")
    return f"/apis/{group}/namespaces/{owner.name}/{plural}"


def _pods(owner: Tenant) -> str:
    return f"/api/v1/namespaces/{owner.name}/pods"


def asking(gpu: str, template: Json | None = None) -> Json:
    """A pod template, of a program that holds some memory, with the label that asks."""
    made = dict(template or python(WATCHER))
    return made | {"metadata": {"labels": {ASK_GPU: gpu}}}


class Workload:
    """An object of the API server that makes pods; they are known by their label ``app``."""

    def __init__(self, owner: Tenant, name: str, kind: str = DEPLOYMENTS) -> None:
        self.owner, self.name = owner, name
        self._all = _all(owner, kind)

    def create(self, template: Json, **spec: Any) -> "Workload":
        """``spec``: beside selector and template."""
        chosen = {"selector": {"matchLabels": {"app": self.name}}}
        return self.make({**chosen, "template": self.labelled(template), **spec})

    def make(self, spec: Json) -> "Workload":
        """With a spec of its own; its template is ``labelled``."""
        answer = self.owner.admin.create(self._all, {"metadata": {"name": self.name}, "spec": spec})
        assert answer.ok, answer
        return self

    def labelled(self, template: Json) -> Json:
        """A pod template by whose pods the workload is known."""
        metadata = template.get("metadata", {})
        labels = {**metadata.get("labels", {}), "app": self.name}
        return {**template, "metadata": {**metadata, "labels": labels}}

    def change(self, **spec: object) -> None:
        answer = self.owner.admin.patch(f"{self._all}/{self.name}", {"spec": spec})
        assert answer.ok, answer

    def change_status(self, **status: object) -> None:
        answer = self.owner.admin.patch(f"{self._all}/{self.name}/status", {"status": status})
        assert answer.ok, answer

    def restart(self) -> None:
        """As ``kubectl rollout restart`` does."""
        note = {"kubectl.kubernetes.io/restartedAt": "now"}
        self.change(template={"metadata": {"annotations": note}})

    def delete(self) -> None:
        """With its pods, and until they are gone."""
        path = f"{self._all}/{self.name}?propagationPolicy=Background"
        assert self.owner.admin.send("DELETE", path).ok
        until(lambda: not self.pods(), f"the pods of {self.name} are gone")

    def pods(self) -> list[Json]:
        found = self.owner.pods()
        return [p for p in found if p["metadata"].get("labels", {}).get("app") == self.name]

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
        )

    def waiting(self) -> list[Json]:
        """Those without a place."""
        return [p for p in self.pods() if ALLOCATION not in p["metadata"].get("annotations", {})]


def serve(owner: Tenant, name: str, replicas: int, template: Json, **rolling: int) -> Workload:
    """A Deployment; ``rolling``: how it is updated, by itself without a surge."""
    strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1, **rolling}}
    return Workload(owner, name).create(template, replicas=replicas, strategy=strategy)


def make_pod(owner: Tenant, name: str, template: Json) -> None:
    """A pod that nobody would make again."""
    metadata = {**template.get("metadata", {}), "name": name}
    answer = owner.admin.create(_pods(owner), {**template, "metadata": metadata})
    assert answer.ok, answer


def pod_named(owner: Tenant, name: str) -> Json:
    """The pod; nothing where there is none."""
    return next((p for p in owner.pods() if p["metadata"]["name"] == name), {})


def wait_phase(owner: Tenant, name: str, phase: str) -> Json:
    """Until a pod is in this phase; the pod."""
    return until(
        lambda: (p := pod_named(owner, name)) and p["status"].get("phase") == phase and p,
        lambda: f"{name} is {phase}: {json.dumps(pod_named(owner, name))}",
    )


def delete_pod(owner: Tenant, name: str) -> None:
    """Tell it to go, if it is there."""
    owner.admin.send("DELETE", f"{_pods(owner)}/{name}")


def remove_pod(owner: Tenant, name: str) -> None:
    """Until it is gone, if it is not already."""
    delete_pod(owner, name)
    until(lambda: not pod_named(owner, name), f"{name} is gone")


def devices(pod: Json) -> tuple[DeviceAllocation, ...]:
    """What a pod holds."""
    return parse(pod["metadata"]["annotations"][ALLOCATION]).devices


def described(cluster: Running, pod: Json) -> str:
    """What ``kubectl describe pod`` says."""
    meta = pod["metadata"]
    where = ("describe", "pod", "-n", meta["namespace"], meta["name"])
    return cluster.kubectl(*where, check=False).stdout


def cap_mib(milli: int) -> int:
    """The cap of a share of one of the real node's GPUs."""
    return USABLE_MIB * milli // 1000


def assert_capped(
    cluster: Running, pod: Json, device: str, mib: int, *, container: str = "main"
) -> None:
    """A container has this device and no other, and its programs no more than that memory."""
    assert devices_there(cluster, pod, container=container) == ({device}, {device})
    inside = environment(cluster, pod, container=container)
    assert inside["GPU_MEMORY_LIMIT_MIB"] == str(mib)
    assert_out_of_memory(cluster, pod, mib, container=container)


def assert_out_of_memory(cluster: Running, pod: Json, mib: int, *, container: str = "main") -> None:
    """A program without any environment sees that much memory, and gets no more."""
    (own,) = [each for each in pod["spec"]["containers"] if each["name"] == container]
    if WATCHER in own.get("command", ()):
        until(lambda: printed(cluster, pod, container=container), "it has what it holds")
    meta = pod["metadata"]
    where = ("exec", "-n", meta["namespace"], meta["name"], "-c", container, "--")
    done = cluster.kubectl(*where, "env", "-i", PYTHON, "-c", GREEDY, check=False)
    before, after = (json.loads(line) for line in done.stdout.splitlines())
    assert before["totalMiB"] == mib, "the library says so inside"
    assert after["code"] == OUT_OF_MEMORY
    # What else runs in the container takes of the same cap.
    assert before["freeMiB"] - STEP_MIB <= after["gotMiB"] <= before["freeMiB"], (before, after)
