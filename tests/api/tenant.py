"""A namespace with a project of its own, and what a user does in it."""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.api.caller import Answer, Caller

from gpu_scheduler.api.allocation import Allocation, parse
from gpu_scheduler.api.names import ALLOCATION

GROUP = "/apis/gpu-scheduler.io/v1alpha1"
Json = dict[str, Any]
# Of a pod that runs on, on a fake node, when it has to go: until ``Tenant.let_go``.
STAYS = {"kwok.x-k8s.io/termination-seconds": "86400"}
GIVE_UP_SECONDS = 180  # what takes so long on a busy machine never comes true


def until(
    condition: Callable[[], Any], what: str | Callable[[], str], seconds: float = GIVE_UP_SECONDS
) -> Any:
    """The first true value of `condition`; fails with `what` and its last value.

    A field that an object does not have yet is no true value either: who waits looks often before
    anybody has written a status.
    """
    deadline = time.monotonic() + seconds
    pause = 0.04  # longer each time: who looks often takes the machine from what it waits for
    while True:
        try:
            value = condition()
        except (KeyError, IndexError) as missing:
            value, last = None, f"nothing at {missing!r}"
        else:
            last = repr(value)
        if value:
            return value
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {seconds} s: {text} (last: {last})")
        time.sleep(pause)
        pause = min(1.25 * pause, 0.25)


