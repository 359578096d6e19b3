"""Every pod of a cluster at every instant of the watch, and what its devices held then.

The watch delivers changes in the order in which they were stored, so a device that was above its
capacity at any instant is seen; the end state is not enough.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.api.watch import Watch

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


class PodWatch(Watch):
    """Follows the pods of a namespace ('' = all) in a thread; use as a context manager."""

    def __init__(
        self,
        running: Running,
        namespace: str = "",
        check: Callable[[Pods], None] = lambda pods: None,
    ) -> None:
        super().__init__(running, f"/api/v1{f'/namespaces/{namespace}' if namespace else ''}/pods")
        self.peak = Peak()
        self.pods: Pods = {}
        self._placed: set[str] = set()
        self._check = check

    def listed(self, items: list[dict[str, Any]]) -> None:
        self.pods |= {pod["metadata"]["uid"]: pod for pod in items}
        self._measure()

    def told(self, kind: str, obj: dict[str, Any]) -> None:
        uid = obj["metadata"]["uid"]
        if kind == "DELETED":
            self.pods.pop(uid, None)
        else:
            self.pods[uid] = obj
            if ALLOCATION in obj["metadata"].get("annotations", {}):
                self._placed.add(uid)
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
            for allocated in allocation.devices:
                milli[allocation.node, allocated.device] += allocated.fraction_milli
                mib[allocation.node, allocated.device] += allocated.mib
        self.peak.milli |= milli
        self.peak.mib |= mib
        self.peak.pods = max(self.peak.pods, count)
        self.peak.gpu_milli = max(self.peak.gpu_milli, milli.total())
