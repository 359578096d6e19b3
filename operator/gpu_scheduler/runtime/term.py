"""Whether the API server goes by terms: asked before a leader lists and places, and at its end.

The chart's policy refuses a placing write of any other term than the one in the Lease (ADR 0031),
and learns of a new Lease a moment after it was written. From then on nothing of an earlier leader
lands, and what did land is in the lists that are read next. Asked by a dry run of a Binding for a
pod that does not exist: admission comes first, so "not found" means that the term is known, or that
there is no such policy; a term of nobody's tells these apart. Called by ``operator``.
"""

import asyncio
import logging
import re
from collections.abc import Callable

from gpu_scheduler.api.names import LABEL_PATH, TERM
from gpu_scheduler.jobs.path import Path
from gpu_scheduler.kube import errors, paths
from gpu_scheduler.kube.client import Client

log = logging.getLogger(__name__)

_NOBODY = "gpu-scheduler-term-probe"  # a pod of this name does no harm: the run is dry
_NO_TERM = "nobody/-1"
_FIRST_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.005, 1.0
_SAY_AFTER_SECONDS, _SAY_AGAIN_SECONDS = 1.0, 30.0

# What the API server says when the chart's policy, whose name ends so, refuses; also when it has no
# Lease to go by, or has not read it yet.
_BY_POLICY = re.compile(r"ValidatingAdmissionPolicy '[^']*-term'")


def refuses_term(error: errors.ApiError) -> bool:
    """Whether a write was refused by the policy on terms; the same write may pass later."""
    refusal = isinstance(error, errors.Forbidden | errors.Unprocessable)
    return refusal and _BY_POLICY.search(error.message) is not None


class TermProbe:
    """Asks the API server about a term."""

    def __init__(
        self, client: Client, namespace: str, term: str, *, clock: Callable[[], float]
    ) -> None:
        """``namespace``: any that exists, best the Lease's own."""
        self._client, self._term, self._clock = client, term, clock
        self._namespace, self._path = namespace, paths.pod(namespace, _NOBODY, "binding")
        self.waiting_for = ""
        """Why nothing is placed yet; empty once the term is known."""

    async def known(self) -> None:
        """Return once a placing write of this term is not refused for its term.

        Any other refusal says nothing about the term: placing writes will meet it as well.

        Raises:
            NotLeader: the fence has closed.
        """
        started = say_at = self._clock()
        say_at += _SAY_AFTER_SECONDS
        delay = _FIRST_DELAY_SECONDS
        while (why := await self._refusal()) is not None:
            self.waiting_for = why
            if self._clock() >= say_at:
                log.warning(
                    "nothing is placed: term %s is not accepted since %.0f s: %s",
                    self._term,
                    self._clock() - started,
                    why,
                )
                say_at = self._clock() + _SAY_AGAIN_SECONDS
            await asyncio.sleep(delay)
            delay = min(2 * delay, _MAX_DELAY_SECONDS)
        self.waiting_for = ""
        log.info("term %s is accepted after %.3f s", self._term, self._clock() - started)

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
                "labels": {LABEL_PATH: Path.BIND},
                "annotations": {TERM: term},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": _NOBODY},
        }
        await self._client.create(self._path, body, dry_run=True)

    async def _refusal(self) -> str | None:
        """Why the term is not known to be accepted; None when it is."""
        try:
            await self._ask(self._term)
        except errors.NotLeader:
            raise
        except (errors.NotFound, errors.Conflict):
            return None  # admission has passed
        except (errors.Forbidden, errors.Unprocessable, errors.BadRequest) as error:
            if refuses_term(error):
                return str(error)
            log.warning("the term cannot be tried out: %s", error)
        except errors.ApiError as error:
            return str(error)
        return None
