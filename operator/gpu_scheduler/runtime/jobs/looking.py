"""Looks whether the pods of a job could start, before anybody gives way to it: ADR 0064.

Asked by the plan, for those jobs alone that somebody would be evicted for. What their pods name is
looked up, and the API server tries a pod that it has not made yet. Where something is missing
nobody gives way; it is looked at again ever more seldom, and at once when the spec is another. Jobs
that are like one whose pods could not start are in doubt as that is. Several are looked at
together, and planned together then, so their order stays that of the queue.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NoReturn

from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import pod as pod_path
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.runtime.jobs import doubting, prerequisites
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.refused.refusals import MOST_SECONDS
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, namespace_of

SEEN_SECONDS = 30.0  # as long as what was seen counts
_AGAIN = Backoff(2.0, MOST_SECONDS)
_AT_ONCE = 8
_PAUSE_SECONDS = 0.25  # between two looks at several


class Looking:
    """Looks, and remembers when to look again."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        acceptance: Acceptance,
        *,
        clock: Callable[[], float],
    ) -> None:
        """``acceptance`` tries pods that do not exist; ``clock``: monotonic seconds."""
        self._state = state
        self._client = client
        self._acceptance = acceptance
        self._clock = clock
        self._wanted: dict[JobKey, None] = {}
        self._times: dict[JobKey, tuple[tuple[str, int], int]] = {}  # looks in vain
        self._news = asyncio.Event()
        state.waiting.looked.on = True

    def want(self, keys: Iterable[JobKey]) -> None:
        """The plan would evict somebody for these."""
        for key in keys:
            self._wanted[key] = None
            self._news.set()

    async def run(self) -> NoReturn:
        """Look for ever; ends with NotLeader when the fence closes."""
        while True:
            await self._news.wait()
            await self.look()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def look(self) -> None:
        """Look at a few, of all namespaces in turn, and let them be planned."""
        there = self._state.workloads.get
        self._times = {k: v for k, v in self._times.items() if there(k) is not None}
        turns: Turns[str, JobKey] = Turns()
        for key in self._wanted:
            turns.add(namespace_of(key), key)
        taken = [key for _, key in filter(None, (turns.take() for _ in range(_AT_ONCE)))]
        for key in taken:
            del self._wanted[key]
        if not self._wanted:
            self._news.clear()
        async with asyncio.TaskGroup() as group:
            for key in taken:
                group.create_task(self._look_at(key))
        self._state.changes.replan()

    async def _look_at(self, key: JobKey) -> None:
        job = self._state.workloads.get(key)
        if job is None or job.spec is None or doubting.inherit(self._state, job, self._clock()):
            return
        about = job.uid, job.generation
        try:
            missing = await self._missing(job)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            missing = f"whether its pods could start cannot be looked up: {error}"
        except Exception:
            unexpected("looking", key)
            missing = "whether its pods could start cannot be looked up"
        delay = SEEN_SECONDS
        if missing:
            before, times = self._times.get(key, (about, 0))
            times = times if before == about else 0
            self._times[key] = about, times + 1
            delay = _AGAIN.delay_seconds(times)
        else:
            self._times.pop(key, None)
        if self._state.waiting.looked.note(key, about, missing, self._clock() + delay):
            self._state.changes.touch(key)
        self._state.waiting.know_better(key)

    async def _missing(self, job: GPUJobRecord) -> str:
        """What keeps the next pod of a job from starting, as far as that can be read."""
        waiting = self._state.waiting
        made = [self._state.pods.known[uid] for uid in waiting.uids(job.key)[:1]]
        for pod in made:  # the API server has taken it
            found = await self._client.get(pod_path(pod.namespace, pod.name))
            return await prerequisites.missing(self._client, job.namespace, found["spec"])
        project = self._state.projects.owner(job.namespace)
        if project is None:
            return ""
        rendered = await self._acceptance.rendered(job, ProjectName(project))
        for accepted in rendered:
            spec = accepted.job["spec"]["template"]["spec"]
            if lacks := await prerequisites.missing(self._client, job.namespace, spec):
                return lacks
        refused = await self._acceptance.refusal(job, ProjectName(project), rendered)
        return refused.message if refused is not None else ""
