"""Asks whether what was refused still is: a policy that is lifted is noticed in a second or two.

Of ResourceQuotas and labels of namespaces we hear; of policies, webhooks, LimitRanges and what they
depend on nobody tells us. So once a second, for the whole cluster, the API server tries the Job or
the pod of one refused GPUJob without making it, of all namespaces in turn: where it says yes,
everything that was refused there is tried again. One object is tried once a second during its first
minute, and then ever more seldom: a sixtieth of the time that it has waited, half a minute at most.
What is refused for what it says itself is tried once. What the API server would take, and is
refused all the same when it is tried again, is refused for something else (a Job of its name that
goes): it is not tried here any more. How a refused job comes back by itself is not touched by any
of this (``refusals``; docs/adr/0075).
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NoReturn

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.refused.refusals import Refusals
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import namespace_of

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
MOST_SECONDS = 30.0
_PART = 60.0  # of the time that it has waited


@dataclass(slots=True)
class _RefusedSpec:
    about: Hashable
    since: float
    due: float
    pods: bool = False
    allowed: bool = False  # by the last try, half a minute ago


class Lifting:
    """Notices what is allowed again."""

    def __init__(
        self,
        state: ClusterState,
        acceptance: Acceptance,
        refusals: Sequence[Refusals],
        changed: Sequence[Callable[[str], None]],
        *,
        clock: Callable[[], float],
    ) -> None:
        """Nothing is known yet.

        Args:
            state: what is known.
            acceptance: asks the API server.
            refusals: who knows what was refused.
            changed: told of a namespace in which something is allowed again.
            clock: monotonic seconds.
        """
        self._state = state
        self._acceptance = acceptance
        self._refusals = refusals
        self._changed = changed
        self._clock = clock
        self._known: dict[JobKey, _RefusedSpec] = {}
        self._asked: dict[str, float] = {}  # when one of a namespace was tried last

    async def run(self) -> NoReturn:
        """Ask for ever; ends with NotLeader when the fence closes."""
        await poll_for_ever(
            self.check, seconds=PAUSE_SECONDS, loop="lifting", about="whether refusals are lifted"
        )

    async def check(self) -> None:
        """Try one, whose time it is."""
        now = self._clock()
        self._take_over(now)
        due = [key for key, known in self._known.items() if known.due <= now]
        if not due:
            return
        key = min(due, key=lambda k: (self._asked.get(namespace_of(k), -inf), self._known[k].due))
        self._asked[namespace_of(key)] = now
        known, job = self._known[key], self._state.gpujobs.get(key)
        project = self._state.projects.owner(job.namespace) if job is not None else None
        known.due = now + min(max(PAUSE_SECONDS, (now - known.since) / _PART), MOST_SECONDS)
        if job is None or project is None or job.spec is None or job.deleting:
            return
        if job.problem and job.problem_as is Reason.VOLUME_NOT_MOUNTED:
            return  # its claims are looked at (``jobs.claims``)
        made = {own.role for own in job.own(self._state.workloads.jobs(key))}
        found = await self._acceptance.tried(job, ProjectName(project), made, pods_first=known.pods)
        known.pods = found.pods
        if found.final:
            known.due = inf
        before, known.allowed = known.allowed, not found.refused
        if known.allowed and before:
            known.due = inf
        elif known.allowed:
            log.info("%s: the API server takes it now; all of its namespace are tried again", key)
            known.due = self._clock() + MOST_SECONDS  # it is tried by itself now
            for tell in self._changed:
                tell(job.namespace)

    def _take_over(self, now: float) -> None:
        there = {key: about for each in self._refusals for key, about in each.waiting()}
        self._known = {
            key: self._known[key]
            if key in self._known and self._known[key].about == about
            else _RefusedSpec(about, now, now + PAUSE_SECONDS)
            for key, about in there.items()
        }
        namespaces = {namespace_of(key) for key in there}
        self._asked = {ns: at for ns, at in self._asked.items() if ns in namespaces}
