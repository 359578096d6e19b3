"""Asks the API server whose a token is, and bounds how often strangers may have it asked.

Sources take turns, a few requests are in flight, and nobody waits for long. A source whose tokens
are none of ours is not asked for any more for a while, so a flood of made-up ones costs the API
server little and keeps nobody from a turn. Nor does a pod that shows ever new tokens of its own.
Tokens are kept nowhere and told to nobody but the API server.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

import msgspec

from gpu_scheduler.api.names import REPORT_AUDIENCE
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.paths import TOKEN_REVIEWS
from gpu_scheduler.kube.token_review import TokenReview, question
from gpu_scheduler.limits.rate_limiter import RateLimiter
from gpu_scheduler.limits.slots import Slots
from gpu_scheduler.runtime.reports.answer import Answer, refusal

log = logging.getLogger(__name__)

AT_ONCE = 8  # reviews in flight
AT_ONCE_OF_ONE = 2  # of these, for one source address
WAITING_OF_ONE = 64  # reports of one source that wait for a review
WAIT_SECONDS = 3.0  # for a turn, and again for the API server
# Of a source, tokens that are not what they say; of a pod, tokens that are its own.
BURST, PER_SECOND = 5.0, 1 / 60
RESULTS = ("accepted", "refused", "failed")

_POD_UID = "authentication.kubernetes.io/pod-uid"  # which the API server has compared with the pod
_BUSY = refusal(503, "too many reports wait for the API server; say it again", 1)
_AWAY = "the API server does not say whose token this is; say it again"
NOT_OURS = refusal(
    401,
    "the API server does not take this token: it is too old, or of a pod that is gone; read the "
    "file $GPUJOB_TOKEN_FILE anew for each report",
)
_TOO_MANY_WRONG = refusal(429, "too many tokens from your address were no tokens of pods", 60)
_TOO_MANY_NEW = refusal(
    429, "this pod shows too many tokens; send the one in the file $GPUJOB_TOKEN_FILE", 60
)


class TokenReviews:
    """Asks."""

    def __init__(self, client: Client, *, clock: Callable[[], float]) -> None:
        """Nobody has asked."""
        self._client = client
        self._clock = clock
        self._slots = Slots(lambda: AT_ONCE, AT_ONCE_OF_ONE)
        self._waiting: Counter[str] = Counter()
        self._wrong: RateLimiter[str] = RateLimiter(PER_SECOND, BURST)
        self._new: RateLimiter[PodUID] = RateLimiter(PER_SECOND, BURST)
        self._failures: Failures[str] = Failures(clock)
        self.results: Counter[str] = Counter()
        """How many had which of ``RESULTS``."""

    async def refusal(self, token: str, pod: PodUID, source: str) -> Answer | None:
        """Why a token is not this pod's, or is not known to be; None: it is.

        Args:
            token: as it was sent.
            pod: whose it says that it is.
            source: the address that sent it.
        """
        if refused := self._spent(pod, source):
            return refused
        if self._waiting[source] >= WAITING_OF_ONE:
            return _BUSY
        self._waiting[source] += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS) as patience, self._slots.of(source):
                patience.reschedule(None)
                return self._spent(pod, source) or await self._ask(token, pod, source)
        except TimeoutError:
            return _BUSY
        finally:
            self._waiting[source] -= 1
            if not self._waiting[source]:
                del self._waiting[source]

    def _spent(self, pod: PodUID, source: str) -> Answer | None:
        now = self._clock()
        if self._wrong.is_spent(source, now):
            return _TOO_MANY_WRONG
        return _TOO_MANY_NEW if self._new.is_spent(pod, now) else None

    async def _ask(self, token: str, pod: PodUID, source: str) -> Answer | None:
        if not self._failures.may_try(TOKEN_REVIEWS):
            return refusal(503, _AWAY, 1)
        body = question(token, [REPORT_AUDIENCE])
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                found = await self._client.create(TOKEN_REVIEWS, body, TokenReview, retry=False)
        except (errors.ApiError, msgspec.DecodeError, TimeoutError) as error:
            self.results["failed"] += 1
            if self._failures.note(TOKEN_REVIEWS, error):
                log.warning("reports are refused: tokens are not reviewed: %s", error)
            return refusal(503, _AWAY, 1)
        self._failures.over(TOKEN_REVIEWS)
        said = found.status
        theirs = said.user.extra.get(_POD_UID)
        if said.authenticated and REPORT_AUDIENCE in said.audiences and theirs == [pod]:
            self._new.spend(pod, self._clock())
            self.results["accepted"] += 1
            return None
        self._wrong.spend(source, self._clock())
        self.results["refused"] += 1
        return NOT_OURS
