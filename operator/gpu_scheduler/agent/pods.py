"""The pods of this node, as far as GPUs are concerned: who was granted what.

From the operator's orders (``api.orders``) and from nothing else. A pod that left them is
remembered for a while as ended, so that the last processes of one that has just ended are not taken
for a stranger's.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from gpu_scheduler.api.orders import Neighbour, OrderedContainer, OrderedPod, Orders

REMEMBER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class GpuContainer:
    """A container of ours with GPUs, as the operator ordered it."""

    pod: OrderedPod
    own: OrderedContainer
    ended: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """UID of its pod, and its number there."""
        return self.pod.uid, self.own.index


class Pods:
    """What the operator said last; ``news`` is called after a change of our own pods."""

    def __init__(self, news: Callable[[], None] = lambda: None) -> None:
        self._news = news
        self._left: dict[str, tuple[float, tuple[GpuContainer, ...]]] = {}
        self.containers: dict[str, tuple[GpuContainer, ...]] = {}
        """GPU containers of ours, by the pod's uid."""
        self.others: dict[str, Neighbour] = {}

    def take(self, orders: Orders, now: float) -> None:
        """This is so now.

        Args:
            orders: What the operator says.
            now: Monotonic seconds.
        """
        ours = {
            pod.uid: tuple(GpuContainer(pod, each) for each in pod.containers)
            for pod in orders.pods
            if pod.containers
        }
        before, self.containers = self.containers, ours
        for uid in before.keys() - ours.keys():
            self._left[uid] = (now, tuple(replace(each, ended=True) for each in before[uid]))
        self.others = {other.uid: other for other in orders.others}
        if ours != before:
            self._news()

    def at(self, now: float) -> dict[str, tuple[GpuContainer, ...]]:
        """The containers, with those that have just ended, at a time in monotonic seconds."""
        self._left = {
            uid: (left, each)
            for uid, (left, each) in self._left.items()
            if now - left < REMEMBER_SECONDS and uid not in self.containers
        }
        return {uid: each for uid, (_, each) in self._left.items()} | self.containers
