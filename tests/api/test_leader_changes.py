"""Leaders end at any moment, beside a Job controller that stands still and goes on: ADR 0054.

Jobs of all kinds, more than there is room for, come and end. By everything that the API server has
stored: no pod with a place is deleted but by an eviction that says so, and no Job is narrower than
its pods with places; and in the end every job has succeeded. ``CHANGES`` says how often another
leads, ``GPUS`` and ``JOBS`` how large it is (``make leader-changes``).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

from tests.api import fake_nodes
from tests.api.caller import Caller
from tests.api.conftest import administrator
from tests.api.pod_watch import ended, placed
from tests.api.replica import Replica
from tests.api.replicas import Replicas
from tests.api.tenant import Json, Tenant, runs, template, until
from tests.api.watch import Watch
from tests.job_kinds import JOB_KINDS

from cluster import Running

CHANGES = int(os.environ.get("CHANGES", "20"))
GPUS = int(os.environ.get("GPUS", "8"))  # eight are there anyhow
JOBS = int(os.environ.get("JOBS", "24"))  # under way at a time
SEED = int(os.environ.get("SEED", "1"))
RUN_SECONDS = 3
MANAGER = "kube-controller-manager"

Change = tuple[int, str, Json]  # resourceVersion, what, the object


class Stored(Watch):
    """All that was stored of a collection."""

    def __init__(self, running: Running, path: str) -> None:
        super().__init__(running, path)
        self.changes: list[Change] = []

    def told(self, kind: str, obj: Json) -> None:
        self.changes.append((int(obj["metadata"]["resourceVersion"]), kind, obj))

    def more_than(self, count: int) -> bool:
        return len(self.changes) > count


def lost(changes: list[Change]) -> Iterator[str]:
    """What must not have happened, of changes to Jobs and their pods in the order of time."""
    pods: dict[str, Json] = {}
    for _, kind, obj in sorted(changes, key=lambda each: each[0]):
        uid = obj["metadata"]["uid"]
        if "completions" in obj["spec"]:
            held = [pod for pod in pods.values() if owner(pod) == uid and runs_on(pod)]
            spec = obj["spec"]
            over = spec.get("suspend") or obj["status"].get("conditions") or kind == "DELETED"
            if not over and spec["parallelism"] < len(held):
                yield f"{obj['metadata']['name']} is {spec['parallelism']} wide, and {names(held)}"
            continue
        before = pods.pop(uid, None)
        if kind != "DELETED":
            pods[uid] = obj
        going = kind == "DELETED" or "deletionTimestamp" in obj["metadata"]
        if going and before is not None and runs_on(before) and not announced(obj):
            yield f"{obj['metadata']['name']} was deleted at its place"


def owner(pod: Json) -> str:
    return str(pod["metadata"].get("ownerReferences", [{}])[0].get("uid"))


def names(pods: list[Json]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def runs_on(pod: Json) -> bool:
    """Whether a pod has a place, and stays."""
    return placed(pod) and not ended(pod) and "deletionTimestamp" not in pod["metadata"]


def announced(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(c["type"] == "DisruptionTarget" and c["status"] == "True" for c in conditions)


@contextmanager
def manager_goes_on(running: Running) -> Iterator[None]:
    """Whatever happens, the Job controller goes on afterwards."""
    try:
        yield
    finally:
        running.resume_process(MANAGER)


@contextmanager
def standing_still(leader: Replica) -> Iterator[None]:
    """A leader that does nothing meanwhile; not for as long as its Lease lives."""
    leader.pause()
    try:
        yield
    finally:
        leader.resume()


def leads(replicas: Replicas, admin: Caller) -> bool:
    """Whether another knows the cluster by now."""
    leader = replicas.leader(admin)
    return leader is not None and leader.synced()


class Load:
    """Jobs of all kinds, as many as should be under way."""

    def __init__(self, tenant: Tenant, random: Random) -> None:
        self.submitted: list[str] = []
        self._tenant, self._random = tenant, random

    def ended(self) -> set[str]:
        path = f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{self._tenant.name}/gpujobs"
        found: list[Json] = self._tenant.admin.get(path).body["items"]
        phases = {job["metadata"]["name"]: job.get("status", {}).get("phase") for job in found}
        assert "Failed" not in phases.values(), phases
        return {name for name, phase in phases.items() if phase == "Succeeded"}

    def refill(self) -> None:
        for _ in range(JOBS - len(self.submitted) + len(self.ended())):
            kind: dict[str, Any] = JOB_KINDS[self._random.randrange(len(JOB_KINDS))]
            name = f"job-{len(self.submitted)}"
            seconds = self._random.randint(1, RUN_SECONDS)
            self._tenant.submit(name, **kind, template=template(runs(seconds)))
            self.submitted.append(name)


def test_no_running_work_is_lost_when_leaders_change(control_plane: Running) -> None:
    admin, random = administrator(control_plane), Random(SEED)
    tenant = Tenant(admin).create(quota=GPUS)
    more = [fake_nodes.node(f"more-{n}", "NVIDIA-A100", 8) for n in range((GPUS - 8) // 8)]
    replicas = Replicas(control_plane)
    load = Load(tenant, random)
    pods = Stored(control_plane, f"/api/v1/namespaces/{tenant.name}/pods")
    jobs = Stored(control_plane, f"/apis/batch/v1/namespaces/{tenant.name}/jobs")
    with fake_nodes.with_nodes(admin, *more), manager_goes_on(control_plane):
        try:
            with pods, jobs:
                for _ in range(CHANGES):
                    load.refill()
                    until(partial(pods.more_than, len(pods.changes)), "something happens to pods")
                    if random.random() < 0.5:
                        control_plane.pause_process(MANAGER)
                    end = random.choice((replicas.kill_leader, replicas.stop_leader))
                    end(admin)
                    if random.random() < 0.7:  # else it goes on while nobody leads
                        until(partial(leads, replicas, admin), "another leads")
                    control_plane.resume_process(MANAGER)
                until(
                    lambda: replicas.leader(admin) and load.ended() == set(load.submitted),
                    lambda: f"every job ends; {set(load.submitted) - load.ended()}",
                    600,
                )
            found = list(lost(pods.changes + jobs.changes))
            assert not found, found
            tenant.delete()
        finally:
            replicas.end()


def test_the_next_leader_gives_no_place_to_a_pod_that_its_job_has_too_many(
    control_plane: Running,
) -> None:
    admin = administrator(control_plane)
    tenant, replicas = Tenant(admin).create(quota=1, limit=1), Replicas(control_plane)
    with manager_goes_on(control_plane):
        try:
            until(lambda: replicas.leader(admin), "somebody leads")
            tenant.submit("first", gpu=1, parallelism=1, completions=2)
            tenant.wait_placed("first")
            tenant.submit("urgent", gpu=1, priority=90)
            tenant.wait_reason("urgent", "WaitingForQuota")
            tenant.let_end("first")
            tenant.wait_placed("urgent")
            # Who has waited for some seconds is narrowed away by the leader.
            with standing_still(until(lambda: replicas.leader(admin), "somebody leads")):
                until(lambda: waiting(tenant, "first"), "its next pod is there")
                control_plane.pause_process(MANAGER)
            until(lambda: tenant.batch_job("first")["spec"]["parallelism"] == 0, "it is narrowed")
            replicas.kill_leader(admin)
            until(partial(leads, replicas, admin), "another leads")
            tenant.let_end("urgent")
            tenant.submit("last", gpu=1)  # of the two it is the later, and has no pod yet
            until(lambda: len(standing(tenant)) == 1, "the GPU is given to one of them")
            assert standing(tenant) == ["last"]
            control_plane.resume_process(MANAGER)
            tenant.finish("last")
            tenant.finish("first")
            tenant.delete()
        finally:
            replicas.end()


def waiting(tenant: Tenant, job: str) -> list[Json]:
    """Pods of a job that have no place and have not ended."""
    return [pod for pod in tenant.pods(job) if not placed(pod) and not ended(pod)]


def standing(tenant: Tenant) -> list[str]:
    """Jobs of these two that have a place: a pod of them has it, or their Job is to make one."""
    first = [pod for pod in tenant.pods("first") if runs_on(pod)]
    return (["first"] if first else []) + (["last"] if "spec" in tenant.batch_job("last") else [])
