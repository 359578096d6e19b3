"""Another tenant, which does what tenants do: a job every few seconds, and it wants it to run.

How long a job waits is counted from the API server's answer to it until its pod has a place.
Meanwhile a write of a ConfigMap is timed, too: what the API server takes for anybody's.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.api.caller import Caller
from tests.api.tenant import GROUP, runs, template
from tests.soak.checker import ANNOTATION
from tests.soak.site import Site
from tests.soak.watch import Watch

_SECONDS_BETWEEN_JOBS = 4.0
_RUNS_SECONDS = 3
_KEPT_SECONDS = 30  # of a job that has ended


@dataclass(slots=True)
class Wait:
    """One job's, in monotonic seconds; 0: not yet."""

    submitted: float
    has_pod: float = 0.0
    placed: float = 0.0

    def seconds(self, now: float) -> float:
        """How long it waited, or has waited until now."""
        return (self.placed or now) - self.submitted


class Honest:
    """Submits, and looks for the places."""

    def __init__(self, site: Site, caller: Caller, namespace: str) -> None:
        """``caller``: the tenant itself."""
        self._site, self._caller, self._namespace = site, caller, namespace
        self.waits: dict[str, Wait] = {}
        self.writes: list[tuple[float, float]] = []
        """Of ConfigMaps: when each ended, and how long it took."""
        self._number = 0
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
        spec = {"gpu": 0.25, "ttlSecondsAfterFinished": _KEPT_SECONDS}
        body = {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUJob",
            "metadata": {"name": name},
            "spec": {**spec, "template": template(runs(_RUNS_SECONDS))},
        }
        answer = self._caller.create(f"{GROUP}/namespaces/{self._namespace}/gpujobs", body)
        if answer.ok:
            self.waits.setdefault(name, Wait(0.0)).submitted = time.monotonic()
        self._site.must(answer, "the honest tenant's job")
        self._site.rest(_SECONDS_BETWEEN_JOBS)

    def slowest(self, since: float, until: float) -> tuple[float | None, float]:
        """Of the jobs submitted between two times, how long the slowest waited, and for its pod.

        None: there was no job.
        """
        waits = [w for w in list(self.waits.values()) if since <= w.submitted < until]
        if not waits:
            return None, 0.0
        wait = max(waits, key=lambda w: w.seconds(until))
        return wait.seconds(until), (wait.has_pod or until) - wait.submitted

    def slowest_write(self, since: float, until: float) -> float:
        """Of the ConfigMaps written between two times."""
        return max((took for at, took in list(self.writes) if since <= at < until), default=0.0)

    def _see(self, pod: Mapping[str, Any]) -> None:
        meta = pod["metadata"]
        name = (meta.get("labels") or {}).get("gpu-scheduler.io/job", "")
        wait = self.waits.setdefault(name, Wait(0.0))
        wait.has_pod = wait.has_pod or time.monotonic()
        if ANNOTATION in (meta.get("annotations") or {}):
            wait.placed = wait.placed or time.monotonic()
