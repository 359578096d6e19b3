"""Writing status: only what changed, and for one object at most once per ``status_seconds``.

The first news of an object is written at once, before what others wait to say, so a verdict is
there after the first planning cycle; what follows is gathered, and whoever waits longest is next.
A status that cannot be written is tried again. Events accompany what a user should see in
``kubectl describe``.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from gpu_scheduler.api.condition import ConditionType
from gpu_scheduler.api.gpujob import FINISHED, GPUJobStatus, Phase
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.states import event_kind
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.kube.times import utc_now
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.custom_resources import GPUJOBS, GPUPROJECTS, CustomResources
from gpu_scheduler.runtime.events import Events, Subject
from gpu_scheduler.runtime.last_plan import LastPlan
from gpu_scheduler.runtime.overview import Overview, survey
from gpu_scheduler.runtime.preemption import Preemption
from gpu_scheduler.runtime.project_status import project_status
from gpu_scheduler.runtime.protection import Watched
from gpu_scheduler.runtime.states import NOTHING, Known
from gpu_scheduler.runtime.status import gpujob_status
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs import GPUJobRecord
from gpu_scheduler.sweeps.runtime.status import Judged

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.05
_IN_FLIGHT = 10
_BEGUN = 200  # at most: what is begun cannot be overtaken
_AT_A_TIME = 20  # statuses that are worked out before others have their turn: some milliseconds


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one status to another: null for what is no longer there."""
    keys = before.keys() | after.keys()
    return {k: after.get(k) for k in sorted(keys) if before.get(k) != after.get(k)}


def turned_bad(before: Mapping[str, Any], after: GPUJobStatus) -> list[tuple[str, str]]:
    """Reason and message of what agents warn of, as far as the status did not say so before."""
    known = {
        (c.get("type"), c.get("status"), c.get("reason")) for c in before.get("conditions") or ()
    }
    return [
        (c.reason, c.message)
        for c in after.conditions
        if c.type in (ConditionType.PROTECTED, ConditionType.DEVICES_HEALTHY)
        and c.status == "False"
        and (c.type, c.status, c.reason) not in known
    ]


