"""Every pod of a cluster at every instant of the watch, and what its devices held then.

The watch delivers changes in the order in which they were stored, so a device that was above its
capacity at any instant is seen; the end state is not enough.
"""

import json
import ssl
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cluster import Running
from gpu_scheduler.api.allocation import parse
from gpu_scheduler.api.names import ALLOCATION

Pods = dict[str, dict[str, Any]]


def ended(pod: dict[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def placed(pod: dict[str, Any]) -> bool:
    return ALLOCATION in pod["metadata"].get("annotations", {}) and not ended(pod)


@dataclass(slots=True)
class Peak:
    """The most that was ever held at one instant."""

    milli: Counter[tuple[str, str]] = field(default_factory=Counter)  # per (node, device)
    mib: Counter[tuple[str, str]] = field(default_factory=Counter)
    pods: int = 0
    gpu_milli: int = 0
    placements: int = 0  # pods that were ever seen placed


class PodWatch:
    """Follows the pods of a namespace ('' = all) in a thread; use as a context manager."""

    def __init__(
        self,
        running: Running,
        namespace: str = "",
        check: Callable[[Pods], None] = lambda pods: None,
    ) -> None:
        self.peak = Peak()
        self.pods: Pods = {}
        self.error: BaseException | None = None
        self._placed: set[str] = set()
        self._running, self._check = running, check
        where = f"/namespaces/{namespace}" if namespace else ""
        self._path = f"/api/v1{where}/pods"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "PodWatch":
        self._version = self._list()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def _open(self, query: str) -> Any:
        tls = ssl.create_default_context(cafile=str(self._running.ca_file))
        request = urllib.request.Request(
            f"{self._running.server}{self._path}{query}",
            headers={"Authorization": f"Bearer {self._running.token()}"},
        )
        return urllib.request.urlopen(request, context=tls, timeout=60)

    def _list(self) -> str:
        with self._open("") as answer:
            found = json.load(answer)
        for pod in found["items"]:
            self.pods[pod["metadata"]["uid"]] = pod
        self._measure()
        return str(found["metadata"]["resourceVersion"])

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                query = "?watch=1&allowWatchBookmarks=1&timeoutSeconds=1"
                query += f"&resourceVersion={self._version}"
                with self._open(query) as answer:
                    for line in answer:
                        self._event(json.loads(line))
        except BaseException as error:
            self.error = error

    def _event(self, event: dict[str, Any]) -> None:
        pod = event["object"]
        assert event["type"] != "ERROR", pod
        self._version = pod["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return
        if event["type"] == "DELETED":
            self.pods.pop(pod["metadata"]["uid"], None)
        else:
            self.pods[pod["metadata"]["uid"]] = pod
        if event["type"] != "DELETED" and ALLOCATION in pod["metadata"].get("annotations", {}):
            self._placed.add(pod["metadata"]["uid"])
            self.peak.placements = len(self._placed)
        self._measure()
        self._check(self.pods)

    def _measure(self) -> None:
        milli: Counter[tuple[str, str]] = Counter()
        mib: Counter[tuple[str, str]] = Counter()
        count = 0
        for pod in self.pods.values():
            if not placed(pod):
                continue
            count += 1
            allocation = parse(pod["metadata"]["annotations"][ALLOCATION])
            for grant in allocation.grants:
                milli[allocation.node, grant.device] += grant.milli
                mib[allocation.node, grant.device] += grant.mib
        self.peak.milli |= milli
        self.peak.mib |= mib
        self.peak.pods = max(self.peak.pods, count)
        self.peak.gpu_milli = max(self.peak.gpu_milli, milli.total())
