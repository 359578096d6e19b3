"""The API server's own judgement of pod templates, before anything is planned for their jobs.

A template is tried by a strict dry run of a PodTemplate in the operator's own namespace, where no
tenant's quota, policy or webhook has a say, once for each digest of what the judgement depends on:
thousands of jobs of one template are one request (ADR 0056). What the API server takes there we
take, and what it refuses is told in words of the template (``template_words``).
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.jobs.levelled import digest, levelled
from gpu_scheduler.jobs.template_words import TemplateWords
from gpu_scheduler.kube import errors, pod_schema
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core
from gpu_scheduler.limits.bounded import Bounded

log = logging.getLogger(__name__)

KEPT_SECONDS = 600.0  # a judgement; the API server may be another one by then
_KEPT_BYTES = 4 << 20  # of them all
_ANSWER_SECONDS = 5.0
_SCHEMA_SECONDS = 3600.0  # the fields of a pod, once they are known
_SCHEMA_AGAIN_SECONDS = 60.0  # where they could not be read
_MOST_TOLD = 3
_MOST_CHARS = 500

_NAME = "gpu-scheduler-judged"  # of a PodTemplate that is never stored
_UNREAD = 'PodTemplate in version "v1" cannot be handled as a PodTemplate: '
_TEMPLATE = "template."
_UNKNOWN = re.compile(r'unknown field "template\.([^"]{1,300})"')

Problems = tuple[Problem, ...]


@dataclass(slots=True)
class _Question:
    """One that is being asked; others who have the same wait for its answer."""

    answered: asyncio.Event = field(default_factory=asyncio.Event)
    error: errors.ApiError | None = None


class TemplateJudge:
    """Asks about templates, and remembers the answers."""

    def __init__(self, client: Client, namespace: str, *, clock: Callable[[], float]) -> None:
        """``namespace``: the operator's; ``clock``: monotonic seconds."""
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._known: Bounded[bytes, tuple[float, Problems]] = Bounded(_KEPT_BYTES)
        self._asked: dict[bytes, _Question] = {}
        self._may = True
        self._words: TemplateWords | None = None
        self._words_until = 0.0
        self._reading = asyncio.Lock()

    async def problems(self, spec: GPUJobSpec) -> Problems:
        """What is wrong in the pod template of a part of a GPUJob; paths are below the template.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        template = levelled(spec)
        key = digest(template)
        if (question := self._asked.get(key)) is not None:
            await question.answered.wait()
            if question.error is not None:
                raise question.error
        until, found = self._known.get(key) or (0.0, ())
        if self._clock() < until:
            return found
        question = self._asked[key] = _Question()
        try:
            found = await self._ask(template)
        except errors.ApiError as error:
            question.error = error
            raise
        else:
            until, size = self._clock() + KEPT_SECONDS, sum(len(str(each)) for each in found)
            self._known.put(key, (until, found), size)
        finally:
            del self._asked[key]
            question.answered.set()
        return found

    def forget(self, spec: GPUJobSpec) -> None:
        """A Job of this template was refused after all."""
        self._known.pop(digest(levelled(spec)))

    async def _ask(self, template: dict[str, Any]) -> Problems:
        """What is wrong in a template, nothing where the API server says nothing about it."""
        body = {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": _NAME},
            "template": template,
        }
        try:
            await self._client.create(
                core("podtemplates", self._namespace),
                body,
                dry_run=True,
                strict=True,
                retry=False,
                timeout_seconds=_ANSWER_SECONDS,
            )
        except errors.BadRequest as error:
            if error.message.startswith(_UNREAD):
                return await self._unread(error, template)
            self._cannot(error)
        except errors.Unprocessable as error:
            return tuple(islice(_causes(error), _MOST_TOLD))
        except errors.Conflict:
            pass  # somebody's is called so; validation comes first
        except errors.Refused as error:
            self._cannot(error)
        else:
            self._may = True
        return ()

    def _cannot(self, error: errors.ApiError) -> None:
        """Templates cannot be tried; whoever makes their Jobs hears what is wrong."""
        if self._may:
            log.warning("pod templates are judged no sooner than by their Jobs: %s", error)
        self._may = False

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
        async with self._reading:
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
    """What validation finds in the template; what a policy says has no such field."""
    for cause in error.details.causes:
        if cause.field.startswith(_TEMPLATE):
            at = cause.field.removeprefix(_TEMPLATE)
            if at.startswith(("labels", "annotations")):  # which validation has without its parent
                at = f"metadata.{at}"
            yield Problem(at[:_MOST_CHARS], clip(cause.message, _MOST_CHARS))
