"""Following a GPUJob through its states on a cluster of fake nodes.

A walk writes down every status that it sees of one job; ``to`` waits for the next state and checks
its words. What was passed on the way is kept, so that a test can say which edges it has walked.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.api.tenant import GROUP, Json, Tenant, runs, template, until

from gpu_scheduler.api import states
from gpu_scheduler.api.states import Group

HOLD = "kwok.x-k8s.io/hold"
_ENDS = {"Succeeded": Group.SUCCEEDED, "Failed": Group.FAILED}


def held(seconds: int | None = None, **pod: object) -> Json:
    """A template whose pods do not start before ``release``."""
    notes = runs(seconds) if seconds is not None else {}
    return template(notes | {HOLD: "true"}, **pod)


def group_of(status: Json) -> Group:
    """The box of the picture in which a job is that says this."""
    if status["phase"] in _ENDS:
        return _ENDS[status["phase"]]
    found = states.of(status["reason"])
    assert found is not None or not status["reason"], status
    return found.group if found is not None else Group.RUNNING


@dataclass
class Walk:
    """One job's way. ``walked``: groups in the order in which ``to`` met them."""

    tenant: Tenant
    name: str
    seen: list[Json] = field(default_factory=list)
    walked: list[Group] = field(default_factory=list)
    _at: int = 0

    def to(self, reason: str, *parts: str, phase: str = "Pending") -> str:
        """Until the job says this for the first time since the last step; its message."""

        def found() -> Json | None:
            for number in range(self._at, len(self.seen)):
                status = self.seen[number]
                if (status["phase"], status["reason"]) == (phase, reason) and all(
                    part in status["message"] for part in parts
                ):
                    self._at = number
                    return status
            return None

        def way() -> str:
            words = [(s["phase"], s["reason"], s["message"]) for s in self.seen[self._at :]]
            return f"{self.name} says {phase} {reason} {parts}; it said {words}"

        status = until(found, way)
        self.walked.append(group_of(status))
        return str(status["message"])

    def edges(self) -> set[tuple[Group, Group]]:
        return set(zip(self.walked, self.walked[1:], strict=False))

    def pod(self) -> Json:
        """The pod that the job has now."""
        found: Json = until(
            lambda: next(
                (
                    pod
                    for pod in self.tenant.pods(self.name)
                    if not pod["metadata"].get("deletionTimestamp")
                    and pod["status"].get("phase") in ("Pending", "Running")
                ),
                None,
            ),
            f"{self.name} has a pod",
        )
        return found

    def patch_pod(self, body: Json, subresource: str = "") -> None:
        path = f"/api/v1/namespaces/{self.tenant.name}/pods/{self.pod()['metadata']['name']}"
        answer = self.tenant.admin.patch(path + subresource, body)
        assert answer.ok, answer

    def release(self) -> None:
        """Let the pod start."""
        self.patch_pod({"metadata": {"annotations": {HOLD: None}}})

    def waits_for(self, reason: str, message: str, image: str = "registry/x:1") -> None:
        """The kubelet says that the pod's container waits."""
        waiting = {"reason": reason, "message": message}
        status = {
            "name": "main",
            "image": image,
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"waiting": waiting},
        }
        self.patch_pod({"status": {"containerStatuses": [status]}}, "/status")

    def evict(self) -> None:
        """What `kubectl drain` asks for."""
        name = self.pod()["metadata"]["name"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.tenant.name},
        }
        path = f"/api/v1/namespaces/{self.tenant.name}/pods/{name}/eviction"
        answer = self.tenant.admin.create(path, body)
        assert answer.ok, answer

    def check(self) -> None:
        """Whatever the job said: who neither runs nor has ended gives a reason, in a sentence."""
        for status in self.seen:
            running = status["pods"]["running"] or status["phase"] in ("Running", *_ENDS)
            assert status["reason"] or running, status
            assert bool(status["reason"]) <= bool(status["message"]), status
        counts = [(s["pods"]["succeeded"], s["pods"]["failed"]) for s in self.seen]
        for before, after in zip(counts, counts[1:], strict=False):
            assert before[0] <= after[0] and before[1] <= after[1], counts

    def follow(self, since: str, stop: threading.Event) -> None:
        """Write down what is said after a version of the list of GPUJobs."""
        path = f"{GROUP}/namespaces/{self.tenant.name}/gpujobs"
        this = f"fieldSelector=metadata.name%3D{self.name}&timeoutSeconds=1"
        while not stop.is_set():
            for event in self.tenant.admin.watch(path, f"{this}&resourceVersion={since}"):
                assert event["type"] != "ERROR", event
                job = event["object"]
                since, status = job["metadata"]["resourceVersion"], job.get("status", {})
                if status.get("phase") and (not self.seen or self.seen[-1] != status):
                    self.seen.append(status)


@contextmanager
def walk(tenant: Tenant, name: str, **spec: object) -> Iterator[Walk]:
    """Submit a job and follow it; at the end all that it said is checked."""
    made, stop = Walk(tenant, name), threading.Event()
    before = tenant.admin.get(f"{GROUP}/namespaces/{tenant.name}/gpujobs").body["metadata"]
    follower = threading.Thread(target=made.follow, args=(before["resourceVersion"], stop))
    follower.start()
    try:
        tenant.submit(name, **spec)
        yield made
    finally:
        stop.set()
        follower.join()
    made.check()
