"""Another tenant, which does what tenants do: pods and jobs every few seconds, which are to run.

A pod that asks for a share by itself waits for us from the API server's answer until it has a
place. Of a GPUJob, ours is what it waits for its Job, and its pod for a place; in between
Kubernetes' Job controller makes the pod, for the attacker's Jobs too. An API server under attack
tells its watches of pods late, ours as kube-scheduler's: what that costs anybody shows a pod
without a GPU, of which nothing is ours, until it has a node. So does the write of a ConfigMap. The
tenant's pods are ended here, a while after they have a node: kwok may not get to them for minutes
among those of the attacker, and the quota would be full of them.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.api.caller import Caller
from tests.api.tenant import GROUP, Json, template
from tests.soak.checker import ANNOTATION
from tests.soak.site import Site
from tests.soak.watch import Watch

from gpu_scheduler.api.names import API_VERSION

_SECONDS_BETWEEN_JOBS = 4.0
_RUNS_SECONDS = 3.0
_KEPT_SECONDS = 30  # of a job that has ended
_CORE = "/api/v1/namespaces"
_BATCH = "/apis/batch/v1/namespaces"
_PLAIN = "plain-"  # names of pods without a GPU


@dataclass(slots=True)
class Wait:
    """One object's, in monotonic seconds; 0: not yet."""

    submitted: float
    has_job: float = 0.0
    has_pod: float = 0.0
    placed: float = 0.0

    def seconds(self, now: float) -> float:
        """How long it waited, or has waited until now."""
        return (self.placed or now) - self.submitted

    def ours(self, now: float) -> float:
        """Of a GPUJob: without what the Job controller took to make its pod."""
        for_job = (self.has_job or now) - self.submitted
        return for_job + ((self.placed or now) - self.has_pod if self.has_pod else 0.0)


Waits = dict[str, Wait]  # by name


def longest(
    waits: Waits, since: float, until: float, seconds: Callable[[Wait, float], float]
) -> float | None:
    """The most that one waited of those submitted between two times; None: there is none."""
    among = (w for w in list(waits.values()) if since <= w.submitted < until)
    return max((seconds(wait, until) for wait in among), default=None)


class Honest:
    """Submits, looks for the places, and ends what has run."""

    def __init__(self, site: Site, caller: Caller, namespace: str) -> None:
        """``caller``: the tenant itself."""
        self._site, self._caller, self._namespace = site, caller, namespace
        self.jobs: Waits = {}
        """GPUJobs."""
        self.pods: Waits = {}
        """Pods that ask by themselves."""
        self.plain: Waits = {}
        """Pods without a GPU."""
        self.writes: list[tuple[float, float]] = []
        """Of ConfigMaps: when each ended, and how long it took."""
        self._number = 0
        self._to_end: dict[str, float] = {}  # by pod: when, in monotonic seconds
        pods, jobs = f"{_CORE}/{namespace}/pods", f"{_BATCH}/{namespace}/jobs"
        self.watches = {
            "honest pods": Watch(site, pods, self._see_pod, lambda meta: None),
            "honest Jobs": Watch(site, jobs, self._see_job, lambda meta: None),
        }

    def submit(self) -> None:
        """One more of each."""
        self._number += 1
        name = f"honest-{self._number}"
        meta = {"name": name}
        began = time.monotonic()
        note = {"metadata": meta, "data": {"a": "b"}}
        self._caller.create(f"{_CORE}/{self._namespace}/configmaps", note)
        self.writes.append((time.monotonic(), time.monotonic() - began))

        pods = f"{_CORE}/{self._namespace}/pods"
        spec = template(restartPolicy="Never")["spec"]
        notes = {"gpu-scheduler.io/gpu": "0.25"}
        self._create(pods, {"metadata": {**meta, "annotations": notes}, "spec": spec}, self.pods)
        plain = {"name": f"{_PLAIN}{name}"}
        self._create(pods, {"metadata": plain, "spec": spec}, self.plain)

        spec = {"gpu": 0.25, "ttlSecondsAfterFinished": _KEPT_SECONDS, "template": template()}
        body = {"apiVersion": API_VERSION, "kind": "GPUJob", "metadata": meta, "spec": spec}
        self._create(f"{GROUP}/namespaces/{self._namespace}/gpujobs", body, self.jobs)
        self._site.rest(_SECONDS_BETWEEN_JOBS)

    def end_what_ran(self) -> None:
        """Have pods succeed that have had a node for long enough."""
        now = time.monotonic()
        for name in [name for name, at in list(self._to_end.items()) if at <= now]:
            path = f"{_CORE}/{self._namespace}/pods/{name}/status"
            answer = self._site.admin.patch(path, {"status": {"phase": "Succeeded"}})
            self._site.must(answer, "the end of an honest pod")
            if answer.ok or answer.status == 404:
                del self._to_end[name]
        self._site.rest(0.5)

    def slowest_write(self, since: float, until: float) -> float:
        """Of the ConfigMaps written between two times."""
        return max((took for at, took in list(self.writes) if since <= at < until), default=0.0)

    def _create(self, path: str, body: Json, waits: Waits) -> None:
        answer = self._caller.create(path, body)
        if answer.ok:
            wait = waits.setdefault(body["metadata"]["name"], Wait(0.0))
            wait.submitted = time.monotonic()
        self._site.must(answer, f"what the honest tenant submits at {path}")

    def _see_job(self, job: Mapping[str, Any]) -> None:
        if name := (job["metadata"].get("labels") or {}).get("gpu-scheduler.io/job"):
            wait = self.jobs.setdefault(name, Wait(0.0))
            wait.has_job = wait.has_job or time.monotonic()

    def _see_pod(self, pod: Mapping[str, Any]) -> None:
        meta, now = pod["metadata"], time.monotonic()
        labels = meta.get("labels") or {}
        bound = "nodeName" in pod["spec"]
        placed = ANNOTATION in (meta.get("annotations") or {})
        if meta["name"].startswith(_PLAIN):
            wait, placed = self.plain.setdefault(meta["name"], Wait(0.0)), bound
        elif (job := labels.get("gpu-scheduler.io/job")) is not None:
            wait = self.jobs.setdefault(job, Wait(0.0))
        else:
            wait = self.pods.setdefault(meta["name"], Wait(0.0))
        wait.has_pod = wait.has_pod or now
        if placed:
            wait.placed = wait.placed or now
        if bound and pod.get("status", {}).get("phase") in ("Pending", "Running"):
            self._to_end.setdefault(meta["name"], now + _RUNS_SECONDS)
