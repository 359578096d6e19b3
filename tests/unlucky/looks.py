"""One look at each job, as its owner has it: what kubectl says, and whether that is right.

Namespaces are made for what is wrong with them; jobs go in wave by wave, so that those that hold
a place until they are deleted leave room for the others.
"""

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from subprocess import CompletedProcess

from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import container, template, wait_running
from tests.e2e.waits import LIMIT_SECONDS, NodeTenant, until
from tests.unlucky.families import (
    FULL,
    LIMIT,
    NO_PODS,
    ORPHAN,
    PLAIN,
    POOR,
    RICH,
    SMALL,
    STRICT,
    Unlucky,
)

from cluster import ClusterError, Running

WAVE = 50
_AT_ONCE = 4  # of kubectl apply
EVENT_SECONDS = 60.0

_PROJECTS: dict[str, dict[str, float]] = {
    PLAIN: {"quota": 2},
    RICH: {"quota": 100},
    POOR: {"quota": LIMIT, "limit": LIMIT},
    FULL: {"quota": LIMIT, "limit": LIMIT},
    ORPHAN: {},
    NO_PODS: {"quota": 1},
    SMALL: {"quota": 1},
    STRICT: {"quota": 1},
}


@dataclass(frozen=True)
class Look:
    """What a user saw, and what was wrong with it.

    Attributes:
        family: What is wrong with the job.
        seconds: From ``kubectl apply`` until it read right.
        row: Of ``kubectl get gj``, or what ``kubectl apply`` said.
        message: ``status.message``.
        problem: Why it does not read right; empty: it does.
    """

    family: str
    seconds: float
    row: str
    message: str
    problem: str


@contextmanager
def places(admin: Caller) -> Iterator[dict[str, Tenant]]:
    """Namespaces by kind; see ``families``."""
    with ExitStack() as stack:
        made: dict[str, Tenant] = {}
        for kind, project in _PROJECTS.items():
            made[kind] = tenant = NodeTenant(admin).create(**project)
            stack.callback(tenant.delete)
        _rule(made[NO_PODS], "resourcequotas", {"name": "none"}, {"hard": {"pods": "0"}})
        limits = [{"type": "Container", "max": {"memory": "2Gi"}}]
        _rule(made[SMALL], "limitranges", {"name": "small"}, {"limits": limits})
        labels = {"pod-security.kubernetes.io/enforce": "baseline"}
        path = f"/api/v1/namespaces/{made[STRICT].name}"
        assert admin.patch(path, {"metadata": {"labels": labels}}).ok
        made[FULL].submit("first", gpu=LIMIT, template=template(container()))
        wait_running(made[FULL], "first")
        yield made


def _rule(tenant: Tenant, plural: str, meta: Json, spec: Json) -> None:
    path = f"/api/v1/namespaces/{tenant.name}/{plural}"
    assert tenant.admin.create(path, {"metadata": meta, "spec": spec}).ok
    if plural == "resourcequotas":
        until(lambda: tenant.admin.get(f"{path}/{meta['name']}").body.get("status"), "it counts")


def look_at(
    running: Running, tenants: dict[str, Tenant], jobs: Sequence[tuple[str, str, Unlucky]]
) -> Iterator[Look]:
    """Submit all jobs, in waves, and look at each when it reads right, or when time is up."""
    for first in range(0, len(jobs), WAVE):
        yield from _wave(running, tenants, jobs[first : first + WAVE])


def _wave(
    running: Running, tenants: dict[str, Tenant], jobs: Sequence[tuple[str, str, Unlucky]]
) -> Iterator[Look]:
    since: dict[str, float] = {}

    def apply(name: str, job: Unlucky) -> tuple[float, float, CompletedProcess[str]]:
        body = {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUJob",
            "metadata": {"name": name, "namespace": tenants[job.place].name},
            "spec": job.spec,
        }
        started = time.monotonic()
        done = running.kubectl("apply", "-f", "-", input=json.dumps(body), check=False)
        return started, time.monotonic() - started, done

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        applied = list(threads.map(lambda each: apply(*each[1:]), jobs))
    for (family, name, job), (started, took, done) in zip(jobs, applied, strict=True):
        if done.returncode == 0 and job.reason:
            since[name] = started
            continue
        said = (done.stderr or done.stdout).strip().replace(str(running.folder), "")
        missing = [word for word in job.words if word not in said]
        problem = f"kubectl apply: {missing} not said" if missing else ""
        if done.returncode == 0:
            problem = "kubectl apply took it"
        elif job.reason:
            problem = "kubectl apply refused it"
        yield Look(family, took, said, "", problem)
    waiting = {name: (family, job) for family, name, job in jobs if name in since}
    deadline = time.monotonic() + LIMIT_SECONDS  # which no job comes near, unless it reads wrong
    while waiting:
        over = time.monotonic() > deadline
        for name, (family, job) in list(waiting.items()):
            status = tenants[job.place].status(name)
            if over or _as_expected(job, status):
                del waiting[name]
                yield _seen(running, tenants[job.place], family, name, job, since[name])
        time.sleep(0.2)
    for _, name, job in jobs:
        if name in since:
            tenants[job.place].remove(name)
    for tenant in {id(t): t for t in tenants.values()}.values():
        others = lambda t=tenant: [  # noqa: E731
            p for p in t.pods() if p["metadata"]["labels"].get("gpu-scheduler.io/job") != "first"
        ]
        until(lambda others=others: not others(), "the wave has gone")  # type: ignore[misc]


def _as_expected(job: Unlucky, status: Json) -> bool:
    return (status.get("phase"), status.get("reason")) == (job.phase, job.reason)


def _seen(
    running: Running, tenant: Tenant, family: str, name: str, job: Unlucky, since: float
) -> Look:
    where = name, "-n", tenant.name
    seconds = time.monotonic() - since
    deadline = time.monotonic() + EVENT_SECONDS  # it comes by another way than the status
    while True:
        row, told = (
            _kubectl(running, "get", "gj", *where),
            _kubectl(running, "describe", "gj", *where),
        )
        wanted = [*job.words, *([] if job.event is None else [job.event or job.reason])]
        missing = [word for word in wanted if word not in told]
        problem = f"kubectl describe: {missing} not said" if missing else ""
        line = row.strip().splitlines()[-1] if row.strip() else ""
        if not {job.phase, job.reason} <= set(line.split()):  # some states come and go
            problem = f"kubectl get: {job.phase} and {job.reason} wanted; {problem}"
        if not problem or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    message = str(tenant.status(name).get("message", ""))
    return Look(family, seconds, line, message, problem)


def _kubectl(running: Running, *args: str) -> str:
    try:
        return running.kubectl(*args).stdout
    except ClusterError as error:
        return str(error)
