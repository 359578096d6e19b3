"""Holder pods: what shows the device plugin's other customers how much of a node we use.

A courtesy to others that never costs a user anything: a holder that cannot be created, does not fit
or is evicted is tried again later, the metrics say so, and GPUJobs go on. Switched off, it removes
what an earlier setting has left behind.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn

from gpu_scheduler.jobs.placeholder import SLEEP, PlaceholderSettings, holder
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.objects import OwnerReference, RawObject
from gpu_scheduler.kube.paths import core, of_group
from gpu_scheduler.kube.paths import pod as pod_path
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.placeholders import PlaceholderNeed, changes, needed
from gpu_scheduler.state.pods.pod import PodRecord, Stage

log = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0
_MOST_WRITES = 100  # in one look, so that a look is not long
_PAUSE = Backoff(5.0, 300.0)


@dataclass(frozen=True, slots=True)
class Keeping:
    """Which placeholder pods there are, and for how long.

    Attributes:
        enabled: False: only what is left of them is removed.
        whole_nodes: hold all devices of a node of which one is in use.
        keep_seconds: how long a holder stays once its device is free.
        owner: Deployment that owns the holders; empty: they have no owner.
    """

    enabled: bool
    whole_nodes: bool
    keep_seconds: float
    owner: str


class PlaceholderPods:
    """Keeps one holder per device in use."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        settings: PlaceholderSettings,
        keeping: Keeping,
        *,
        clock: Callable[[], float],
    ) -> None:
        """Prepare.

        Args:
            state: what is known.
            client: for the writes; fenced.
            settings: what all holders have in common.
            keeping: which there are, and for how long.
            clock: monotonic seconds.
        """
        self._state = state
        self._client = client
        self._settings = settings
        self._keeping = keeping
        self._clock = clock
        self._owner: OwnerReference | None = None
        self._idle_since: dict[str, float] = {}
        self._paused: dict[str, tuple[float, int]] = {}  # name -> until, and how often
        self._failures: Failures[str] = Failures(clock, first_seconds=5.0)  # by name
        self._slots: dict[str, PlaceholderNeed] = {}
        self._seen_version = -1
        self.counts: Counter[str] = Counter()
        """``created``, ``deleted``, ``refused`` (by the API server), ``ended`` (by others)."""

    async def run(self) -> NoReturn:
        """Check for ever."""
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="holders", about="placeholder pods"
        )

    async def check(self) -> None:
        """Create and delete what is due."""
        now, state = self._clock(), self._state
        if self._keeping.enabled and state.changes.version != self._seen_version:
            self._seen_version = state.changes.version
            self._slots = needed(
                state.snapshot(),
                state.nodes.takes_pods,
                state.ledger.unlisted,
                whole_nodes=self._keeping.whole_nodes,
            )
        due = changes(
            self._slots,
            state.pods.placeholders.values(),
            self._idle_since,
            now,
            self._keeping.keep_seconds if self._keeping.enabled else 0.0,
        )
        self._idle_since = dict(due.idle_since)
        for each in state.pods.placeholders.values():
            if each.stage is Stage.RUNNING:
                self._paused.pop(each.name, None)
        gone = [pod for pod in due.delete if self._failures.may_try(pod.name)]
        for pod in gone[:_MOST_WRITES]:
            await self._each(pod.name, self._delete(pod))
        wanted = [
            each
            for each in due.create.items()
            if self._paused.get(each[0], (0, 0))[0] <= now and self._failures.may_try(each[0])
        ]
        for name, slot in wanted[:_MOST_WRITES]:
            await self._each(name, self._create(name, slot))

    async def _each(self, name: str, work: Awaitable[None]) -> None:
        """What goes wrong with one holder concerns no other."""
        try:
            await work
        except errors.NotLeader:
            raise
        except Exception:
            self._pause(name)
            unexpected("holders", name)

    def states(self) -> dict[str, int]:
        """Devices that need a holder by what became of it: held, waiting, missing."""
        there = {
            pod.name: "held" if pod.node else "waiting"
            for pod in self._state.pods.placeholders.values()
            if pod.stage is not Stage.ENDED and not pod.deleting
        }
        found = Counter(there.get(name, "missing") for name in self._slots)
        return {state: found[state] for state in ("held", "waiting", "missing")}

    async def _create(self, name: str, slot: PlaceholderNeed) -> None:
        try:
            owner = await self._find_owner()
            body = holder(slot.node, slot.device, self._settings, owner)
            await self._client.create(core("pods", self._settings.namespace), body)
            self.counts["created"] += 1
            self._failures.over(name)
        except errors.NotLeader:
            raise
        except errors.Conflict:
            self._pause(name)  # an earlier one of that name is about to go
        except errors.ApiError as error:
            self.counts["refused"] += 1
            if self._failures.note(name, error):
                log.warning("holder for GPU %s of node %s: %s", slot.device, slot.node, error)

    async def _delete(self, pod: PodRecord) -> None:
        if pod.stage is Stage.ENDED:
            self.counts["ended"] += 1
            self._pause(pod.name)
            log.warning(
                "holder %s for GPU %s of node %s has ended: %s %s",
                *(pod.name, pod.holds, pod.node, pod.reason, pod.message),
            )
        else:
            self._paused.pop(pod.name, None)
        try:
            await self._client.delete(pod_path(pod.namespace, pod.name), uid=pod.uid)
            self.counts["deleted"] += 1
        except (errors.NotFound, errors.Conflict) as error:
            self._failures.note(pod.name, error)  # it is gone, which the watch tells
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            if self._failures.note(pod.name, error):
                log.warning("deleting holder %s: %s", pod.name, error)

    def _pause(self, name: str) -> None:
        """Leave a device alone for a while, each time for longer."""
        _, times = self._paused.get(name, (0.0, 0))
        self._paused[name] = (self._clock() + _PAUSE.delay_seconds(times), times + 1)

    async def _find_owner(self) -> OwnerReference | None:
        """The Deployment, read once: holders go when it goes."""
        if not self._keeping.owner or self._owner is not None:
            return self._owner
        namespace = self._settings.namespace
        path = of_group("apps", "v1", "deployments", namespace, self._keeping.owner)
        found = await self._client.get(path, RawObject)
        # A controller, so that draining a node takes its pods for replaceable.
        name, uid = found.metadata.name, found.metadata.uid
        self._owner = OwnerReference("Deployment", name, uid, controller=True)
        return self._owner


def holder_pods(
    state: ClusterState, client: Client, settings: OperatorSettings, clock: Callable[[], float]
) -> PlaceholderPods:
    """What the settings say of them; ``clock``: monotonic seconds."""
    common = PlaceholderSettings(
        namespace=settings.lease_namespace,
        image=settings.holders_image,
        command=SLEEP if settings.holders_sleep else (),
        pull_policy=settings.holders_pull_policy,
        pull_secrets=tuple(filter(None, settings.holders_pull_secrets.split(","))),
        priority_class=settings.holders_priority_class,
    )
    return PlaceholderPods(
        state,
        client,
        common,
        Keeping(
            enabled=settings.holders != "off",
            whole_nodes=settings.holders == "nodes",
            keep_seconds=settings.holders_keep_seconds,
            owner=settings.holders_owner,
        ),
        clock=clock,
    )