@dataclass(slots=True)
class Tenant:
    """Acts as an administrator in one namespace."""

    admin: Caller
    name: str = field(default_factory=lambda: f"t-{uuid.uuid4().hex[:8]}")

    def create(self, **project: Any) -> "Tenant":
        """Make the namespace and, unless `project` is empty, its GPUProject."""
        assert self.admin.create("/api/v1/namespaces", {"metadata": {"name": self.name}}).ok
        until(
            lambda: self.admin.get(f"/api/v1/namespaces/{self.name}/serviceaccounts/default").ok,
            "the namespace has a service account",
        )
        if project:
            answer = self.project(self.name, namespaces=[self.name], **project)
            assert answer.ok, answer
        return self

    def project(self, name: str, **spec: Any) -> Answer:
        body = {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUProject",
            "metadata": {"name": name},
            "spec": spec,
        }
        return self.admin.create(f"{GROUP}/gpuprojects", body)

    def set_project(self, **spec: Any) -> None:
        answer = self.admin.patch(f"{GROUP}/gpuprojects/{self.name}", {"spec": spec})
        assert answer.ok, answer

    def project_status(self) -> Json:
        return self.admin.get(f"{GROUP}/gpuprojects/{self.name}").body.get("status", {})

    def empty(self) -> None:
        """Remove all jobs and pods, also what a failed test left without an owner; wait for it."""
        self.admin.send("DELETE", f"{self._jobs}")
        self.admin.send("DELETE", f"/apis/apps/v1/namespaces/{self.name}/deployments")
        for path in (self._batch_jobs, self._pods):
            for each in (made["metadata"] for made in self.admin.get(path).body["items"]):
                if not any(owner.get("controller") for owner in each.get("ownerReferences", ())):
                    self.admin.send("DELETE", f"{path}/{each['name']}")
        while left := len(self.let_go()):  # thousands take their time
            until(lambda n=left: len(self.let_go()) < n, f"the last {left} pods of {self.name} go")

    def delete(self) -> None:
        """Remove everything; the pods are gone then, and whoever leads may not have heard of it."""
        self.empty()
        self.admin.send("DELETE", f"{GROUP}/gpuprojects/{self.name}")
        self.admin.send("DELETE", f"/api/v1/namespaces/{self.name}")

    def submit(self, name: str, **spec: Any) -> Answer:
        """Create a GPUJob; the image is a placeholder because fake nodes run nothing."""
        if "template" not in spec:
            spec.setdefault("image", "example/placeholder:1")
        body = {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUJob",
            "metadata": {"name": name, "namespace": self.name},
            "spec": spec,
        }
        answer = self.admin.create(self._jobs, body)
        assert answer.ok, answer
        return answer

    def patch(self, name: str, **spec: Any) -> Answer:
        return self.admin.patch(f"{self._jobs}/{name}", {"spec": spec})

    def label(self, name: str, **labels: str) -> Answer:
        """Put labels on a GPUJob."""
        return self.admin.patch(f"{self._jobs}/{name}", {"metadata": {"labels": labels}})

    def remove(self, name: str) -> None:
        """Delete a GPUJob."""
        answer = self.admin.send("DELETE", f"{self._jobs}/{name}")
        assert answer.ok, answer

    def job(self, name: str) -> Json:
        return self.admin.get(f"{self._jobs}/{name}").body

    def status(self, name: str) -> Json:
        job = self.job(name)
        return job.get("status", {}) if job["kind"] == "GPUJob" else {}  # else it is gone

    def batch_job(self, name: str) -> Json:
        return self.admin.get(f"{self._batch_jobs}/{name}").body

    def pods(self, job: str = "") -> list[Json]:
        query = f"?labelSelector=gpu-scheduler.io/job%3D{job}" if job else ""
        return list(self.admin.get(f"/api/v1/namespaces/{self.name}/pods{query}").body["items"])

    def events(self, job: str) -> list[Json]:
        found = self.admin.get(f"/api/v1/namespaces/{self.name}/events").body["items"]
        return [e for e in found if e["involvedObject"]["name"] == job]

    def wait_event(
        self, job: str, reason: str, seconds: float = GIVE_UP_SECONDS, words: str = ""
    ) -> Json:
        """Until the job has an Event of this reason that has these words; one of them.

        It is sent after what it tells of. Where several of one reason come, only words tell which.
        """

        def found() -> Json | None:
            events = (e for e in self.events(job) if e["reason"] == reason)
            return next((e for e in events if words in e["message"]), None)

        def missing() -> str:
            seen = [(e["reason"], e["message"]) for e in self.events(job)]
            return f"{job} has an Event {reason} with {words!r}; {seen}"

        return until(found, missing, seconds)

    def wait_reason(
        self, name: str, reason: str, seconds: float = GIVE_UP_SECONDS, *, says: str = ""
    ) -> str:
        """Until the job has this reason and its message has these words; its message."""
        status = until(
            lambda: (
                (s := self.status(name)).get("reason") == reason
                and says in s.get("message", "")
                and s
            ),
            lambda: f"{name} has reason {reason} {says!r}; status {json.dumps(self.status(name))}",
            seconds,
        )
        return str(status["message"])

    def wait_phase(self, name: str, phase: str, seconds: float = GIVE_UP_SECONDS) -> Json:
        return until(
            lambda: (s := self.status(name)).get("phase") == phase and s,
            lambda: f"{name} is {phase}; status {json.dumps(self.status(name))}",
            seconds,
        )

    def finish(self, job: str, seconds: float = GIVE_UP_SECONDS) -> Json:
        """Let the pods of a job end well that run for ever, also those that are yet to start.

        A test that has to see something of pods while they run does not guess how long that takes.
        """
        return until(
            lambda: self.let_end(job) and (s := self.status(job)).get("phase") == "Succeeded" and s,
            lambda: f"{job} has succeeded; status {json.dumps(self.status(job))}",
            seconds,
        )

    def let_end(self, job: str) -> bool:
        """Let those pods of a job end well, on fake nodes, that are there now; True."""
        for pod in self.pods(job):
            metadata = pod["metadata"]
            if not runs(0).items() <= metadata.get("annotations", {}).items():
                ends = {"metadata": {"annotations": runs(0)}}
                self.admin.patch(f"{self._pods}/{metadata['name']}", ends)
        return True

    def let_go(self, job: str = "") -> list[Json]:
        """Let those pods end, of a template with ``STAYS``, that have to go; all there are."""
        pods = self.pods(job)
        for pod in (each["metadata"] for each in pods):
            if "deletionTimestamp" in pod and STAYS.items() <= pod.get("annotations", {}).items():
                ends = {"metadata": {"annotations": dict.fromkeys(STAYS, "0")}}
                self.admin.patch(f"{self._pods}/{pod['name']}", ends)
        return pods

    def allocations(self, job: str) -> list[Allocation]:
        return [
            parse(p["metadata"]["annotations"][ALLOCATION])
            for p in self.pods(job)
            if ALLOCATION in p["metadata"].get("annotations", {})
        ]

    def wait_placed(
        self, job: str, pods: int = 1, seconds: float = GIVE_UP_SECONDS
    ) -> list[Allocation]:
        """Until so many pods of the job are placed; their allocations."""
        return until(
            lambda: len(a := self.allocations(job)) == pods and a,
            lambda: f"{job} has {pods} placed pods; status {json.dumps(self.status(job))}",
            seconds,
        )

    @property
    def _batch_jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.name}/jobs"

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    @property
    def _jobs(self) -> str:
        return f"{GROUP}/namespaces/{self.name}/gpujobs"


def held(tenant: Tenant) -> float:
    """GPUs that the project holds, as its status says."""
    return float(tenant.project_status().get("allocatedGPU", 0))


def template(annotations: dict[str, str] | None = None, **pod: Any) -> Json:
    """A pod template of one container; `annotations` tell the fake nodes how it fares."""
    spec = {"containers": [{"name": "main", "image": "example/placeholder:1"}], **pod}
    return {"metadata": {"annotations": annotations or {}}, "spec": spec}


def runs(seconds: int, **more: str) -> dict[str, str]:
    """Annotations of a pod that ends after a while on a fake node."""
    return {"kwok.x-k8s.io/run-seconds": str(seconds)} | {
        f"kwok.x-k8s.io/{key.replace('_', '-')}": value for key, value in more.items()
    }
