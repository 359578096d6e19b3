"""A leader's term: taken before it lists and places, and asked for at its end.

The chart's policy refuses a placing write of any other term than the one in the annotation of our
LimitRange (ADR 0043), and learns of a new one a moment after it was written. From then on nothing
of an earlier leader lands, and what did land is in the lists that are read next. Whether it has
learnt is asked by a dry run of a Binding for a pod that does not exist: admission comes first, so
"not found" means that the term is known, or that there is no such policy; a term of nobody's tells
these apart.
"""

import asyncio
import itertools
import logging
import re
from collections.abc import Callable
from typing import Any, NoReturn

from gpu_scheduler.api.names import LABEL_PATH, LEASE, TERM
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube import errors, paths
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import LastWords
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)

_NOBODY = "gpu-scheduler-term-probe"  # a pod of this name does no harm: the run is dry
_NO_TERM = "nobody/-1"
_BACKOFF = Backoff(0.005, 1.0)
_REFUSED = Backoff(0.5, 5.0)  # until somebody changes a right or a policy
_ASK_SECONDS = 2.0  # for one question, which stores nothing: another one is as good
_SAY_AFTER_SECONDS, _SAY_AGAIN_SECONDS = 1.0, 30.0

# What the API server says when the chart's policy, whose name ends so, refuses; also when it has no
# LimitRange to go by, or has not read it yet.
_BY_POLICY = re.compile(r"ValidatingAdmissionPolicy '[^']*-term'")


def refuses_term(error: errors.ApiError) -> bool:
    """Whether a write was refused by the policy on terms; the same write may pass later."""
    refusal = isinstance(error, errors.Forbidden | errors.Unprocessable)
    return refusal and _BY_POLICY.search(error.message) is not None


class LeaderTerm:
    """The term of this leader."""

    def __init__(
        self, client: Client, namespace: str, holder: str, *, clock: Callable[[], float]
    ) -> None:
        """``namespace``: of the LimitRange; ``holder``: a name that no other process ever has."""
        self._client = client
        self._holder = holder
        self._clock = clock
        self._namespace = namespace
        self._path = paths.pod(namespace, _NOBODY, "binding")
        self._leaders = paths.core("limitranges", namespace)
        self._began = self._say_at = 0.0
        self._doubted = asyncio.Event()
        self._unread = LastWords(clock)
        self.text = ""
        """Holder and number, as placing writes carry it; empty until ``begin`` is over."""
        self.waiting_for = "it has not been taken yet"
        """Why nothing is placed yet; empty once the term is known."""

    async def begin(self) -> None:
        """Take the next term, and return once no placing write of it is refused for it.

        Any other refusal says nothing about the term: placing writes will meet it as well.

        Raises:
            NotLeader: the fence has closed.
        """
        self._began = self._clock()
        self._say_at = self._began + _SAY_AFTER_SECONDS
        for step in (self._take, self._refusal):
            for attempt in itertools.count():
                try:
                    error = await step()
                except errors.NotLeader:
                    raise
                except Exception as found:  # such as of an answer that is none
                    unexpected("term", f"LimitRange {LEASE}")
                    error = errors.ApiError(message=repr(found))
                if error is None:
                    break
                self._wait(str(error))
                refused = errors.final(error) and not refuses_term(error)
                await asyncio.sleep((_REFUSED if refused else _BACKOFF).delay_seconds(attempt))
        self.waiting_for = ""
        log.info("term %s is accepted after %.3f s", self.text, self._clock() - self._began)

    def doubt(self) -> None:
        """A placing write was refused for its term."""
        self._doubted.set()

    async def run(self) -> NoReturn:
        """See to it, whenever there is doubt, that the LimitRange is ours: somebody may delete it.

        Raises:
            NotLeader: the fence has closed, or it is somebody else's.
        """
        while True:
            await self._doubted.wait()
            self._doubted.clear()
            try:
                holder, _ = _leadership(await self._found())
            except errors.NotLeader:
                raise
            except Exception as error:  # the next refusal brings doubt again
                if self._unread.news(error):
                    log.warning("whose the term is cannot be read: %s", error)
                holder = self._holder
            if not holder:
                log.warning("LimitRange %s is gone: it is made again", LEASE)
                await self.begin()
            elif holder != self._holder:
                raise errors.NotLeader(message=f"LimitRange {LEASE} is that of {holder} now")
            await asyncio.sleep(_BACKOFF.most_seconds)

    def _wait(self, why: str) -> None:
        self.waiting_for = why
        if self._clock() >= self._say_at:
            log.warning(
                "nothing is placed: term %s is not accepted since %.0f s: %s",
                self.text or "of this leader",
                self._clock() - self._began,
                why,
            )
            self._say_at = self._clock() + _SAY_AGAIN_SECONDS

    async def _take(self) -> errors.ApiError | None:
        """Write the next term into the LimitRange; why that was not done, None when it was."""
        try:
            found = await self._found()
            holder, number = _leadership(found)
            text = f"{self._holder}/{number}"
            if holder != self._holder:  # else ours, whose answer was lost
                text = f"{self._holder}/{number + 1}"
                await self._write(found, text)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:  # a conflict: another candidate was faster
            return error
        self.text = text
        return None

    async def _found(self) -> dict[str, Any]:
        try:
            return await self._client.get(f"{self._leaders}/{LEASE}")
        except errors.NotFound:
            return {}

    async def _write(self, found: dict[str, Any], text: str) -> None:
        meta = found.get("metadata") or {"name": LEASE, "namespace": self._namespace}
        body = {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), TERM: text}},
            "spec": {"limits": []},
        }
        if found:
            await self._client.replace(f"{self._leaders}/{LEASE}", body)
        else:
            await self._client.create(self._leaders, body)

    async def guards(self) -> bool:
        """Whether the policy is certainly in force: a write of a term that is over is refused.

        Raises:
            NotLeader: the fence has closed.
        """
        try:
            await self._ask(_NO_TERM)
        except errors.NotLeader:
            raise
        except errors.ApiError as error:
            return refuses_term(error)
        return False

    async def _ask(self, term: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": _NOBODY,
                "namespace": self._namespace,
                "labels": {LABEL_PATH: WritePath.BIND},
                "annotations": {TERM: term},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": _NOBODY},
        }
        await self._client.create(self._path, body, dry_run=True, timeout_seconds=_ASK_SECONDS)

    async def _refusal(self) -> errors.ApiError | None:
        """Why the term is not known to be accepted; None when it is."""
        try:
            await self._ask(self.text)
        except errors.NotLeader:
            raise
        except (errors.NotFound, errors.Conflict):
            return None  # admission has passed
        except errors.Refused as error:
            if refuses_term(error):
                return error
            log.warning("the term cannot be tried out: %s", error)
        except errors.ApiError as error:
            return error
        return None


def _leadership(found: dict[str, Any]) -> tuple[str, int]:
    """Holder and number of a LimitRange's term; nobody's is the term 0."""
    text = ((found.get("metadata") or {}).get("annotations") or {}).get(TERM, "")
    holder, _, number = text.rpartition("/")
    return (holder, int(number)) if holder and number.isdecimal() else ("", 0)
