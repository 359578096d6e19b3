"""Another tenant, which does what tenants do: a job every few seconds, and it wants it to run.

How long a job waits is counted from the API server's answer to it until its pod has a place. With
each comes a plain Job that asks for no GPU, of which nothing is ours: what its pod waits for a node
is what Kubernetes itself takes meanwhile, and so is a ConfigMap, whose write is timed. The tenant's
pods are ended here, a while after they have a node: kwok may not get to them for minutes among
those of the attacker, and the quota would be full of them.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.api.caller import Caller
from tests.api.tenant import GROUP, template
from tests.soak.checker import ANNOTATION
from tests.soak.site import Site
from tests.soak.watch import Watch

_SECONDS_BETWEEN_JOBS = 4.0
_RUNS_SECONDS = 3.0
_KEPT_SECONDS = 30  # of a job that has ended
_BATCH = "/apis/batch/v1"
_PLAIN = "plain-job"  # a label


@dataclass(slots=True)
class Wait:
    """One job's, in monotonic seconds; 0: not yet."""

    submitted: float
    has_pod: float = 0.0
    placed: float = 0.0

    def seconds(self, now: float) -> float:
        """How long it waited, or has waited until now."""
        return (self.placed or now) - self.submitted


def slowest(waits: Mapping[str, Wait], since: float, until: float) -> Wait | None:
    """Of those submitted between two times; None: there is none."""
    among = (w for w in list(waits.values()) if since <= w.submitted < until)
    return max(among, key=lambda wait: wait.seconds(until), default=None)


class Honest:
    """Submits, looks for the places, and ends what has run."""

    def __init__(self, site: Site, caller: Caller, namespace: str) -> None:
        """``caller``: the tenant itself."""
        self._site, self._caller, self._namespace = site, caller, namespace
        self.waits: dict[str, Wait] = {}
        """Of GPUJobs, by name."""
        self.plain: dict[str, Wait] = {}
        """Of plain Jobs, by name."""
        self.writes: list[tuple[float, float]] = []
        """Of ConfigMaps: when each ended, and how long it took."""
        self._number = 0
        self._to_end: dict[str, float] = {}  # by pod: when, in monotonic seconds
        self.watch = Watch(
            site, f"/api/v1/namespaces/{namespace}/pods", self._see, lambda meta: None
        )

    def submit(self) -> None:
        """One more job."""
        self._number += 1
        name = f"honest-{self._number}"
        began = time.monotonic()
        note = {"metadata": {"name": name}, "data": {"a": "b"}}
        self._caller.create(f"/api/v1/namespaces/{self._namespace}/configmaps", note)
        self.writes.append((time.monotonic(), time.monotonic() - began))
        self._plain_job(name)
        spec = {"gpu": 0.25, "ttlSecondsAfterFinished": _KEPT_SECONDS, "template": template()}
        body = {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUJob",
            "metadata": {"name": name},
            "spec": spec,
        }
        answer = self._caller.create(f"{GROUP}/namespaces/{self._namespace}/gpujobs", body)
        if answer.ok:
            self.waits.setdefault(name, Wait(0.0)).submitted = time.monotonic()
        self._site.must(answer, "the honest tenant's job")
        self._site.rest(_SECONDS_BETWEEN_JOBS)

    def end_what_ran(self) -> None:
        """Have pods succeed that have had a node for long enough."""
        now = time.monotonic()
        for name in [name for name, at in list(self._to_end.items()) if at <= now]:
            path = f"/api/v1/namespaces/{self._namespace}/pods/{name}/status"
            answer = self._site.admin.patch(path, {"status": {"phase": "Succeeded"}})
            self._site.must(answer, "the end of an honest pod")
            if answer.ok or answer.status == 404:
                del self._to_end[name]
        self._site.rest(0.5)

    def slowest_write(self, since: float, until: float) -> float:
        """Of the ConfigMaps written between two times."""
        return max((took for at, took in list(self.writes) if since <= at < until), default=0.0)

    def _plain_job(self, name: str) -> None:
        spec = template(restartPolicy="Never")
        spec["metadata"]["labels"] = {_PLAIN: name}
        body = {
            "metadata": {"name": f"plain-{name}"},
            "spec": {"ttlSecondsAfterFinished": _KEPT_SECONDS, "template": spec},
        }
        answer = self._caller.create(f"{_BATCH}/namespaces/{self._namespace}/jobs", body)
        if answer.ok:
            self.plain.setdefault(name, Wait(0.0)).submitted = time.monotonic()
        self._site.must(answer, "the honest tenant's plain Job")

    def _see(self, pod: Mapping[str, Any]) -> None:
        meta, now = pod["metadata"], time.monotonic()
        labels = meta.get("labels") or {}
        bound = "nodeName" in pod["spec"]
        if _PLAIN in labels:
            wait, placed = self.plain.setdefault(labels[_PLAIN], Wait(0.0)), bound
        else:
            wait = self.waits.setdefault(labels.get("gpu-scheduler.io/job", ""), Wait(0.0))
            placed = ANNOTATION in (meta.get("annotations") or {})
        wait.has_pod = wait.has_pod or now
        if placed:
            wait.placed = wait.placed or now
        if bound and pod.get("status", {}).get("phase") in ("Pending", "Running"):
            self._to_end.setdefault(meta["name"], now + _RUNS_SECONDS)