class StatusWriter:
    """Keeps the status of GPUJobs and GPUProjects."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        planning: LastPlan,
        custom_resources: CustomResources,
        events: Events,
        preemption: Preemption,
        *,
        finished: Callable[[JobKey], None],
        judged: Callable[[GPUJobRecord], Judged | None] = lambda job: None,
        known: Callable[[GPUJobRecord], Known] = lambda job: NOTHING,
        status_seconds: float,
        clock: Callable[[], float],
        now: Callable[[], str] = utc_now,
    ) -> None:
        """``finished`` is told of each job whose end was written; ``judged`` looks at sweeps.

        ``known``: what others know of a job; what the planner knows is added. ``clock`` tells when
        to write, ``now`` dates conditions.
        """
        self._now = now
        self._judged, self._known = judged, known
        self._state, self._client, self._planning = state, client, planning
        self._custom_resources, self._events, self._finished = custom_resources, events, finished
        self._preemption = preemption
        self._shares_milli: Mapping[ProjectName, int] = {}
        self._interval, self._clock = status_seconds, clock
        self._watched = Watched(state.agents.reports, state.nodes.sick_devices)
        self._written: dict[str, float] = {}  # uid -> when, monotonic seconds; the oldest first
        self._line: dict[JobKey, None] = {}  # jobs that have something to say, the first first
        self._busy: set[str] = set()
        self._slots = asyncio.Semaphore(_IN_FLIGHT)
        self._project_version = -1
        self._projects_again_at = 0.0  # monotonic seconds
        self.writes = 0

    async def run(self) -> NoReturn:
        """Write for ever; ends with NotLeader when the fence closes."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(_TICK_SECONDS)
                try:
                    for number, key in enumerate(self._due_jobs(), 1):
                        group.create_task(self._once(key, partial(self._job, key)))
                        if number % _AT_A_TIME == 0:
                            await asyncio.sleep(0)
                except Exception:
                    unexpected("status", "a look at all jobs")
                try:
                    self._write_projects(group)
                except Exception:  # all projects are due again with the next plan
                    unexpected("status", "a look at all projects")
                    self._project_version = -1
                    self._projects_again_at = self._clock() + self._interval
        raise AssertionError("the loop does not end")

    def _due_jobs(self) -> list[JobKey]:
        touched, room = self._state.take_touched(), _BEGUN - len(self._busy)
        first = [key for key in touched if self._says_nothing_yet(key)]
        self._line |= dict.fromkeys(touched)
        due: list[JobKey] = []
        for key in (*first, *self._line):
            if len(due) >= room:
                break
            job = self._state.gpujobs.get(key)
            if job is None or job.deleting:
                self._line.pop(key, None)
            elif key in self._line and key not in self._busy and self._may_write(job.uid):
                del self._line[key]
                due.append(key)
        return due

    def _says_nothing_yet(self, key: JobKey) -> bool:
        job = self._state.gpujobs.get(key)
        return job is not None and not job.status.get("phase")

    def _write_projects(self, group: asyncio.TaskGroup) -> None:
        """One look for all projects that are due; the next when ten times as long has passed."""
        started = self._clock()
        due = self._due_projects() if started >= self._projects_again_at else []
        if not due:
            return
        overview = survey(self._state, self._planning.shares_by_model_milli, self._planning.waits)
        for name in due:
            group.create_task(self._once(name, partial(self._project, name, overview)))
        self._projects_again_at = self._clock() + 10 * (self._clock() - started)

    def _due_projects(self) -> list[ProjectName]:
        if not self._planning.cycles:
            return []  # shares are not known yet
        shares = self._planning.shares_milli
        if self._state.version != self._project_version or shares != self._shares_milli:
            self._project_version, self._shares_milli = self._state.version, shares
            self._custom_resources.projects_touched.update(self._state.projects.records)
        due = []
        for name in tuple(self._custom_resources.projects_touched):
            record = self._state.projects.records.get(name)
            if record is None:
                self._custom_resources.projects_touched.discard(name)
            elif name not in self._busy and self._may_write(record.uid):
                self._custom_resources.projects_touched.discard(name)
                due.append(name)
        return due

    def _may_write(self, uid: str) -> bool:
        written = self._written.get(uid)
        return written is None or self._clock() - written >= self._interval

    def _note_write(self, uid: str) -> None:
        now = self._clock()
        self._written.pop(uid, None)
        self._written[uid] = now
        while now - self._written[oldest := next(iter(self._written))] >= self._interval:
            del self._written[oldest]

    async def _once(self, key: str, write: Callable[[], Awaitable[None]]) -> None:
        self._busy.add(key)
        try:
            async with self._slots:
                await write()
        except errors.NotLeader:
            raise
        except Exception:  # a mistake of ours about one object must not stop all others
            unexpected("status", key)
        finally:
            self._busy.discard(key)

    async def _job(self, key: JobKey) -> None:
        state = self._state
        job = state.gpujobs.get(key)
        if job is None:
            return
        status = gpujob_status(
            job,
            state.jobs_of(key),
            state.records(key),
            project=state.projects.owner(job.namespace),
            now=self._now(),
            known=replace(
                self._known(job),
                wait=self._planning.waits.get(key),
                preempted=self._preemption.of(key),
                assumed=state.assumed,
            ),
            watched=self._watched,
            sweep=self._judged(job),
            aside=self._planning.aside.job(key),
        )
        if status.preempted_by is None:
            self._preemption.forget(key)
        subject = Subject.of_job(job)
        if strangers := state.job_book.to_tell(job):
            self._events.say(subject, "Warning", "StrangeJob", strangers)
        patch = difference(job.status, status.to_json())
        if not patch:
            return
        self._note_write(job.uid)
        path = of_group(GROUP, VERSION, GPUJOBS, job.namespace, job.name, "status")
        before = job.status
        if await self._patch(path, job.uid, patch):
            job.status = status.to_json()
            self._report(subject, before, status)
            if status.phase != before.get("phase"):
                self._custom_resources.phase_changed(job)
            if status.phase in FINISHED:
                self._finished(key)
        else:
            state.touch(key)

    def _report(self, subject: Subject, before: Mapping[str, Any], after: GPUJobStatus) -> None:
        told = after.reason == Reason.PREEMPTED  # when it was decided, with more detail
        kind = event_kind(after.reason)
        if kind and after.reason != before.get("reason") and not told:
            self._events.say(subject, kind, after.reason, after.message)
        if after.first_failure and not before.get("firstFailure"):
            self._events.say(subject, "Warning", "PodFailed", after.first_failure)
        if after.phase != before.get("phase") and after.phase in FINISHED:
            kind = "Warning" if after.phase is Phase.FAILED else "Normal"
            self._events.say(subject, kind, after.phase, after.message or "every index is done")
        for reason, message in turned_bad(before, after):
            self._events.say(subject, "Warning", reason, message)

    async def _project(self, name: ProjectName, overview: Overview) -> None:
        state = self._state
        record = state.projects.records.get(name)
        if record is None:
            return
        before = self._custom_resources.project_status.get(name, {})
        status = project_status(
            record,
            allocated_milli=overview.allocated_milli.get(name, 0),
            fair_share_milli=self._planning.shares_milli.get(name, 0),
            waiting=overview.waiting.get(name, ()),
            running_jobs=overview.running.get(name, 0),
            broken=overview.promise.broken(record.project),
            by_model=overview.by_model.get(name, ()),
            conflicts=state.projects.conflicts(name),
            aside=self._planning.aside.project(name),
            before=before,
            now=self._now(),
        ).to_json()
        patch = difference(before, status)
        if not patch:
            return
        self._note_write(record.uid)
        path = of_group(GROUP, VERSION, GPUPROJECTS, name=name, subresource="status")
        if await self._patch(path, record.uid, patch):
            self._custom_resources.project_status[name] = status
        else:
            self._custom_resources.projects_touched.add(name)

    async def _patch(self, path: str, uid: str, status: Mapping[str, Any]) -> bool:
        self.writes += 1
        try:
            body = {"metadata": {"uid": uid}, "status": status}
            await self._client.merge_patch(path, body)
        except errors.NotLeader:
            raise
        except errors.NotFound:
            return True  # the watch brings the news
        except errors.Unprocessable as error:  # or another object of that name
            log.error("status at %s refused: %s", path, error)
            return True
        except errors.ApiError as error:
            log.warning("status at %s not written: %s", path, error)
            return False
        return True
