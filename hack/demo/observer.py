"""The cluster as the demo sees it: objects, and pods sampled while a job runs."""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cluster import ClusterError
from cluster.api_client import ApiClient
from demo import gpus
from demo.bars import Gpu
from demo.jobs import NAMESPACE

Json = dict[str, Any]
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS = f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{NAMESPACE}/gpujobs"
SAMPLE_SECONDS = 0.1


@dataclass(slots=True)
class Peaks:
    """The most that each job held in any sample."""

    pods: Counter[str] = field(default_factory=Counter)
    milli: Counter[str] = field(default_factory=Counter)
    samples: int = 0

    def take(self, pods: list[Json]) -> None:
        """One sample."""
        count: Counter[str] = Counter()
        milli: Counter[str] = Counter()
        for pod in filter(gpus.holds, pods):
            count[gpus.job_of(pod)] += 1
            milli[gpus.job_of(pod)] += gpus.milli(pod)
        self.pods |= count
        self.milli |= milli
        self.samples += 1


@dataclass(slots=True)
class Observer:
    """Reads lists and waits for what they show."""

    client: ApiClient
    peaks: Peaks = field(default_factory=Peaks)

    def items(self, path: str) -> list[Json]:
        """The objects of a list."""
        return [dict(item) for item in self.client.items(path)]

    def gpus(self) -> list[Gpu]:
        """Devices and holders."""
        gpu_nodes = self.items("/apis/gpu-scheduler.io/v1alpha1/gpunodes")
        return gpus.gpus(self.items("/api/v1/nodes"), gpu_nodes, self.items("/api/v1/pods"))

    def pods(self, job: str) -> list[Json]:
        """The pods of a job, oldest first."""
        found = [pod for pod in self.items(PODS) if gpus.job_of(pod) == job]
        return sorted(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def running(self, job: str) -> list[Json]:
        """Pods of a job whose containers run."""
        return [
            pod
            for pod in self.pods(job)
            if pod["status"].get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")
        ]

    def status(self, job: str) -> Json:
        """A GPUJob's status."""
        return dict(json.loads(self.client.request("GET", f"{JOBS}/{job}")[1]).get("status") or {})

    def until(self, condition: Callable[[], bool], what: str, *, seconds: float = 90) -> None:
        """Sample the pods until ``condition`` holds.

        Raises:
            ClusterError: the time is over.
        """
        deadline = time.monotonic() + seconds
        while True:
            self.peaks.take(self.items(PODS))
            if condition():
                return
            if time.monotonic() > deadline:
                raise ClusterError(f"not within {seconds:.0f} s: {what}\n{self._jobs()}")
            time.sleep(SAMPLE_SECONDS)

    def _jobs(self) -> str:
        lines = []
        for job in self.items(JOBS):
            status = job.get("status") or {"phase": "no status: does the operator run?"}
            words = (status.get(key, "") for key in ("phase", "reason", "message"))
            lines.append(" ".join(["  " + job["metadata"]["name"] + ":", *filter(None, words)]))
        return "\n".join(lines)
