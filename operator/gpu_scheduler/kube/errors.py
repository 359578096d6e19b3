"""What the API server can answer other than yes, as exceptions that carry its Status.

Every failed request ends in one of these. Two things matter to whoever wrote:

* ``Refused``, or ``final``: the same request would be refused again, until somebody changes what it
  says or what it was judged by. All other answers say nothing about the request: it is sent again
  later, each time after a longer while.
* ``maybe_applied``: some attempt may have reached the store (the connection broke after sending, a
  timeout, a 5xx), so the effect must be assumed until a read shows otherwise.
"""

from email.utils import parsedate_to_datetime

import msgspec

from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.kube.objects import Status, StatusDetails

LONGEST_RETRY_AFTER_SECONDS = 60.0
"""More than any API server asks for; what a proxy asks for beyond it is not waited for."""

_MOST_CHARS = 2000  # of a message: an admission policy may say anything
_DIGITS = 9
_STATUS_DECODER = msgspec.json.Decoder(Status)


class ApiError(Exception):
    """A request that was refused or got no answer.

    Attributes:
        status: HTTP status, 0 when there was no answer.
        reason: Machine reason of the Status ("AlreadyExists", "Expired", ...), may be empty.
        message: What the server said, or what went wrong on the way.
        details: The object and the fields that the answer is about.
        retry_after_seconds: How long the server asks to wait, None when it does not say.
        maybe_applied: For a write: it may have taken effect all the same.
    """

    def __init__(
        self,
        status: int = 0,
        reason: str = "",
        message: str = "",
        details: StatusDetails | None = None,
        *,
        retry_after_seconds: float | None = None,
        maybe_applied: bool = False,
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details if details is not None else StatusDetails()
        self.retry_after_seconds = retry_after_seconds
        self.maybe_applied = maybe_applied

    def __str__(self) -> str:
        code = " ".join(part for part in (str(self.status or ""), self.reason) if part)
        return f"{self.message} ({code})" if code else self.message


class Refused(ApiError):
    """The answer to this request is final: 4xx, but for those that say "not now" or "not you"."""


class BadRequest(Refused):
    """400: the request itself is malformed, as by a number where a text belongs."""


class Forbidden(Refused):
    """403: a role, a quota or an admission policy says no; the message says which."""


class NotFound(Refused):
    """404: no such object, no such namespace, or no such resource in this cluster."""


class TooLarge(Refused):
    """413: more than a request may have."""


class Unprocessable(Refused):
    """422: validation failed; ``details.causes`` name the fields."""


class Unauthorized(ApiError):
    """401: the token or client certificate is not accepted, whatever it is used for."""


class Conflict(ApiError):
    """409: AlreadyExists, a stale resourceVersion, or a pod that cannot be bound any more."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old; list again."""


class TooManyRequests(ApiError):
    """429: flow control, or a disruption budget that refuses an eviction."""


class ServerError(ApiError):
    """5xx: the server could not do it now; a write may have taken effect."""


class Unavailable(ApiError):
    """No answer: connection refused or broken, or no answer in time."""


class AnswerTooLarge(ApiError):
    """The answer has more bytes than we hold at once: it has to be asked for in parts."""


class NotLeader(ApiError):
    """The fence is closed: nothing (more) was sent."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    422: Unprocessable,
    429: TooManyRequests,
}
# RFC 9110 and 6585: a proxy wants to be asked first, the server waited in vain for the request,
# another server should be asked, it is locked, or may be a replay.
_NOT_NOW = frozenset({407, 408, 421, 423, 425})


def final(error: BaseException) -> bool:
    """Whether the same request would be refused again."""
    return isinstance(error, Refused)


def by_policy(error: Refused) -> bool:
    """Whether a quota, a policy or a webhook says no, and not what the object says itself.

    A policy answers 422 where it does not say otherwise, without the field that validation names.
    """
    unread = isinstance(error, BadRequest) and "webhook" not in error.message
    return not unread and not any(cause.field for cause in error.details.causes)


def another_object(error: ApiError) -> bool:
    """Whether the object that has the name is another one than the write was for."""
    return any(cause.field == "metadata.uid" for cause in error.details.causes)


def _kind(code: int) -> type[ApiError]:
    if code >= 500:
        return ServerError
    refused = 400 <= code and code not in _NOT_NOW
    return _BY_STATUS.get(code, Refused if refused else ApiError)


def from_status(status: Status) -> ApiError:
    """The exception for a Status object (the body of an answer, or an ERROR event)."""
    details = status.details if status.details is not None else StatusDetails()
    return _kind(status.code)(
        status.code,
        status.reason,
        clip(status.message, _MOST_CHARS),
        details,
        retry_after_seconds=min(
            max(0.0, float(details.retry_after_seconds)), LONGEST_RETRY_AFTER_SECONDS
        )
        or None,
    )


def from_answer(
    code: int, body: bytes, retry_after: str | None = None, date: str | None = None
) -> ApiError:
    """The exception for an HTTP answer.

    Args:
        code: HTTP status of the answer; it wins over the code in the body.
        body: A Status in JSON, or whatever a proxy or an early filter wrote.
        retry_after: The Retry-After header: seconds, or a moment (RFC 9110, 10.2.3).
        date: The Date header: the server's now, by which a moment is understood.
    """
    try:
        status = _STATUS_DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body[:_MOST_CHARS].decode(errors="replace").strip()
        status = Status(message=text or f"HTTP {code}")
    error = from_status(msgspec.structs.replace(status, code=code))
    if retry_after is not None:
        asked = _seconds(retry_after.strip(), date)
        if asked is not None:
            error.retry_after_seconds = min(asked, LONGEST_RETRY_AFTER_SECONDS)
    return error


def _seconds(retry_after: str, date: str | None) -> float | None:
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:_DIGITS])
    try:
        until, now = parsedate_to_datetime(retry_after), parsedate_to_datetime(date or "")
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None  # no date, or one with and one without a time zone
