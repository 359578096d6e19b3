"""Whether pods of a GPUJob may be planned, asked once for each generation of it.

From then on they wait in the planner's queue, with no object made for them. What the API server
refuses for a quota or a policy is heard when the Job is made, or when its pods do not come.
Thousands of jobs that are made from one template share their spec, and are rendered once in a
while, in whichever namespaces they are.
"""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import intern

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import segment_name
from gpu_scheduler.api.parts import job_name
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.jobs.marks import own_labels
from gpu_scheduler.jobs.next_pod import UnreadableError, like, next_pod
from gpu_scheduler.jobs.unhonoured import unhonoured
from gpu_scheduler.jobs.users_path import users_words
from gpu_scheduler.jobs.write_path import claims
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.jobs.acceptance import Acceptance, Refusal
from gpu_scheduler.runtime.jobs.claims import MissingClaims
from gpu_scheduler.runtime.jobs.creation import NotCreatableError
from gpu_scheduler.runtime.jobs.doubting import inherit
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.slim import slim, too_heavy

Labels = tuple[tuple[str, str], ...]

_SECONDS = 30.0  # as long as what it depends on is not looked up again


@dataclass(frozen=True, slots=True)
class _Accepted:
    spec: weakref.ref[GPUJobSpec]
    at: float
    classes: int  # how often DeviceClasses had changed by then
    templates: Mapping[str, Pod]


class Accepting:
    """Lets GPUJobs into the queue."""

    def __init__(
        self,
        state: ClusterState,
        acceptance: Acceptance,
        claims: MissingClaims | None = None,
        *,
        clock: Callable[[], float],
    ) -> None:
        """``acceptance`` judges them; ``claims``: None: nobody looks at them.

        ``clock``: monotonic seconds.
        """
        self._state = state
        self._acceptance = acceptance
        self._claims = claims
        self._clock = clock
        # By id of the spec and labels; also by namespace where it names what is looked up there.
        # Oldest first.
        self._known: dict[tuple[int, Labels, str], _Accepted] = {}

    async def refused(self, job: GPUJobRecord, project: ProjectName) -> str:
        """Why pods of a GPUJob may not be planned; empty if they may, from now on.

        Raises:
            ClaimMissingError: a claim that its pods mount cannot be used.
            ApiError: the API server could not be asked.
        """
        spec = job.spec
        if job.templates is not None or spec is None:
            return ""
        self._forget_old()
        shared, local = (id(spec), job.labels, ""), (id(spec), job.labels, job.namespace)
        known = self._known.get(shared) or self._known.get(local)
        classes = self._state.device_classes.changes
        if known is not None and (known.spec() is not spec or known.classes != classes):
            known = None
        if known is None or self._acceptance.doubts(job.namespace):
            made = {own.role for own in job.own(self._state.workloads.jobs(job.key))}
            judged = await self._acceptance.judge(job, project, made)
            if isinstance(judged, Refusal):
                return judged.message
            templates = {}
            for each in judged:
                try:
                    pod = next_pod(each.job, job.created)
                except UnreadableError as error:
                    return users_words(spec, each.role, error.problem)
                if why := too_heavy(pod):
                    field, _, what = why.partition(": ")
                    return users_words(spec, each.role, Problem(field, what))
                templates[each.role] = slim(pod)
            if self._claims is not None and not (made or job.key in self._state.jobs.deleted):
                unbound = (name for each in judged for name in each.unbound)
                await self._claims.check_job(job, unbound)
            looked_up = any(claims(each.job["spec"]["template"]["spec"]) for each in judged)
            for old in (shared, local):
                self._known.pop(old, None)
            key = local if looked_up else shared
            self._known[key] = _Accepted(weakref.ref(spec), self._clock(), classes, templates)
        else:
            sweep = spec.sweep is not None
            templates = {
                role: like(
                    pod,
                    job.namespace,
                    segment_name(job.name, 0) if sweep else job_name(job.name, role),
                    own_labels(job.name, project, role),
                    job.created,
                )
                for role, pod in known.templates.items()
            }
        now = self._state.gpujobs.get(job.key)  # its status may be another one meanwhile
        judged_as = (job.uid, job.generation, job.labels)
        if now is not None and (now.uid, now.generation, now.labels) == judged_as:
            inherit(self._state, now, self._clock())
            now.unhonoured = intern(unhonoured(spec))
            self._state.accept(now, templates)
        return ""

    def _forget_old(self) -> None:
        """What was judged long ago, and the templates of specs that are no more."""
        since = self._clock() - _SECONDS
        while self._known:
            key, first = next(iter(self._known.items()))
            if first.at > since and first.spec() is not None:
                return
            del self._known[key]

    async def explained(
        self, job: GPUJobRecord, project: ProjectName, error: NotCreatableError
    ) -> str:
        """Why no Job can be made of a GPUJob, in the API server's words about one of its pods."""
        self.doubt(job)
        self._acceptance.forget(job)
        judged = await self._acceptance.judge(job, project)
        return judged.message if isinstance(judged, Refusal) else str(error)

    def doubt(self, job: GPUJobRecord) -> None:
        """The API server refuses pods of a GPUJob: it is judged again, with a pod that is tried."""
        self._acceptance.doubt(job.namespace)
        self._state.accept(job, None)
