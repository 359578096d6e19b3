"""The Services of jobs whose pods know of each other: looked at now and then, since no watch tells.

The reconciler makes a Service before the first Job. One that somebody deletes afterwards takes the
host names of the pods with it, and those that start later would look for their peers in vain: so
each second the Service of one job is looked at, in turn, and is made again or told of. The operator
may read Services by name, and create them, and nothing more.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from gpu_scheduler.api.names import LABEL_JOB
from gpu_scheduler.api.parts import is_distributed
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.marks import label_value
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.jobs.creation import NotCreatableError, StaleJobError, create_service
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0


class _Spec(msgspec.Struct, frozen=True):
    selector: dict[str, str] = {}


class Service(msgspec.Struct, frozen=True):
    """A Service, as far as it gives names."""

    metadata: Meta = Meta()
    spec: _Spec = _Spec()


class Services:
    """Keeps Services as they should be."""

    def __init__(
        self,
        state: ClusterState,
        client: Client,
        events: Events,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``events``: where it is told what cannot be put back; ``clock``: monotonic seconds."""
        self._state = state
        self._client = client
        self._events = events
        self._failures: Failures[JobKey] = Failures(clock)
        self._line: deque[JobKey] = deque()

    async def run(self) -> NoReturn:
        """Look for ever; ends with NotLeader when the fence closes."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            job = self._next()
            if job is None:
                continue
            try:
                await self._look(job)
                self._failures.over(job.key)
            except errors.NotLeader:
                raise
            except (errors.ApiError, StaleJobError) as error:
                self._failed(job, error)
            except NotCreatableError as error:
                self._failed(job, error.__cause__ or error)
                message = f"{error}: pods of this job do not find each other"
                self._events.say(InvolvedObject.of_job(job), "Warning", "ServiceChanged", message)
            except Exception:
                unexpected("services", job.key)

    def _failed(self, job: GPUJobRecord, error: BaseException) -> None:
        if self._failures.note(job.key, error):
            log.info("Service of %s: %s", job.key, error)

    def _next(self) -> GPUJobRecord | None:
        if not self._line:
            self._line.extend(key for key, job in self._state.gpujobs.items() if self._has_one(job))
        while self._line:
            job = self._state.gpujobs.get(self._line.popleft())
            if job is None or not self._has_one(job):
                continue
            if self._failures.may_try(job.key):
                return job
        return None

    def _has_one(self, job: GPUJobRecord) -> bool:
        """Whether a job has a Service, and pods that may need it."""
        going = job.deleting or job.problem or job.namespace in self._state.namespaces.terminating
        if going or job.spec is None or not is_distributed(job.spec):
            return False
        own = [each for each in self._state.workloads.jobs(job.key) if not each.deleting]
        return bool(own) and not all(each.complete or each.failure for each in own)

    async def _look(self, job: GPUJobRecord) -> None:
        try:
            found = await self._client.get(core("services", job.namespace, job.name), Service)
        except errors.NotFound:
            project = self._state.projects.owner(job.namespace)
            if project is not None:
                await create_service(self._client, job, project)
                log.warning("%s: its Service was deleted, and is made again", job.key)
            return
        if why := _misses(found, job):
            subject = InvolvedObject.of_job(job)
            message = (
                f"Service {job.name} {why}: pods of this job do not find each other. Delete it "
                f"(kubectl delete service {job.name}), and it is made again"
            )
            self._events.say(subject, "Warning", "ServiceChanged", message)


def _misses(found: Service, job: GPUJobRecord) -> str:
    """What is wrong with a Service; empty if it gives the pods their names."""
    wanted: dict[str, Any] = {LABEL_JOB: label_value(job.name)}
    if not any(owner.uid == job.uid for owner in found.metadata.owner_references):
        return "is not this GPUJob's"
    if found.spec.selector != wanted:
        return f"selects {dict(list(found.spec.selector.items())[:4])} instead of {wanted}"
    return ""
