"""The pods of this node, as far as GPUs are concerned: who was granted what.

From the operator's orders (``api.orders``) and from nothing else. A pod that left them is
remembered for a while as ended, so that the last processes of one that has just ended are not
taken for a stranger's. Read by the agent after each sample.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gpu_scheduler.api.orders import OrderedPod, Orders

REMEMBER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class GpuContainer:
    """A container of ours with GPUs."""

    namespace: str
    pod: str
    uid: str
    job: str
    project: str
    index: int
    name: str
    container_id: str  # empty until it was created
    caps_mib: dict[
        str, int
    ]  # by device, as the annotations name it: UUID, or index before an agent
    promised: bool  # libgpucap is mounted into it
    kill: bool  # its project wants its processes killed when it is above its cap
    ended: bool = False
    ephemeral: Mapping[str, str] = field(default_factory=dict)  # of its pod, names by id


@dataclass(frozen=True, slots=True)
class OtherPod:
    """A pod of somebody else."""

    namespace: str
    pod: str
    whole_gpus: bool  # the device plugin gives it GPUs
    tenant: bool  # in a project's namespace, where a command's name proves nothing


class Pods:
    """What the operator said last; ``news`` is called after a change of our own pods."""

    def __init__(self, news: Callable[[], None] = lambda: None) -> None:
        self._news = news
        self._left: dict[str, tuple[float, tuple[GpuContainer, ...]]] = {}
        self.told = False
        """Whether the operator has said anything; before, nobody can be called a stranger."""
        self.containers: dict[str, tuple[GpuContainer, ...]] = {}
        """GPU containers of ours, by the pod's uid."""
        self.others: dict[str, OtherPod] = {}

    def take(self, orders: Orders, now: float) -> None:
        """This is so now.

        Args:
            orders: What the operator says.
            now: Monotonic seconds.
        """
        self.told = True
        ours = {pod.uid: gpu_containers(pod) for pod in orders.pods if pod.containers}
        before, self.containers = self.containers, ours
        for uid in before.keys() - ours.keys():
            self._left[uid] = (now, tuple(replace(each, ended=True) for each in before[uid]))
        self.others = {
            other.uid: OtherPod(other.namespace, other.name, other.whole_gpus, other.tenant)
            for other in orders.others
        }
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


def gpu_containers(pod: OrderedPod) -> tuple[GpuContainer, ...]:
    """The containers of a pod that hold GPUs."""
    return tuple(
        GpuContainer(
            namespace=pod.namespace,
            pod=pod.name,
            uid=pod.uid,
            job=pod.job,
            project=pod.project,
            index=each.index,
            name=each.name,
            container_id=each.id,
            caps_mib=each.caps_mib,
            promised=each.promised,
            kill=pod.kill,
            ephemeral=pod.ephemeral,
        )
        for each in pod.containers
    )
