"""A thousand generated objects on a real API server, two replicas, and kills of the leader.

The objects are those of the unit tier's histories, as far as the API server takes them; the seed is
printed and decides all of them. Healthy jobs come in between. At the end all of these are done,
leaders ended by the kills alone, nothing unexpected stands in a log, and no device was ever above
its capacity.
"""

import logging
import os
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.api.caller import Caller
from tests.api.conftest import administrator, own_cluster
from tests.api.fake_nodes import add, node
from tests.api.pod_watch import PodWatch
from tests.api.replica import LEASE, STANDBY, Replica
from tests.api.tenant import Tenant, runs, template, until
from tests.unit.generated.histories import Step, hostile_steps
from tests.unit.generated.values import Obj

from cluster import Running
from gpu_scheduler.core.model.units import DEVICE_MILLI

log = logging.getLogger(__name__)

SEED = int(os.environ.get("HISTORIES_SEED") or os.environ.get("EXPLORE_SEED") or "1")
OBJECTS, KILLS, HEALTHY = 1000, 6, 20
MOST_KINDS = 40  # objects of one name, so that not all are changes of the same


@pytest.fixture
def running() -> Iterator[Running]:
    with own_cluster("generated") as made:
        yield made


class Pair:
    """Two replicas. One that ends without being killed fails the test."""

    def __init__(self, running: Running) -> None:
        self._running, self._count, self._kills = running, 0, 0
        self.all: list[Replica] = []
        self._now = [self._start(), self._start()]

    def _start(self) -> Replica:
        self._count += 1
        replica = Replica(self._running, f"replica-{self._count}", STANDBY).start()
        self.all.append(replica)
        return replica

    def check(self) -> None:
        for replica in self._now:
            assert replica.alive(), f"{replica.name} ended by itself:\n{replica.told()[-3000:]}"

    def leader(self, admin: Caller) -> Replica | None:
        holder = admin.get(LEASE).body.get("spec", {}).get("holderIdentity", "")
        return next((r for r in self._now if holder.startswith(f"{r.name}_") and r.synced()), None)

    def kill_leader(self, admin: Caller) -> None:
        self.check()
        victim = until(lambda: self.leader(admin), "somebody leads")
        victim.kill()
        self._kills += 1
        if self._kills == 1:  # its successor takes over once the Lease has run out
            victim.forget(in_seconds=3)
        else:
            victim.forget()
        self._now = [r for r in self._now if r is not victim] + [self._start()]

    def end(self) -> None:
        for replica in self._now:
            if replica.alive():
                replica.kill()


def test_a_thousand_generated_objects_and_kills_harm_no_healthy_job(running: Running) -> None:
    log.warning("HISTORIES_SEED=%d", SEED)
    dice = random.Random(SEED)
    admin = administrator(running)
    tenant = Tenant(admin).create(quota=8)
    Tenant(admin, "team-bad").create()
    add(admin, node("bad-0", "NVIDIA-A100-PCIE-40GB", 2))
    submitted: list[str] = []
    answers: Counter[str] = Counter()
    pair = Pair(running)
    objects = generated()
    kills = set(dice.sample(range(100, OBJECTS), KILLS))
    try:
        until(lambda: pair.leader(admin), "somebody leads")
        with PodWatch(running, tenant.name) as watch:
            for number, step in enumerate(objects):
                if number % (OBJECTS // HEALTHY) == 0:
                    name = f"job-{number}"
                    gpu = dice.choice([0.25, 0.5, 1])
                    pods = dice.randint(1, 3)
                    made = template(runs(2))
                    tenant.submit(name, gpu=gpu, parallelism=pods, retries=0, template=made)
                    submitted.append(name)
                answers[apply(admin, step, number)] += 1
                pair.check()
                if number in kills:
                    pair.kill_leader(admin)
            log.warning("%d objects: %s", len(objects), dict(answers))
            until(lambda: pair.leader(admin), "somebody leads")
            for name in submitted:
                tenant.wait_phase(name, "Succeeded")
        pair.check()
        assert max(watch.peak.milli.values()) <= DEVICE_MILLI
        for name in submitted:
            assert tenant.batch_job(name)["status"].get("failed", 0) == 0, name
        for replica in pair.all:
            told = replica.log.read_text()
            assert "unexpected" not in told, _around(told, "unexpected")
            assert "Traceback" not in told, _around(told, "Traceback")
    finally:
        pair.end()


def generated() -> list[Step]:
    """The objects, in order; the seed decides them."""
    found: list[Step] = []

    @seed(SEED)
    @settings(
        max_examples=OBJECTS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(hostile_steps())
    def collect(step: Step) -> None:
        found.append(step)

    collect()
    return found


def apply(admin: Caller, step: Step, number: int) -> str:
    """Store an object, or change or delete the one of its name; what came of it, in a word."""
    assert step.obj is not None
    body = acceptable(step.obj, step.path)
    name = body["metadata"]["name"]
    if name not in ("bad-0", "nowhere") and "/leases/" not in step.path:
        name = f"{name}-{number % MOST_KINDS}"
    body["metadata"]["name"] = name
    collection = step.path.rsplit("/", 1)[0]
    path = f"{collection}/{name}"
    if step.what == "remove":
        if "/nodes/" in path:
            return "kept"
        return "removed" if admin.send("DELETE", path).ok else "absent"
    answer = admin.create(collection, body)
    if answer.status == 409:
        answer = admin.patch(path, {key: body[key] for key in body.keys() - {"apiVersion", "kind"}})
    status = body.get("status")
    if answer.ok and status:
        admin.patch(f"{path}/status", {"status": status})
    return "accepted" if answer.ok else f"refused {answer.status}"


def acceptable(obj: Obj, path: str) -> Obj:
    """The object as a client sends it: without what the server sets, with what it demands."""
    server_sets = {"uid", "resourceVersion", "creationTimestamp", "generation"}
    meta = {k: v for k, v in obj["metadata"].items() if k not in server_sets}
    body: dict[str, Any] = {**obj, "metadata": meta}
    spec: Any = body.get("spec")
    if "/pods/" in path:
        spec = {k: v for k, v in spec.items() if k not in ("overhead", "initContainers")}
        body["spec"] = {**spec, "terminationGracePeriodSeconds": 0}
    if "/jobs/" in path:
        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example/x:1"}]}
        body["spec"] = {**spec, "completionMode": "Indexed", "template": {"spec": pod}}
    if "/nodes/" in path:
        meta["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    return body


def _around(text: str, word: str) -> str:
    at = text.index(word)
    return text[max(0, at - 500) : at + 2500]
