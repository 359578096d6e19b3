"""GPU-seconds held, and idle ones of these, by project and type, since this replica leads.

Held ones are counted as pods take and give back GPUs, not sampled: who asks, and how often, changes
nothing. Whose a pod is may be known later than the pod, and may change: each minute settles that.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.limits.in_pieces import in_pieces
from gpu_scheduler.runtime.common.work_name import work_of
from gpu_scheduler.runtime.usage.works import LiveWork, gpus, type_of
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import PodRecord

Of = tuple[str, str]  # project and type


@dataclass(slots=True)
class _Holding:
    """What a pod holds; ``of``: None, as it is not known yet whose it is."""

    of: Of | None
    milli: int
    since: float


class GpuSeconds:
    """Follows pods; times are monotonic seconds."""

    def __init__(
        self, state: ClusterState, idle_seconds: float, clock: Callable[[], float]
    ) -> None:
        """``idle_seconds``: without a kernel after which work is idle."""
        self._state = state
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._holdings: dict[PodUID, _Holding] = {}
        self._held: Counter[Of] = Counter()  # milli-GPU × seconds, of holdings that are over
        self._idle: Counter[Of] = Counter()
        self._looked_at = clock()

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod was added or changed."""
        charge = self._state.ledger.charges.get(pod.uid)
        milli = charge.milli if charge is not None else 0
        known = self._holdings.get(pod.uid)
        if known is not None and known.milli == milli:
            return
        if not milli and known is None:
            return
        of = self._whose(pod)
        self._over(pod.uid, of)
        if milli:
            self._holdings[pod.uid] = _Holding(of, milli, self._clock())

    def gone(self, uid: PodUID) -> None:
        """A pod is gone."""
        self._over(uid, None)

    async def settle(self, works: Iterable[LiveWork]) -> None:
        """Once a minute: whose what is held is now, and what of it was idle since. In pieces."""
        now = self._clock()
        passed, self._looked_at = now - self._looked_at, now
        async for work in in_pieces(works):
            of, idle = (str(work.project), str(work.type)), work.idle_seconds()
            for pod, _ in work.pods:
                holding = self._holdings.get(pod.uid)
                if holding is None:
                    continue
                if holding.of is None:
                    holding.of = of
                elif holding.of != of:
                    self._over(pod.uid, None)
                    holding = self._holdings[pod.uid] = _Holding(of, holding.milli, now)
                if idle is not None and idle > self._idle_seconds:
                    most = idle - self._idle_seconds, now - holding.since
                    self._idle[of] += round(holding.milli * min(passed, *most))

    def held(self) -> Mapping[Of, float]:
        """Until now."""
        now, found = self._clock(), self._held.copy()
        for each in self._holdings.values():
            if each.of is not None:
                found[each.of] += round(each.milli * (now - each.since))
        return _seconds(found)

    def idle(self) -> Mapping[Of, float]:
        """Of these past the idle threshold, until the last minute."""
        return _seconds(self._idle)

    def _whose(self, pod: PodRecord) -> Of | None:
        named = work_of(self._state, pod)
        if named is None:
            return None
        return str(self._state.projects.owner(pod.namespace) or ""), str(type_of(*named))

    def _over(self, uid: PodUID, of: Of | None) -> None:
        """Count what a pod held; ``of``: whose it was, where that was not known."""
        known = self._holdings.pop(uid, None)
        whose = None if known is None else known.of or of
        if known is not None and whose is not None:
            self._held[whose] += round(known.milli * (self._clock() - known.since))


def _seconds(milli: Mapping[Of, int]) -> Mapping[Of, float]:
    return {of: gpus(each) for of, each in milli.items()}
