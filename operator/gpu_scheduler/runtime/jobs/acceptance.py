"""Whether a GPUJob can be accepted: what the CRD's rules cannot see.

Has the pod template judged (``template_judge``), looks up what it refers to, chooses the write
path, and, in a namespace in which pods were refused of late, lets the API server judge a pod by a
dry run, so that a mistake is a sentence in the GPUJob's status and not a Job that never creates a
pod. Roles are judged one by one.
"""

import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.gpujob import GPUJobSpec, Isolation
from gpu_scheduler.api.names import CAP_CONTAINER, PRIORITY_CLASS
from gpu_scheduler.api.parts import PodSet, parts
from gpu_scheduler.api.requests import device_requests
from gpu_scheduler.api.segments import Segment
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.jobs import write_path
from gpu_scheduler.jobs.cap import users_field
from gpu_scheduler.jobs.conflicts import problems
from gpu_scheduler.jobs.priority import class_to_check, preempts
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.jobs.report_token import reports
from gpu_scheduler.jobs.share import Installation
from gpu_scheduler.jobs.template import pod_template
from gpu_scheduler.jobs.users_path import source, users_words
from gpu_scheduler.jobs.write_path import WritePath, claim_need, is_bound
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core, of_group
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.runtime.jobs.refused.quota_words import of_quota, way_out
from gpu_scheduler.runtime.jobs.template_judge import TemplateJudge
from gpu_scheduler.state.jobs.job import GPUJobRecord

_CACHE_SECONDS = 30.0
_OF_LABELS = "; labels of the GPUJob and those in template.metadata.labels are on its pods"
_DOUBT_SECONDS = 600.0  # after a refusal, in which pods of its namespace are tried in advance


