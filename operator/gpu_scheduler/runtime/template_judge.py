"""The API server's own judgement of pod templates, before anything is planned for their jobs.

A template is tried by a strict dry run of a Job, once for each digest of what the judgement depends
on: thousands of jobs of one template are one request. What the API server takes there we take, and
what it refuses is told in words of the template (``template_words``). Quotas, policies and webhooks
judge the Job that is made, not the template; so does whoever makes it. Called by ``acceptance``.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.core.wording import clip
from gpu_scheduler.jobs.template_words import TemplateWords
from gpu_scheduler.jobs.tried import digest, levelled, tried_job
from gpu_scheduler.kube import errors, pod_schema
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import job as job_path
from gpu_scheduler.state.jobs import GPUJobRecord

KEPT_SECONDS = 600.0  # a judgement; the API server may be another one by then
_MOST_KEPT = 4096
_ANSWER_SECONDS = 5.0  # a webhook that is slow for one namespace keeps no worker from the others
_SCHEMA_SECONDS = 3600.0  # the fields of a pod, once they are known
_SCHEMA_AGAIN_SECONDS = 60.0  # where they could not be read
_MOST_TOLD = 3
_MOST_CHARS = 500

_UNREAD = 'Job in version "v1" cannot be handled as a Job: '
_TEMPLATE = "spec.template."
_UNKNOWN = re.compile(r'unknown field "spec\.template\.([^"]{1,300})"')

Problems = tuple[Problem, ...]
_Key = tuple[str, bytes]  # namespace, empty for all; digest


@dataclass(slots=True)
class _Question:
    """One that is being asked; others who have the same wait for its answer."""

    answered: asyncio.Event = field(default_factory=asyncio.Event)
    error: errors.ApiError | None = None


class TemplateJudge:
    """Asks about templates, and remembers the answers."""

    def __init__(self, client: Client, *, clock: Callable[[], float]) -> None:
        """``clock``: monotonic seconds."""
        self._client, self._clock = client, clock
        self._known: dict[_Key, tuple[float, Problems]] = {}
        self._asked: dict[_Key, _Question] = {}
        self._words: TemplateWords | None = None
        self._words_until = 0.0

    async def problems(self, job: GPUJobRecord, project: ProjectName, spec: GPUJobSpec) -> Problems:
        """What is wrong in the pod template of a part of a GPUJob; paths are below the template.

        Args:
            job: the GPUJob.
            project: whose it is.
            spec: of the part.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        template = levelled(spec)
        of_all, here = ("", digest(template)), (job.namespace, digest(template))
        while (question := self._asked.get(here)) is not None:
            await question.answered.wait()
            if question.error is not None:
                raise question.error
        for key in (of_all, here):
            until, found = self._known.get(key, (0.0, ()))
            if self._clock() < until:
                return found
        question = self._asked[here] = _Question()
        try:
            taken, found = await self._ask(job, project, template)
        except errors.ApiError as error:
            question.error = error
            raise
        finally:
            del self._asked[here]
            question.answered.set()
        # A webhook of this namespace may have refused what others are allowed.
        self._keep(of_all if taken else here, found)
        return found

    def forget(self, job: GPUJobRecord, spec: GPUJobSpec) -> None:
        """A Job of this template was refused after all."""
        of = digest(levelled(spec))
        for key in (("", of), (job.namespace, of)):
            self._known.pop(key, None)

    def _keep(self, key: _Key, found: Problems) -> None:
        if len(self._known) >= _MOST_KEPT:
            del self._known[next(iter(self._known))]
        self._known[key] = (self._clock() + KEPT_SECONDS, found)

    async def _ask(
        self, job: GPUJobRecord, project: ProjectName, template: dict[str, Any]
    ) -> tuple[bool, Problems]:
        """Whether the API server takes a Job of a template, and what is wrong in the template."""
        try:
            await self._client.create(
                job_path(job.namespace),
                tried_job(job.name, job.namespace, job.uid, project, template),
                dry_run=True,
                strict=True,
                retry=False,
                timeout_seconds=_ANSWER_SECONDS,
            )
        except errors.BadRequest as error:
            if error.message.startswith(_UNREAD):
                return False, await self._unread(error, template)
            return False, ()  # a webhook that cannot be asked by a dry run
        except errors.Unprocessable as error:
            return False, tuple(islice(_causes(error), _MOST_TOLD))
        except (errors.Forbidden, errors.NotFound, errors.Conflict):
            # A quota, a policy, a Job that is there already: nothing about the template.
            return False, ()
        return True, ()

    async def _unread(self, error: errors.BadRequest, template: dict[str, Any]) -> Problems:
        """Why a template cannot be read: where it is wrong, or else what the API server says."""
        said = error.message.removeprefix(_UNREAD)
        words = await self._known_words()
        if words is not None:
            found = tuple(islice(words.problems(template), _MOST_TOLD))
            if found:
                return tuple(Problem(p.field, clip(p.message, _MOST_CHARS)) for p in found)
        unknown = tuple(Problem(at, "unknown field") for at in _UNKNOWN.findall(said))
        whole = Problem("spec", f"cannot be read as a pod: {clip(said, _MOST_CHARS)}")
        return unknown[:_MOST_TOLD] or (whole,)

    async def _known_words(self) -> TemplateWords | None:
        """The fields of a pod as this API server has them; None: they cannot be had at present."""
        now = self._clock()
        if now >= self._words_until:
            self._words_until = now + _SCHEMA_AGAIN_SECONDS
            try:
                document = await self._client.get(pod_schema.PATH, pod_schema.Document)
            except (errors.ApiError, msgspec.DecodeError):
                return self._words
            self._words = TemplateWords(pod_schema.PodSchema(document))
            self._words_until = now + _SCHEMA_SECONDS
        return self._words


def _causes(error: errors.Unprocessable) -> Iterator[Problem]:
    """What validation finds in the template; what policies and webhooks say has no such field."""
    for cause in error.details.causes:
        if cause.field.startswith(_TEMPLATE):
            at = cause.field.removeprefix(_TEMPLATE)
            if at.startswith(("labels", "annotations")):  # which validation has without its parent
                at = f"metadata.{at}"
            yield Problem(at[:_MOST_CHARS], clip(cause.message, _MOST_CHARS))
