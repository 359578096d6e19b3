"""Whether a report comes from the pod that its address names, by the token that it brings.

What no token of ours could say is refused by itself: its form, its length, and the audience and pod
that it names. What is left is asked of the API server, once for each token: verdicts are kept by
SHA-256 until the token expires, and never the token. A verdict about a token that is not accepted
is kept for seconds, apart from the others, so that made-up ones push out none of those.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from gpu_scheduler.api.names import REPORT_AUDIENCE
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.limits.bounded import Bounded
from gpu_scheduler.runtime.reports.answer import Answer, refusal
from gpu_scheduler.runtime.reports.token_reviews import NOT_OURS, TokenReviews

MOST_BYTES = 4096  # of a token: names of account, pod and node are 253 characters at most
MOST_KNOWN, MOST_REFUSED = 5_000_000, 200_000  # bytes: of 20,000 verdicts, and of 1,000
REFUSED_SECONDS = 10.0
LEAST_SECONDS, MOST_SECONDS = 120.0, 3600.0  # a verdict is kept, whatever the clock says

_FORM = re.compile(r"\A[\w-]+\.([\w-]+)\.[\w-]+\Z", re.ASCII)
_HOW = "send the header Authorization: Bearer with what the file $GPUJOB_TOKEN_FILE holds"
_NONE = refusal(
    401,
    f"this report has no token; {_HOW}. A pod without that variable is of a Job that an earlier "
    "version of the GPU scheduler has made: delete its GPUJob and apply it again",
)
_NO_TOKEN = refusal(401, f"this is no token of a pod; {_HOW}")
_NOT_FOR_US = refusal(403, f"this token is not for {REPORT_AUDIENCE}; {_HOW}")
_ANOTHERS = refusal(403, "this is the token of another pod than the address is of")


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends a report, as nobody has looked at yet: the header Authorization, the address."""

    authorization: str
    address: str


class _Pod(msgspec.Struct, frozen=True):
    uid: str = ""


class _Bound(msgspec.Struct, frozen=True):
    pod: _Pod = _Pod()


class _TokenClaims(msgspec.Struct, frozen=True, rename={"bound": "kubernetes.io"}):
    aud: list[str] | str = ""
    exp: float = 0.0
    iat: float = 0.0
    bound: _Bound = _Bound()


_CLAIMS = msgspec.json.Decoder(_TokenClaims)


class ReportJudge(ABC):
    """Answers what programs report, first without a body, then with it."""

    answers: Counter[int]
    """How many answers there were, by HTTP status."""

    async def refusal(self, uid: PodUID, sender: Sender) -> Answer | None:
        """Why nothing that this sender says of a pod is taken now; None: send the body."""
        refused = await self._refused(uid, sender)
        return self._counted(refused) if refused is not None else None

    async def take(self, uid: PodUID, body: bytes) -> Answer:
        """Judge what a pod has sent."""
        return self._counted(await self._answer(uid, body))

    def _counted(self, answer: Answer) -> Answer:
        self.answers[answer.status] += 1
        return answer

    @abstractmethod
    async def _refused(self, uid: PodUID, sender: Sender) -> Answer | None: ...

    @abstractmethod
    async def _answer(self, uid: PodUID, body: bytes) -> Answer: ...


class ReportTokens:
    """Judges tokens, and remembers verdicts."""

    def __init__(
        self,
        reviews: TokenReviews,
        *,
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        """``clock`` counts seconds, ``now`` is the time of day: tokens say when they expire."""
        self._reviews = reviews
        self._clock = clock
        self._now = now
        self._known: Bounded[bytes, tuple[PodUID, float]] = Bounded(MOST_KNOWN)  # whose, until when
        self._refused: Bounded[bytes, float] = Bounded(MOST_REFUSED)
        self._asking: dict[bytes, asyncio.Task[Answer | None]] = {}

    async def refusal(self, pod: PodUID, sender: Sender) -> Answer | None:
        """Why a report is not this pod's; None: it is."""
        scheme, _, token = sender.authorization.strip().partition(" ")
        token = token.strip()
        if not token:
            return _NONE
        if scheme.lower() != "bearer" or len(token) > MOST_BYTES:
            return _NO_TOKEN
        digest = sha256(token.encode(errors="replace")).digest()
        whose, until = self._known.get(digest) or ("", 0.0)
        if until > self._clock():
            return None if whose == pod else _ANOTHERS
        claims = _read(token, pod)
        if isinstance(claims, Answer):
            return claims
        if (self._refused.get(digest) or 0.0) > self._clock():
            return NOT_OURS
        task = self._asking.get(digest)
        if task is None:
            judged = self._judge(digest, token, claims, pod, sender.address)
            task = self._asking[digest] = asyncio.create_task(judged)
            task.add_done_callback(lambda _: self._asking.pop(digest, None))
        return await asyncio.shield(task)

    async def _judge(
        self, digest: bytes, token: str, claims: _TokenClaims, pod: PodUID, source: str
    ) -> Answer | None:
        refused = await self._reviews.refusal(token, pod, source)
        if refused is None:
            whole, left = claims.exp - claims.iat, claims.exp - self._now()
            seconds = min(max(left, LEAST_SECONDS), max(whole, LEAST_SECONDS), MOST_SECONDS)
            self._known.put(digest, (pod, self._clock() + seconds), len(pod))
        elif refused is NOT_OURS:
            self._refused.put(digest, self._clock() + REFUSED_SECONDS)
        return refused


def _read(token: str, pod: PodUID) -> _TokenClaims | Answer:
    """What a token says, which nobody has verified, or why it cannot be this pod's."""
    form = _FORM.match(token)
    if form is None:
        return _NO_TOKEN
    try:
        claims = _CLAIMS.decode(urlsafe_b64decode(form[1] + "=" * (-len(form[1]) % 4)))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return _NO_TOKEN
    if not claims.bound.pod.uid:
        return _NO_TOKEN
    if REPORT_AUDIENCE not in ([claims.aud] if isinstance(claims.aud, str) else claims.aud):
        return _NOT_FOR_US
    return claims if claims.bound.pod.uid == pod else _ANOTHERS
