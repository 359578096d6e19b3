"""What happens to pods that hold more device memory than their cap, as their project wants it.

Under warn and kill the pod is left alone here: the status says what is wrong, and killing is the
agent's. Under evict it goes at once; a project that says nothing gets a warning first, and an
eviction if the excess goes on for a minute. An eviction charges no retry. Nobody is evicted on an
old report: the agent must have been seen to renew its Lease, and the minute starts anew when it is
heard of again.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NoReturn

from gpu_scheduler.api.gpuproject import OverCapPolicy
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.event_reason import BOTH, EventReason
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.eviction.evictor import (
    Eviction,
    EvictionCause,
    EvictionMessage,
    Evictor,
    and_then,
)
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.agents import SeenContainer
from gpu_scheduler.state.pods.pod import PodRecord, Stage

OVER_CAP = EvictionCause(
    "over_cap",
    "Pods evicted for holding more memory than their cap.",
    EventReason(
        "OverCapEvicted", "Warning", BOTH, "the pod was evicted for it; no retry is charged"
    ),
)
PATIENCE_SECONDS = 60.0
DEFAULT = "default"
_CHECK_SECONDS = 1.0

_Excess = tuple[str, int, str]  # pod's uid, container, since when


class OverCapEvictions:
    """Acts on excesses that agents report."""

    def __init__(
        self,
        state: ClusterState,
        evictor: Evictor,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        clock: Callable[[], float],
    ) -> None:
        """``patience_seconds``: how long a project without a policy is only warned."""
        self._state = state
        self._evictor = evictor
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._since: dict[_Excess, float] = {}  # monotonic seconds
        self.violations: Counter[tuple[str, str]] = Counter()
        """Excesses by project and policy."""

    async def run(self) -> NoReturn:
        """Check for ever."""
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="overcap", about="pods above their cap"
        )

    def check(self) -> None:
        """Act on what is above its cap now."""
        now, before = self._clock(), self._since
        self._since = {}
        for pod, report, alive in self._excesses():
            excess = (pod.uid, report.container, report.over_cap_since)
            self._since[excess] = before.get(excess, now) if alive else now
            try:
                self._act(pod, report, alive, excess not in before, now - self._since[excess])
            except Exception:
                unexpected("overcap", f"{pod.namespace}/{pod.name}")

    def _act(
        self, pod: PodRecord, report: SeenContainer, alive: bool, new: bool, seconds: float
    ) -> None:
        """Deal with one excess that has been seen for so long."""
        project = self._state.projects.owner(pod.namespace) or ""
        policy = self._policy(project)
        if new:
            self.violations[project, policy] += 1
        if not alive:
            return
        if policy == OverCapPolicy.EVICT:
            self._evict(pod, report, "policy evict")
        elif policy == DEFAULT and seconds >= self._patience_seconds:
            waited = f"{self._patience_seconds:g} s above the cap, by default policy evict"
            self._evict(pod, report, waited)

    def _policy(self, project: str) -> str:
        record = self._state.projects.records.get(ProjectName(project))
        return (record.over_cap_policy if record else "") or DEFAULT

    def _excesses(self) -> Iterator[tuple[PodRecord, SeenContainer, bool]]:
        """Each excess of a pod of ours that is on that node, and whether its agent is alive."""
        agents = self._state.nodes.agents
        for node, uid, report in agents.over_cap():
            pod = self._state.pods.known.get(uid)
            if pod is None or pod.node != node or pod.stage is Stage.ENDED:
                continue
            if pod.allocation is not None and self._state.workloads.key_of(pod) is not None:
                yield pod, report, agents.is_alive(node)

    def _evict(self, pod: PodRecord, report: SeenContainer, why: str) -> None:
        what = report.message or f"container {report.container} is above its memory cap"
        message = f"{pod.name} on {pod.node}: {what}; {why}"
        if not pod.deleting:
            message = f"{message}; {and_then(pod, 'it starts again')}"
            told = EvictionMessage(OVER_CAP, message)
            self._evictor.evict(Eviction(pod, told))
