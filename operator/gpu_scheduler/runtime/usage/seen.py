"""What the agents said last: by node, by pod, and the sums of what has ended.

A node speaks for its own pods alone: what it says of others is left out.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.common.work_name import key_and_role
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.usage.answer import AgentUsage, DeviceNow, ShareUse, Totals

T = TypeVar("T")
_NOTHING = Totals()
_Place = tuple[str, str]  # container and device
STALE_SECONDS = 45.0  # after which what was said is no figure of this moment


@dataclass(frozen=True, slots=True, eq=False)
class NodeAnswer:
    """What an agent said of this moment; another object each time that it says something.

    Attributes:
        at: when it was answered, monotonic seconds.
        pods: what their shares do.
        devices: by UUID.
    """

    at: float = float("-inf")
    pods: Mapping[PodUID, Mapping[_Place, ShareUse]] = field(default_factory=dict)
    devices: Mapping[str, DeviceNow] = field(default_factory=dict)


@dataclass(slots=True)
class _NodeUse:
    """Of a node."""

    look: int = 0
    said: NodeAnswer = NodeAnswer()  # noqa: RUF009 - it never changes
    running: dict[str, Totals] = field(default_factory=dict)  # by work
    ended: dict[str, Totals] = field(default_factory=dict)  # the same
    caps_mib: dict[str, int] = field(default_factory=dict)  # the most of a work's
    silent: bool = False


class SeenUse:
    """Takes answers in."""

    def __init__(self, pods: Mapping[PodUID, PodRecord]) -> None:
        """``pods``: that are known."""
        self._pods = pods
        self._nodes: dict[str, _NodeUse] = {}
        self._where: dict[str, set[str]] = {}  # nodes that know a work
        self._roles: dict[str, set[str]] = {}  # of a work, as agents tell them

    def look(self, node: str) -> int:
        """The look of the last answer of a node; 0: there is none."""
        known = self._nodes.get(node)
        return known.look if known is not None else 0

    def take(self, node: str, answer: AgentUsage, now: float) -> None:
        """An agent has answered."""
        known = self._nodes.setdefault(node, _NodeUse())
        if answer.look < known.look or not known.look:  # all of it was asked for
            known.ended = {}
        before = known.said.pods
        pods: dict[PodUID, dict[_Place, ShareUse]] = {}
        for share in answer.shares:
            uid, place = PodUID(share.pod_uid), (share.container, share.device)
            pod = self._pods.get(uid)
            if pod is None or pod.node != node:
                continue
            if share.windows is None:
                old = before.get(uid, {}).get(place)
                share = replace(share, windows=old.windows if old is not None else ())
            pods.setdefault(uid, {})[place] = share
        known.running = _by_work(pods)
        known.caps_mib |= {
            share.work: max(share.cap_mib, known.caps_mib.get(share.work, 0))
            for there in pods.values()
            for share in there.values()
        }
        known.ended |= {each.work: each.totals for each in answer.ended if each.work}
        known.said = NodeAnswer(now, pods, {device.uuid: device for device in answer.devices})
        self._index(node, known)
        known.look = answer.look
        known.silent = False

    def silent(self, node: str) -> None:
        """An agent has not answered."""
        self._nodes.setdefault(node, _NodeUse()).silent = True

    def forget(self, node: str) -> None:
        """There is no agent on it any more: what it said last is what it was until it is back."""
        known = self._nodes.get(node)
        if known is None:
            return
        for work, totals in known.running.items():
            known.ended[work] = known.ended.get(work, Totals()) + totals
        known.said = NodeAnswer()
        known.running = {}
        known.look = 0
        known.silent = False

    def silent_agents(self) -> int:
        """How many did not answer the last time."""
        return sum(node.silent for node in self._nodes.values())

    def heard(self) -> Mapping[str, float]:
        """When the agents that are there answered last, by node; monotonic seconds."""
        return {name: node.said.at for name, node in self._nodes.items() if node.look}

    def said(self, node: str, now: float) -> NodeAnswer | None:
        """What its agent said last, as far as that was of late; ``now``: monotonic seconds."""
        known = self._nodes.get(node)
        return None if known is None or now - known.said.at > STALE_SECONDS else known.said

    def sums(self, work: str) -> Totals:
        """Of all its shares, those that run and those that have ended."""
        found = self._sums(work)
        for each in self._roles.get(work, ()):
            found += self._sums(each)
        return found

    def by_role(self, work: str) -> dict[str, Totals]:
        """The same by role, where it has some; in the order of their names."""
        roles = sorted(self._roles.get(work, ()))
        return {key_and_role(each)[1]: self._sums(each) for each in roles}

    def _sums(self, work: str) -> Totals:
        found = Totals()
        for name in self._where.get(work, ()):
            node = self._nodes[name]
            found += node.ended.get(work, _NOTHING) + node.running.get(work, _NOTHING)
        return found

    def totals(self, work: str) -> tuple[Totals, int]:
        """The same, and the most memory that one of them might hold, MiB."""
        works = (work, *self._roles.get(work, ()))
        caps = (node.caps_mib.get(each, 0) for node in self._nodes.values() for each in works)
        return self.sums(work), max(caps, default=0)

    def keep_ended(self, works: Collection[str]) -> None:
        """Forget the sums of all work but this."""
        for node in self._nodes.values():
            node.ended = _of(works, node.ended)
            node.caps_mib = _of(works, node.caps_mib)
        self._where = {}
        self._roles = {}
        for name, node in self._nodes.items():
            self._index(name, node)

    def _index(self, name: str, node: _NodeUse) -> None:
        for work in (*node.running, *node.ended):
            self._where.setdefault(work, set()).add(name)
            key, role = key_and_role(work)
            if role:
                self._roles.setdefault(key, set()).add(work)


def _of(works: Collection[str], each: Mapping[str, T]) -> dict[str, T]:
    return {work: value for work, value in each.items() if key_and_role(work)[0] in works}


def _by_work(pods: Mapping[PodUID, Mapping[_Place, ShareUse]]) -> dict[str, Totals]:
    found: dict[str, Totals] = {}
    for share in (each for there in pods.values() for each in there.values()):
        found[share.work] = found.get(share.work, Totals()) + share.totals
    return found
