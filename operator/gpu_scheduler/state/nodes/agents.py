"""What the agents report of their nodes, and which of them have fallen silent.

A report about a pod counts only if it comes from the node that the pod is on, and only while that
node's agent is heard of: nobody is judged by old news or by another node's agent. What is known of
the devices stays, for a silent agent is no reason to trust a broken one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.state.nodes.devices import NodeDevice

if TYPE_CHECKING:
    from gpu_scheduler.state.pods.pod import PodRecord

# From the layer that holds best to none; a pod is as well off as its worst container.
_LAYERS = ("kernel", "interposer", "framework", "none", "unprotected")


@dataclass(frozen=True, slots=True)
class SeenContainer:
    """One GPU container as its agent saw it last.

    ``isolation``: what enforces its cap now. ``over_cap_since``: a time, or empty.
    ``compute_percent``: share of time with a kernel; None where it is not known.
    """

    container: int
    isolation: str
    over_cap_since: str = ""
    message: str = ""
    compute_percent: int | None = None


Reports = Mapping[PodUID, tuple[SeenContainer, ...]]


def reports_from_gpunode(status: Mapping[str, Any]) -> dict[PodUID, tuple[SeenContainer, ...]]:
    """Reports by pod, in the order of the containers; malformed ones are left out."""
    found: dict[PodUID, list[SeenContainer]] = {}
    for entry in status.get("containers") or ():
        try:
            report = SeenContainer(
                int(entry["container"]),
                str(entry["isolation"]),
                str(entry.get("overCapSince") or ""),
                str(entry.get("message") or ""),
                _percent(entry.get("computePercent")),
            )
            found.setdefault(PodUID(str(entry["uid"])), []).append(report)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return {
        uid: tuple(sorted(reports, key=lambda report: report.container))
        for uid, reports in found.items()
    }


def failed_isolation(status: Mapping[str, Any]) -> tuple[str, ...]:
    """Levels of isolation that did not hold in the node's self-test; what is no level is left out.

    An agent of an earlier version says nothing of it: then none is known to have failed.
    """
    told = status.get("failedIsolation")
    found = told if isinstance(told, list) else ()
    return tuple(level for level in _LAYERS if level in found)


def _percent(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= 100 else None


def worst(reports: Iterable[SeenContainer]) -> str:
    """The layer of the container that is worst off; empty without a report."""
    known = [r.isolation for r in reports if r.isolation in _LAYERS]
    return max(known, key=_LAYERS.index, default="")


def compute_percent(reports: Iterable[SeenContainer]) -> int | None:
    """The share of time of a pod: the sum over its containers; None where none is known."""
    known = [r.compute_percent for r in reports if r.compute_percent is not None]
    return min(100, sum(known)) if known else None


class AgentStore:
    """The agents' reports by node."""

    def __init__(self) -> None:
        """Start empty."""
        self.devices: dict[str, tuple[NodeDevice, ...]] = {}
        self.failed_isolation: dict[str, tuple[str, ...]] = {}  # of nodes where a level has failed
        self._reports: dict[str, Reports] = {}
        self._silent: dict[str, str] = {}
        self._alive: set[str] = set()
        self._sick: set[str] = set()  # nodes that have a device which is not healthy
        self._over: set[str] = set()  # nodes that have a container above its cap
        self._news: dict[PodUID, None] = {}  # pods of which agents may say something else

    def put(
        self,
        node: str,
        devices: tuple[NodeDevice, ...],
        reports: Reports,
        failed: tuple[str, ...] = (),
    ) -> tuple[bool, set[PodUID]]:
        """Take over a node's report.

        Returns: whether devices, or what failed in its self-test, changed; pods of which news came.
        """
        before = self.devices.get(node), self.failed_isolation.pop(node, ())
        old = self._reports.get(node, {})
        self.devices[node], self._reports[node] = devices, reports
        if failed:
            self.failed_isolation[node] = failed
        self._sick.discard(node)
        if not all(device.healthy for device in devices):
            self._sick.add(node)
        self._over.discard(node)
        if any(report.over_cap_since for each in reports.values() for report in each):
            self._over.add(node)
        return before != (devices, failed), {
            uid for uid in old.keys() | reports.keys() if old.get(uid) != reports.get(uid)
        }

    def drop(self, node: str) -> set[PodUID]:
        """Forget a node's report; the pods of which nothing is known any more."""
        self.devices.pop(node, None)
        self.failed_isolation.pop(node, None)
        self._sick.discard(node)
        self._over.discard(node)
        return set(self._reports.pop(node, {}))

    def set_silent(self, node: str, why: str) -> bool:
        """Note that a node's agent is not heard of (empty: it is again); False when known."""
        if self._silent.get(node, "") == why:
            return False
        if why:
            self._silent[node] = why
        else:
            del self._silent[node]
        return True

    def set_alive(self, node: str, alive: bool) -> None:
        """Note whether a node's agent was seen to renew its Lease, and the Lease still lives."""
        (self._alive.add if alive else self._alive.discard)(node)

    def is_alive(self, node: str) -> bool:
        """Whether what a node's agent says is new enough to act on it."""
        return node in self._alive

    def silence(self, node: str) -> str:
        """Why a node takes no new pods for its agent; empty when it is heard or there is none."""
        return self._silent.get(node, "") if node in self.devices else ""

    def reported(self, node: str) -> Reports:
        """What a node's agent says now; nothing while it is silent."""
        return {} if self.silence(node) else self._reports.get(node, {})

    def reports(self, pod: "PodRecord") -> tuple[SeenContainer, ...]:
        """What is known now of a pod's containers."""
        return self.reported(pod.node).get(pod.uid, ())

    def over_cap(self) -> Iterator[tuple[str, PodUID, SeenContainer]]:
        """Containers above their cap, as last reported, also by agents that are silent now."""
        for node in sorted(self._over):
            for uid, reports in self._reports[node].items():
                yield from ((node, uid, r) for r in reports if r.over_cap_since)

    def note_news(self, pods: Iterable[PodUID]) -> None:
        """What is known of these, or of their devices, may be something else."""
        self._news.update(dict.fromkeys(pods))

    def take_news(self) -> tuple[PodUID, ...]:
        """Those of which something was noted since it was last asked, each once."""
        taken, self._news = tuple(self._news), {}
        return taken

    def has_sick_devices(self, node: str) -> bool:
        """Whether a device of the node is not healthy: few are, so that much is worth asking."""
        return node in self._sick
