"""What the parts of all folders share: the client, clocks, the state, the queue, Events, the plan.

Each folder of ``runtime`` has such a module ``build``: a function that makes the folder's parts out
of those below it, and a dataclass that holds them and says which of them run (``loops``).
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.gpujob import Isolation
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.share import Installation
from gpu_scheduler.jobs.share_form import lacks
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.limits.shared_look import SharedLook
from gpu_scheduler.runtime.common.events import WRITERS, Events
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.runtime.common.pending import SECONDS, Pending, pending
from gpu_scheduler.runtime.common.quarantine import Quarantine, warn
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.state.cluster_state import ClusterState, TrialsLeft
from gpu_scheduler.usage.key import UsageKeys

_MOST_OF_ONE = 6  # GPUJobs of one namespace that are worked on at once

Loop = Callable[[], Coroutine[Any, Any, object]]
"""What runs as long as this replica leads."""


@dataclass(frozen=True, slots=True)
class CommonParts:
    """What is shared.

    Attributes:
        client: fenced by the Lease.
        settings: of this process.
        clock: of this process.
        installation: what pods depend on of the settings.
        state: what is known of the cluster.
        queue: GPUJobs whose Jobs are to be looked at.
        events: what users are told.
        plan: what the last plan said.
        pending: what waits, for figures.
        usage_keys: with which agents are asked.
    """

    client: Client
    settings: OperatorSettings
    clock: Clock
    installation: Installation
    state: ClusterState
    queue: WorkQueue[JobKey]
    events: Events
    plan: LastPlan
    pending: SharedLook[Pending]
    usage_keys: UsageKeys

    @property
    def loops(self) -> Sequence[Loop]:
        """Those of what is shared."""
        return (self.events.run,) * WRITERS


def build(
    client: Client, settings: OperatorSettings, clock: Clock, trials_left: TrialsLeft
) -> CommonParts:
    """Make what is shared; ``trials_left``: see ``ClusterState``."""
    image = settings.cap_image
    installation = Installation(
        CapImage(image, settings.cap_pull_policy) if image else None,
        Isolation(settings.isolation),
        settings.runtime_class,
    )
    state = ClusterState(
        settings.lease_namespace,
        consolidation=settings.consolidation,
        now=clock.now,
        lacks=lambda pod, asked: lacks(pod, asked, installation.image_for(asked.isolation)),
        trials_left=trials_left,
    )
    events = Events(
        client,
        instance=settings.identity,
        terminating=state.namespaces.terminating,
        clock=clock.monotonic,
        now=clock.stamp,
    )
    quarantine = Quarantine(state, warn(events), clock=clock.monotonic)
    plan = LastPlan(state, quarantine)
    return CommonParts(
        client,
        settings,
        clock,
        installation,
        state,
        queue=WorkQueue(most_of_one=_MOST_OF_ONE),
        events=events,
        plan=plan,
        pending=SharedLook(lambda: pending(state, plan), SECONDS, clock.monotonic),
        usage_keys=UsageKeys(),
    )
