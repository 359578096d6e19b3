"""Whether the agents are alive: a node whose agent has fallen silent takes no new pods.

Each agent renews a Lease. What counts is the time since we last saw it renewed, on our own clock:
the times in a Lease are those of another machine. So an operator that has just started gives each
agent one full term; but nothing is done to pods on an agent's word before it was seen to renew its
Lease. Pods that run are left alone, and a GPUNode without a Lease (written by hand) keeps its node
open. Handles the reflector's events; the operator runs it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from gpu_scheduler.api.names import AGENT_LEASE_PREFIX
from gpu_scheduler.kube.objects import Lease
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.informers.changed_nodes import ChangedNodes
from gpu_scheduler.state.cluster_state import ClusterState

_CHECK_SECONDS = 1.0
_TERM_SECONDS = 40  # of a Lease that does not say


@dataclass(frozen=True, slots=True)
class _Beat:
    record: tuple[str, str]
    term_seconds: int
    seen_at: float
    renewed: bool  # seen to be, not just found
    version: str  # resourceVersion


class Heartbeats:
    """Follows the agents' Leases."""

    def __init__(
        self, state: ClusterState, changed: ChangedNodes, *, clock: Callable[[], float]
    ) -> None:
        """``changed``: nodes whose Lease is new, gone, or should have been renewed by now.

        ``clock``: monotonic seconds.
        """
        self._state = state
        self._changed = changed
        self._clock = clock
        self._beats: dict[str, _Beat] = {}

    def changed(self, obj: Lease) -> None:
        """A Lease was added or changed; only a renewal is a sign of life."""
        node = _node(obj.metadata.name)
        record = (obj.spec.renew_time, obj.spec.holder_identity)
        known = self._beats.get(node)
        if not node:
            return
        if known is not None and known.record == record:
            self._beats[node] = replace(known, version=obj.metadata.resource_version)
            return
        term = obj.spec.lease_duration_seconds or _TERM_SECONDS
        now = self._clock()
        renewed = known is not None and not _is_over(known, now)
        if known is None:
            self._changed.add(node)
        self._beats[node] = _Beat(record, term, now, renewed, obj.metadata.resource_version)
        self._tell(node, "", alive=renewed)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """A Lease is gone: nothing was promised any more."""
        node = _node(name)
        if self._beats.pop(node, None) is not None:
            self._tell(node, "", alive=False)
            self._changed.add(node)

    async def run(self) -> NoReturn:
        """Look for Leases that have run out, for ever."""
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="heartbeats", about="the agents' Leases"
        )

    def check(self) -> None:
        """Shut nodes whose agent's Lease has run out."""
        now = self._clock()
        for node, beat in self._beats.items():
            try:
                if _is_overdue(beat, now):
                    self._changed.add(node)
                if _is_over(beat, now):
                    # The term, not the time that has passed: the sentence stays as it is.
                    self._tell(
                        node,
                        f"has an agent that has not reported for {beat.term_seconds} s "
                        f"(Lease {AGENT_LEASE_PREFIX}{node})",
                        alive=False,
                    )
            except Exception:
                unexpected("heartbeats", node)

    def lease(self, node: str) -> tuple[str, bool]:
        """The resourceVersion of a node's Lease (empty: none), and whether it is overdue."""
        beat = self._beats.get(node)
        return (beat.version, _is_overdue(beat, self._clock())) if beat else ("", False)

    def _tell(self, node: str, why: str, *, alive: bool) -> None:
        self._state.nodes.agents.set_alive(node, alive)
        self._state.nodes.agent_silent(node, why)


def _is_overdue(beat: _Beat, now: float) -> bool:
    """Agents renew four times in a term: one that has not in half of it may need to be helped."""
    return now - beat.seen_at >= beat.term_seconds / 2


def _is_over(beat: _Beat, now: float) -> bool:
    return now - beat.seen_at >= beat.term_seconds


def _node(lease: str) -> str:
    """The node of an agent's Lease; empty for any other Lease."""
    return lease.removeprefix(AGENT_LEASE_PREFIX) if lease.startswith(AGENT_LEASE_PREFIX) else ""