@dataclass(frozen=True, slots=True)
class Accepted:
    """A Job to create.

    Attributes:
        job: as JSON.
        path: of its pods.
        role: which; empty where the GPUJob has no roles.
        unbound: claims that its pods mount and that were not found bound.
    """

    job: Mapping[str, Any]
    path: WritePath
    role: str = ""
    unbound: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not: a sentence that names the field and what would be right.

    ``for_now``: a ResourceQuota is used up, and the Job controller will try again.
    """

    message: str
    for_now: bool = False


@dataclass(frozen=True, slots=True)
class Tried:
    """What the API server says of a Job and its pods that it is only to try.

    Attributes:
        refused: it says no.
        pods: to the pods, and not to the Job.
        final: because of what the Job says itself.
    """

    refused: bool
    pods: bool = False
    final: bool = False


class Acceptance:
    """Judges GPUJobs."""

    def __init__(
        self,
        client: Client,
        given: Installation,
        *,
        placement: str,
        namespace: str = "",
        clock: Callable[[], float] = time.monotonic,
        class_of: Callable[[str], str] = lambda resource: "",
    ) -> None:
        """Prepare.

        Args:
            client: for look-ups and dry runs.
            given: the installation, of which its pods depend.
            placement: auto, bind or gate.
            namespace: the operator's, in which templates are tried.
            clock: monotonic seconds.
            class_of: the DeviceClass that serves an extended resource; empty: none does.
        """
        self._client = client
        self._class_of = class_of
        self._given = given
        self._placement = placement
        self._clock = clock
        self._exists: dict[str, tuple[float, bool]] = {}
        self._doubted: dict[str, float] = {}  # namespaces, until when
        self._templates = TemplateJudge(client, namespace, clock=clock)

    def doubt(self, namespace: str) -> None:
        """Pods of a namespace are refused: for a while one of each job is tried in advance."""
        now = self._clock()
        self._doubted = {ns: until for ns, until in self._doubted.items() if until > now}
        self._doubted[namespace] = now + _DOUBT_SECONDS

    def doubts(self, namespace: str) -> bool:
        """Whether a pod of each job of a namespace is tried."""
        return self._doubted.get(namespace, 0.0) > self._clock()

    async def judge(
        self, job: GPUJobRecord, project: ProjectName, made: Container[str] = ()
    ) -> tuple[Accepted, ...] | Refusal:
        """Render the Jobs; where pods of the namespace were refused, try a pod of each.

        Args:
            job: the GPUJob.
            project: whose it is.
            made: roles whose Jobs exist: the API server has taken their templates.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        if job.spec is None:
            raise ValueError(f"{job.key} has no readable spec")
        if job.spec.isolation is Isolation.INTERPOSER and self._given.cap_image is None:
            return Refusal(
                "spec.isolation: interposer is switched off in this installation (chart value "
                "isolation.interposer); leave the field out, or set it to framework"
            )
        for part in parts(job.spec):
            if refused := self._conflict(job.spec, part):
                return refused
        if refused := await self._wrong_template(job.spec, made):
            return refused
        rendered = await self.rendered(job, project)
        for accepted in rendered:
            if refused := await self._preemption(job.spec, accepted):
                return refused
        if self.doubts(job.namespace):
            refused = await self.refusal(job, project)
            if refused is not None and not refused.for_now:
                self.doubt(job.namespace)
                return refused
        return rendered

    async def _wrong_template(self, spec: GPUJobSpec, made: Container[str] = ()) -> Refusal | None:
        """What is wrong in one that no Job was made of; nothing else may look into such a one."""
        for part in parts(spec):
            if part.role not in made and (found := await self._templates.problems(part.spec)):
                return Refusal("; ".join(users_words(spec, part.role, each) for each in found))
        return None

    def forget(self, job: GPUJobRecord) -> None:
        """A Job of these templates was refused: they are judged anew."""
        for part in parts(job.spec) if job.spec is not None else ():
            self._templates.forget(part.spec)

    async def refusal(
        self, job: GPUJobRecord, project: ProjectName, rendered: Sequence[Accepted] = ()
    ) -> Refusal | None:
        """What the API server says now to the pods of a job that was accepted; None: yes.

        ``rendered``: its Jobs, where somebody has rendered them just now.

        Raises:
            ApiError: the API server could not be asked.
        """
        if job.spec is None:
            return None
        for_now = None
        for accepted in rendered or await self.rendered(job, project):
            refused = await self._dry_run(job, job.spec, accepted)
            if refused is not None and not refused.for_now:
                return refused
            for_now = for_now or refused
        return for_now

    async def tried(
        self,
        job: GPUJobRecord,
        project: ProjectName,
        made: Container[str] = (),
        *,
        pods_first: bool = False,
    ) -> Tried:
        """What the API server says now to the Jobs of a job and to their pods.

        Args:
            job: the GPUJob, whose spec can be read.
            project: whose it is.
            made: roles whose Jobs exist.
            pods_first: the pods were what was refused before; nothing is asked beyond the first no.

        Raises:
            ApiError: the API server could not be asked.
        """
        if job.spec is not None and await self._wrong_template(job.spec, made):
            return Tried(refused=True, final=True)
        rendered = await self.rendered(job, project)
        jobs = [each for each in rendered if each.role not in made]
        for pods in (True, False) if pods_first else (False, True):
            if pods and await self.refusal(job, project, rendered) is not None:
                return Tried(refused=True, pods=True)
            for accepted in () if pods else jobs:
                found = await self._try_job(job.namespace, accepted)
                if found.refused:
                    return found
        return Tried(refused=False)

    async def _try_job(self, namespace: str, accepted: Accepted) -> Tried:
        try:
            await self._client.create(job_path(namespace), accepted.job, dry_run=True)
        except errors.Conflict:
            pass  # it exists, or somebody else's does, of which its creation tells
        except errors.Refused as error:
            return Tried(refused=True, final=not errors.by_policy(error))
        return Tried(refused=False)

    def _conflict(self, spec: GPUJobSpec, part: PodSet) -> Refusal | None:
        if part.spec.template is None:
            return None
        found = problems(
            part.spec.template.get("spec") or {},
            [request.container for request in device_requests(part.spec)],
            interposer=self._given.image_for(spec.isolation) is not None,
            checkpoint=spec.checkpoint,
            reports=reports(spec),
        )
        if not found:
            return None
        said = f"{found[0].field}: {found[0].message}"
        return Refusal(said.replace("spec.template", source(spec, part.role), 1))

    async def rendered(
        self, job: GPUJobRecord, project: ProjectName, segment: Segment | None = None
    ) -> tuple[Accepted, ...]:
        """The Jobs as they would be created now, in the order of the roles; of a sweep one."""
        if job.spec is None:
            raise ValueError(f"{job.key} has no readable spec")
        found = []
        for part in parts(job.spec):
            if self._placement == "auto":
                path, unbound = await self._choose(job.namespace, part.spec)
            else:
                path = WritePath(self._placement)
                unbound = write_path.claims(pod_template(part.spec)["spec"])
            inputs = RenderInput(
                name=job.name,
                namespace=job.namespace,
                uid=job.uid,
                spec=job.spec,
                role=part.role,
                segment=segment,
                labels=job.labels,
                project=project,
                path=path,
                runtime_class=self._given.runtime_class,
                cap_image=self._given.image_for(job.spec.isolation),
                has_runtime_class=await self._runtime_class_exists(),
                has_priority_class=await self._has(
                    of_group("scheduling.k8s.io", "v1", "priorityclasses", name=PRIORITY_CLASS)
                ),
            )
            found.append(Accepted(render(inputs), path, part.role, unbound))
        return tuple(found)

    async def _choose(self, namespace: str, spec: GPUJobSpec) -> tuple[WritePath, tuple[str, ...]]:
        """The path, and the claims that are not bound."""
        pod_spec, needs, unbound = pod_template(spec)["spec"], {}, []
        for name in write_path.claims(pod_spec):
            found = await self._claim(namespace, name)
            if found is not None:
                needs[name] = claim_need(*found)
            if found is None or not is_bound(*found):
                unbound.append(name)
        return write_path.choose(pod_spec, needs, self._class_of)[0], tuple(unbound)

    async def _claim(
        self, namespace: str, name: str
    ) -> tuple[Mapping[str, Any], Mapping[str, Any] | None] | None:
        """A claim and its volume, if it has one; None: there is none, or its volume is gone."""
        try:
            claim = await self._client.get(core("persistentvolumeclaims", namespace, name))
            volume_name = claim["spec"].get("volumeName")
            volume = (
                await self._client.get(core("persistentvolumes", name=volume_name))
                if volume_name
                else None
            )
        except errors.NotFound:
            return None
        return claim, volume

    async def _runtime_class_exists(self) -> bool:
        if not self._given.runtime_class:
            return False
        return await self._has(
            of_group("node.k8s.io", "v1", "runtimeclasses", name=self._given.runtime_class)
        )

    async def _has(self, path: str) -> bool:
        asked, known = self._exists.get(path, (-_CACHE_SECONDS, False))
        if self._clock() - asked < _CACHE_SECONDS:
            return known
        try:
            await self._client.get(path)
            known = True
        except errors.NotFound:
            known = False
        self._exists[path] = (self._clock(), known)
        return known

    async def _preemption(self, spec: GPUJobSpec, accepted: Accepted) -> Refusal | None:
        name = class_to_check(accepted.path, accepted.job["spec"]["template"]["spec"])
        if not name:
            return None
        try:
            found = await self._client.get(
                of_group("scheduling.k8s.io", "v1", "priorityclasses", name=name)
            )
        except errors.NotFound:
            return None  # which the dry run says
        if not preempts(found):
            return None
        return Refusal(
            f"{source(spec, accepted.role)}.spec.priorityClassName: {name} would let these pods, "
            "which kube-scheduler binds, preempt others on the node of their GPU; leave the field "
            "out, or name a PriorityClass with preemptionPolicy Never"
        )

    async def _dry_run(
        self, job: GPUJobRecord, spec: GPUJobSpec, accepted: Accepted
    ) -> Refusal | None:
        template = accepted.job["spec"]["template"]
        # A name of its own each time would make every refusal another one, for it stands in it.
        meta = {**template.get("metadata", {}), "name": f"{job.name}-dry-run"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
        where = source(spec, accepted.role)
        try:
            await self._client.create(core("pods", job.namespace), pod, dry_run=True)
        except errors.Forbidden as error:
            said = error.message.removeprefix(f'pods "{meta["name"]}" is forbidden: ')
            if of_quota(error):
                return Refusal(
                    f"namespace {job.namespace}: {said}. {way_out(said, where)} (kubectl "
                    f"describe resourcequota -n {job.namespace})",
                    for_now=True,
                )
            more = _OF_LABELS if "label" in said else ""
            return Refusal(f"{where}: no pod of this template may be created: {said}{more}")
        except (errors.Unprocessable, errors.BadRequest) as error:
            causes = error.details.causes
            if causes:
                said = causes[0].field
                field = "" if said == "spec" else said.removeprefix("spec.")
                if any(c["name"] == CAP_CONTAINER for c in _first(template["spec"])):
                    field = users_field(field)
                below = "" if field.startswith("metadata.") else "spec."
                place = f"{where} ({field})" if field else where
                if field and where.endswith("template"):
                    place = f"{where}.{below}{field}"
                return Refusal(f"{place}: {causes[0].message}")
            return Refusal(f"{where}: the API server refuses such a pod: {error.message}")
        except errors.Conflict:
            return None  # somebody's pod is called so; that is looked at last
        except errors.NotFound:
            return None  # the namespace is going away
        return None


def _first(pod_spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The first init container, where there is one."""
    return (pod_spec.get("initContainers") or ())[:1]
