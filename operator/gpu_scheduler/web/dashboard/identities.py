"""Whose a token is: the API server is asked once for each, and again after a minute at most.

Verdicts are kept by SHA-256 of the token, never the token, and no longer than the token lives.
Behind an Ingress all users come from one address, so what bounds wrong tokens is the token first:
one that was refused is not asked about again for a while, and one that says itself that it is over
never. Only tokens that were never good count against their address, and widely. Tokens and names
are told to nobody but the API server.
"""

import asyncio
import binascii
import logging
import re
from base64 import urlsafe_b64decode
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random

import msgspec

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.paths import TOKEN_REVIEWS
from gpu_scheduler.kube.token_review import TokenReview, question
from gpu_scheduler.limits.bounded import Bounded
from gpu_scheduler.limits.rate_limiter import RateLimiter
from gpu_scheduler.limits.slots import Slots
from gpu_scheduler.web.dashboard.answers import RefusedAnswer

log = logging.getLogger(__name__)

MOST_BYTES = 8000  # of a token; a header has 8,190
MOST_SECONDS, JITTER_SECONDS = 60.0, 10.0  # a verdict is kept; less by up to the second
REFUSED_SECONDS = 30.0
GOOD_SECONDS = 3600.0  # what was good so lately is asked about whatever its address brought
PAST_SECONDS = 60.0  # over for so long by our clock: over
MOST_KNOWN, MOST_REFUSED = 8 << 20, 1 << 20  # bytes
WRONG_BURST, WRONG_PER_SECOND = 200.0, 2.0  # tokens of one address that were never good
AT_ONCE, WAITING = 8, 256  # reviews in flight, and requests that wait for one
WAIT_SECONDS = 5.0

_FORM = re.compile(r"\A[\w~+/.-]+=*\Z", re.ASCII)  # RFC 6750
NO_TOKEN = RefusedAnswer(401, "log in: send the header Authorization: Bearer with a token")
NOT_GOOD = RefusedAnswer(401, "the API server does not take this token (any more): log in again")
_BUSY = RefusedAnswer(503, "too many log in at once; try again", 2)
_AWAY = RefusedAnswer(503, "the API server does not say whose this token is; try again", 2)
_TOO_MANY_WRONG = RefusedAnswer(429, "too many wrong tokens came from this address; try again", 30)


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as the API server knows them, in the words of a SubjectAccessReview."""

    user: str = field(repr=False)
    uid: str = field(default="", repr=False)
    groups: tuple[str, ...] = field(default=(), repr=False)
    extra: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)


class _TokenClaims(msgspec.Struct, frozen=True):
    exp: float | None = None


_CLAIMS = msgspec.json.Decoder(_TokenClaims)


@dataclass(frozen=True, slots=True)
class _CachedIdentity:
    """``until``, ``good_until``: monotonic seconds."""

    who: Identity
    until: float
    good_until: float


def bearer(authorization: str) -> str:
    """The token of a header.

    Raises:
        Refusal: there is none in it.
    """
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or len(token) > MOST_BYTES or not _FORM.match(token):
        raise NO_TOKEN
    return token


class Identities:
    """Asks, and remembers."""

    def __init__(self, client: Client, clock: Clock, random: Random | None = None) -> None:
        """Nobody has asked; ``client`` is the operator's."""
        self._client = client
        self._clock = clock
        self._random = random or Random()
        self._known: Bounded[bytes, _CachedIdentity] = Bounded(MOST_KNOWN)
        self._refused: Bounded[bytes, float] = Bounded(MOST_REFUSED)
        self._asking: dict[bytes, asyncio.Task[Identity]] = {}
        self._wrong: RateLimiter[str] = RateLimiter(WRONG_PER_SECOND, WRONG_BURST)
        self._slots = Slots(lambda: AT_ONCE, AT_ONCE)
        self._failures: Failures[str] = Failures(clock.monotonic)
        self.results: Counter[str] = Counter()
        """Reviews by ``accepted``, ``refused``, ``failed``."""

    async def of(self, token: str, source: str) -> Identity:
        """Whose a token is; ``source``: the address that sent it.

        Raises:
            Refusal: nobody's, or nobody knows.
        """
        digest, now = sha256(token.encode()).digest(), self._clock.monotonic()
        known = self._known.get(digest)
        if known is not None and known.until > now:
            return known.who
        if (self._refused.get(digest) or 0.0) > now:
            raise NOT_GOOD
        ends = _ends(token)
        if ends is not None and ends < self._clock.now() - PAST_SECONDS:
            raise NOT_GOOD
        task = self._asking.get(digest)
        if task is None:
            was_good = known is not None and known.good_until > now
            if not was_good and self._wrong.is_spent(source, now):
                raise _TOO_MANY_WRONG
            if len(self._asking) >= WAITING:
                raise _BUSY
            task = self._asking[digest] = asyncio.create_task(self._ask(digest, token, source))
            task.add_done_callback(lambda done: self._over(digest, done))
        return await asyncio.shield(task)

    def _over(self, digest: bytes, task: "asyncio.Task[Identity]") -> None:
        self._asking.pop(digest, None)
        if not task.cancelled():
            task.exception()  # whoever waited for it has heard it, and may have gone

    async def _ask(self, digest: bytes, token: str, source: str) -> Identity:
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._slots.of(source):
                found = await self._review(token)
        except TimeoutError:
            raise _BUSY from None
        now, said = self._clock.monotonic(), found.status
        if not (said.authenticated and said.user.username):
            self.results["refused"] += 1
            self._known.pop(digest)
            self._refused.put(digest, now + REFUSED_SECONDS)
            self._wrong.spend(source, now)
            raise NOT_GOOD
        self.results["accepted"] += 1
        user = said.user
        extra = tuple(sorted((name, tuple(values)) for name, values in user.extra.items()))
        who = Identity(user.username, user.uid, tuple(user.groups), extra)
        seconds, ends = MOST_SECONDS - self._random.uniform(0, JITTER_SECONDS), _ends(token)
        if ends is not None:
            seconds = min(seconds, max(0.0, ends - self._clock.now()))
        known = _CachedIdentity(who, now + seconds, now + GOOD_SECONDS)
        self._known.put(digest, known, len(repr((user.username, user.groups, extra))))
        return who

    async def _review(self, token: str) -> TokenReview:
        if not self._failures.may_try(TOKEN_REVIEWS):
            raise _AWAY
        body = question(token)
        try:
            found = await self._client.create(TOKEN_REVIEWS, body, TokenReview, retry=False)
        except (errors.BadRequest, errors.TooLarge, errors.Unprocessable):
            return TokenReview()  # it is about this token alone
        except (errors.ApiError, msgspec.DecodeError) as error:
            self.results["failed"] += 1
            if self._failures.note(TOKEN_REVIEWS, error):
                log.warning("nobody can log in to the dashboard: %s", _without(error))
            raise _AWAY from None
        self._failures.over(TOKEN_REVIEWS)
        return found


def _without(error: Exception) -> str:
    """What went wrong, without the words of the answer: they may quote what was sent."""
    if isinstance(error, errors.ApiError):
        return f"a TokenReview was answered {error.status or 'not at all'} {error.reason}".strip()
    return "the answer to a TokenReview is none"


def _ends(token: str) -> float | None:
    """When a token is over by its own word, epoch seconds; nobody has verified that."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        return _CLAIMS.decode(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))).exp
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError):
        return None
