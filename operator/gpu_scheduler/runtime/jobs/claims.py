"""Work whose pods mount a claim that is not there, or not bound: it holds nothing until it is.

kube-scheduler would not bind the pods, and their places would be held until that is given up. So
such a GPUJob is not let into the queue (``accepting``), and a pod that asks by itself is not
planned (``ShareGroups.unmounted``), from its first sight until its claims have been looked at. Its
claims are looked at again, each at least every second, later by a hundredth of the time that it is
waited for, and never more than a few a second in all. A claim that waits for its first consumer is
as it should be.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.jobs import prerequisites
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.claims import VOLUMES, mounted
from gpu_scheduler.state.pods.pod import Stage

_CHECK_SECONDS = 0.5
_AT_ONCE = 4  # claims that are looked at in one check
_FIRST_AT_ONCE, _FIRST_PAUSE_SECONDS = 8, 0.25  # the same of those that pods have just named
_LEAST_SECONDS, _MOST_SECONDS = 0.9, 30.0  # between two looks at one
_PART = 0.01  # of the time that it is waited for

_Place = tuple[str, str]  # namespace and name of a claim


class ClaimMissingError(Exception):
    """A sentence for the user: which claim, and what to do about it."""


@dataclass(slots=True)
class _Missing:
    since: float  # monotonic seconds
    due: float
    jobs: dict[JobKey, None] = field(default_factory=dict)
    pods: dict[PodUID, None] = field(default_factory=dict)


class MissingClaims:
    """Which claims are waited for, and by whom."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        again: Callable[[str], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        """``again``: told of a namespace in which a claim can be used now."""
        self._state = state
        self._client = client
        self._again = again
        self._clock = clock
        self._of: dict[_Place, _Missing] = {}
        self._first: dict[_Place, dict[PodUID, None]] = {}  # not looked at yet
        self._open: dict[PodUID, dict[str, str]] = {}  # by claim, why it is not known to be usable
        self._news = asyncio.Event()
        state.groups.unmounted = self.of_pod

    async def check_job(self, job: GPUJobRecord, unbound: Iterable[str]) -> None:
        """Nothing, where the claims of a job that were not found bound can be used.

        Raises:
            ClaimMissingError: one cannot; it is looked at again.
            ApiError: the API server could not be asked.
        """
        for name in dict.fromkeys(unbound):
            why = await prerequisites.unusable(self._client, job.namespace, name)
            if why:
                self._wait_for((job.namespace, name)).jobs[job.key] = None
                raise ClaimMissingError(
                    f"{why}; its pods mount it: make it, or name another. Nothing is held for the "
                    "job until then, and it goes on by itself"
                )

    def of_pod(self, pod: Pod) -> str:
        """Why a pod that asks by itself and waits is not planned; empty: its claims can be used."""
        names = mounted(pod)
        if not names:
            return ""
        uid, namespace = PodUID(pod.metadata.uid), pod.metadata.namespace
        if uid not in self._open:
            self._open[uid] = dict.fromkeys(names, "its claims have not been looked at yet")
            for name in names:
                self._first.setdefault((namespace, name), {})[uid] = None
            self._news.set()
        return self._problem(uid)

    async def run(self) -> None:
        """Look for ever; ends with NotLeader when the fence closes."""
        await poll_for_ever(
            self.check, seconds=_CHECK_SECONDS, loop="claims", about="claims that jobs wait for"
        )

    async def run_first(self) -> NoReturn:
        """Look at what pods name that have just come; ends with NotLeader as well."""
        while True:
            await self._news.wait()
            self._news.clear()
            while taken := self._turns(filter(self._has_project, self._first), _FIRST_AT_ONCE):
                await asyncio.gather(*map(self._look, taken))
                await asyncio.sleep(_FIRST_PAUSE_SECONDS)

    async def check(self) -> None:
        """Look at a few whose time has come, of all namespaces in turn."""
        self._forget()
        if any(map(self._has_project, self._first)):
            self._news.set()
        now = self._clock()
        due = sorted((missing.due, place) for place, missing in self._of.items())
        taken = self._turns((place for at, place in due if at <= now), _AT_ONCE)
        await asyncio.gather(*map(self._look, taken))

    def _turns(self, places: Iterable[_Place], most: int) -> list[_Place]:
        turns: Turns[str, _Place] = Turns()
        for place in places:
            turns.add(place[0], place)
        return [place for _, place in filter(None, (turns.take() for _ in range(most)))]

    async def _look(self, place: _Place) -> None:
        try:
            await self._look_at(place)
        except errors.NotLeader:
            raise
        except Exception:
            unexpected("claims", "/".join(place))

    async def _look_at(self, place: _Place) -> None:
        missing, pods = self._of.get(place), self._first.pop(place, {})
        if missing is not None:
            if not pods and not self._has_waiting(missing):
                del self._of[place]
                return
            waited = self._clock() - missing.since
            missing.due = self._clock() + min(max(_PART * waited, _LEAST_SECONDS), _MOST_SECONDS)
        try:
            why = await prerequisites.unusable(self._client, *place)
        except errors.NotLeader:
            raise
        except errors.ApiError:
            self._wait_for(place).pods |= pods
            return  # asked again
        if why:
            missing = self._wait_for(place)
            missing.pods |= pods
            self._tell(place[1], missing.pods, why)
            return
        missing = self._of.pop(place, None)
        self._tell(place[1], pods | (missing.pods if missing is not None else {}), "")
        if missing is not None:
            self._again(place[0])

    def _wait_for(self, place: _Place) -> _Missing:
        now = self._clock()
        return self._of.setdefault(place, _Missing(now, now + _LEAST_SECONDS))

    def _has_project(self, place: _Place) -> bool:
        return self._state.projects.owner(place[0]) is not None

    def _tell(self, name: str, pods: Iterable[PodUID], why: str) -> None:
        """What is wrong with a claim, or that nothing is; to who is told something else now."""
        for uid in pods:
            pod, of = self._state.pods.known.get(uid), self._open.get(uid)
            if pod is None or of is None or of.get(name, "") == why:
                continue
            if why:
                of[name] = why
            else:
                del of[name]
            self._state.groups.set_problem(pod.job_uid, uid, VOLUMES, self._problem(uid))
            key = self._state.workloads.key_of(pod)
            if key is not None:
                self._state.changes.touch(key)
            self._state.changes.replan()

    def _problem(self, uid: PodUID) -> str:
        why = next(iter(self._open[uid].values()), "")
        return why and (
            f"{VOLUMES}{why}; the pod mounts it: make it, or make the pod anew with another. "
            "Nothing is held for the pod until then, and it goes on by itself"
        )

    def _forget(self) -> None:
        """Pods that wait no more."""
        for uid in [uid for uid in self._open if not self._pod_waits(uid)]:
            del self._open[uid]

    def _has_waiting(self, missing: _Missing) -> bool:
        missing.pods = {uid: None for uid in missing.pods if uid in self._open}
        return bool(missing.pods) or any(map(self._job_waits, missing.jobs))

    def _pod_waits(self, uid: PodUID) -> bool:
        pod = self._state.pods.known.get(uid)
        return pod is not None and pod.stage is Stage.WAITING

    def _job_waits(self, key: JobKey) -> bool:
        job = self._state.gpujobs.get(key)
        waits = job is not None and bool(job.problem) and not job.deleting
        return waits and job is not None and job.problem_as is Reason.VOLUME_NOT_MOUNTED
