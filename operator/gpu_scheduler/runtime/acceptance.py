"""Whether a GPUJob can be accepted: what the CRD's rules cannot see.

Looks up what the pod template refers to, chooses the write path, and lets the API server judge the
pod by a dry run, so that a mistake is a sentence in the GPUJob's status and not a Job that never
creates a pod. Called by the reconciler, once per GPUJob before its Job is created.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.api.gpujob import Isolation
from gpu_scheduler.api.names import PRIORITY_CLASS
from gpu_scheduler.core.request import ProjectName
from gpu_scheduler.jobs import path as paths
from gpu_scheduler.jobs.cap import CapImage, users_field
from gpu_scheduler.jobs.conflicts import problems
from gpu_scheduler.jobs.path import ClaimFacts, Path, claim_facts
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core, of_group
from gpu_scheduler.state.jobs import GPUJobRecord

_CACHE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The Job to create."""

    job: Mapping[str, Any]
    path: Path


@dataclass(frozen=True, slots=True)
class Refused:
    """Why not: a sentence that names the field and what would be right."""

    message: str


class Acceptance:
    """Judges GPUJobs."""

    def __init__(
        self,
        client: Client,
        *,
        placement: str,
        runtime_class: str,
        isolation: str = Isolation.FRAMEWORK,
        cap_image: CapImage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare.

        Args:
            client: for look-ups and dry runs.
            placement: auto, bind or gate.
            runtime_class: of GPU pods; empty: never set.
            isolation: of GPUJobs that say nothing about it.
            cap_image: what brings libgpucap; without it nothing is ever put into a pod.
            clock: monotonic seconds.
        """
        self._isolation, self._cap_image = isolation, cap_image
        self._client, self._placement, self._clock = client, placement, clock
        self._runtime_class = runtime_class
        self._exists: dict[str, tuple[float, bool]] = {}

    async def judge(self, job: GPUJobRecord, project: ProjectName) -> Accepted | Refused:
        """Render the Job and try its pod.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        if refused := self._conflict(job):
            return refused
        rendered = await self.rendered(job, project)
        refusal = await self._dry_run(job, rendered.job)
        return rendered if refusal is None else refusal

    def _conflict(self, job: GPUJobRecord) -> Refused | None:
        if job.spec is None:
            return None
        if job.spec.isolation is Isolation.INTERPOSER and self._cap_image is None:
            return Refused(
                "spec.isolation: interposer is switched off in this installation (chart value "
                "isolation.interposer); leave the field out, or set it to framework"
            )
        if job.spec.template is None:
            return None
        found = problems(
            job.spec.template.get("spec") or {},
            [request.container for request in job.requests],
            interposer=self._cap_image_of(job) is not None,
        )
        return Refused(f"{found[0].field}: {found[0].message}") if found else None

    def _cap_image_of(self, job: GPUJobRecord) -> CapImage | None:
        wanted = (job.spec.isolation if job.spec else None) or self._isolation
        return self._cap_image if wanted == Isolation.INTERPOSER else None

    async def rendered(self, job: GPUJobRecord, project: ProjectName) -> Accepted:
        """The Job as it would be created now."""
        if job.spec is None:
            raise ValueError(f"{job.key} has no readable spec")
        path = Path(self._placement) if self._placement != "auto" else await self._choose(job)
        inputs = RenderInput(
            name=job.name,
            namespace=job.namespace,
            uid=job.uid,
            spec=job.spec,
            project=project,
            path=path,
            runtime_class=self._runtime_class,
            cap_image=self._cap_image_of(job),
            has_runtime_class=await self._runtime_class_exists(),
            has_priority_class=await self._has(
                of_group("scheduling.k8s.io", "v1", "priorityclasses", name=PRIORITY_CLASS)
            ),
        )
        return Accepted(render(inputs), path)

    async def _choose(self, job: GPUJobRecord) -> Path:
        spec = (job.spec.template or {}).get("spec") or {} if job.spec else {}
        facts = {}
        for name in paths.claims(spec):
            found = await self._claim(job.namespace, name)
            if found is not None:
                facts[name] = found
        return paths.choose(spec, facts)[0]

    async def _claim(self, namespace: str, name: str) -> ClaimFacts | None:
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
        return claim_facts(claim, volume)

    async def _runtime_class_exists(self) -> bool:
        if not self._runtime_class:
            return False
        return await self._has(
            of_group("node.k8s.io", "v1", "runtimeclasses", name=self._runtime_class)
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

    async def _dry_run(self, job: GPUJobRecord, rendered: Mapping[str, Any]) -> Refused | None:
        template = rendered["spec"]["template"]
        meta = {**template.get("metadata", {}), "generateName": f"{job.name}-dry-run-"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
        where = "spec.template" if job.spec and job.spec.template else "spec"
        try:
            await self._client.create(core("pods", job.namespace), pod, dry_run=True)
        except errors.Forbidden as error:
            if "exceeded quota" in error.message:
                return None  # a ResourceQuota that is full now: the Job controller tries again
            return Refused(f"{where}: no pod of this template may be created: {error.message}")
        except (errors.Unprocessable, errors.BadRequest) as error:
            causes = error.details.causes
            if causes:
                field = causes[0].field.removeprefix("spec.")
                if self._cap_image_of(job) is not None:
                    field = users_field(field)
                place = f"{where}.spec.{field}" if where.endswith("template") else f"spec ({field})"
                return Refused(f"{place}: {causes[0].message}")
            return Refused(f"{where}: the API server refuses such a pod: {error.message}")
        except errors.NotFound:
            return None  # the namespace is going away
        return None
