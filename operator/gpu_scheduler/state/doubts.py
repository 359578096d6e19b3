"""Jobs in doubt: their last pods could not start for a reason of their own, such as a policy.

They are tried again after a time that grows, and nothing of them is placed before. From then on
they get what is free, but nobody gives way to them (``WaitingJob.doubtful``). What was said stays
until one of their pods has started, or their spec is another; a new leader takes it from their
status. Kept by ``waiting``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.core.wording import at, clip
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.state.jobs import GPUJobRecord

Delays = Callable[[int], float]
"""Seconds until the next try, by the number of those before."""

DOUBTFUL = frozenset({Reason.PLACEMENT_REFUSED, Reason.START_TIMED_OUT})
_AGAIN = "; it is tried again at "
_NOBODY = "; until one of its pods has started it gets free GPUs only, and nobody gives way to it"
_ELSEWHERE_SECONDS = 1.0
_MOST_CHARS = 600


def elsewhere_first(pause: Backoff) -> Delays:
    """Another node may do, so the first new try is soon; what was decided before still counts."""
    return lambda times: pause.delay_seconds(times - 1) if times else _ELSEWHERE_SECONDS


@dataclass(frozen=True, slots=True)
class About:
    """A job as it was when its pods could not start.

    Attributes:
        uid: Its own.
        generation: Of its spec.
        started: Pods of it that had come to run by then: what they do says nothing new.
    """

    uid: str
    generation: int
    started: frozenset[PodUID] = frozenset()


@dataclass(slots=True)
class Doubt:
    """One job's.

    Attributes:
        about: The job as it was.
        reason: One of ``DOUBTFUL``.
        why: What was said.
        explained: Whether that names the cause.
        times: How often it was tried in vain.
        until: When it is tried again, monotonic seconds; None = that moment is over.
        moment: The same in words.
    """

    about: About
    reason: Reason
    why: str
    explained: bool
    times: int
    until: float | None
    moment: str = ""

    def said(self, wait: Wait | None) -> tuple[str, str]:
        """Reason and sentence for its user; ``wait``: why it has no place now, if that is known."""
        if self.until is not None:
            return self.reason, f"{self.why}{_AGAIN}{self.moment}"
        waits = f"; {wait.message}" if wait is not None else ""
        return self.reason, f"{self.why}{_NOBODY}{waits}"


class Doubts:
    """By job."""

    def __init__(self, now: Callable[[], float]) -> None:
        """``now``: epoch seconds."""
        self._now = now
        self._of: dict[JobKey, Doubt] = {}

    def __contains__(self, key: object) -> bool:
        """Whether a job is in doubt."""
        return key in self._of

    def of(self, key: JobKey) -> Doubt | None:
        """Why it is."""
        return self._of.get(key)

    def held_back(self, key: JobKey) -> bool:
        """Whether nothing of a job may be placed yet."""
        known = self._of.get(key)
        return known is not None and known.until is not None

    def note(
        self,
        key: JobKey,
        about: About,
        reason: Reason,
        why: str,
        now: float,
        delays: Delays,
        *,
        explained: bool = True,
    ) -> float:
        """A pod could not start; until when the job is held back. ``now``: monotonic seconds.

        What goes wrong while it is held back was decided before, and belongs to the same try.
        """
        why, known = clip(why, _MOST_CHARS), self._of.get(key)
        if known is not None and known.until is not None:
            if explained and not known.explained:
                known.why, known.explained = why, True
            return known.until
        times = known.times if known is not None else 0
        delay = delays(times)
        moment, until = at(self._now() + delay), now + delay
        self._of[key] = Doubt(about, reason, why, explained, times + 1, until, moment)
        return until

    def see(self, job: GPUJobRecord, *, new: bool) -> None:
        """A GPUJob changed; of a ``new`` one the status tells what an earlier leader knew."""
        known = self._of.get(job.key)
        about = About(job.uid, job.generation, known.about.started if known else frozenset())
        if known is not None and known.about != about:
            del self._of[job.key]
        if new and job.status.get("reason") in DOUBTFUL:
            reason, message = Reason(job.status["reason"]), str(job.status.get("message") or "")
            why = clip(message.partition(_AGAIN)[0].partition(_NOBODY)[0], _MOST_CHARS)
            self._of[job.key] = Doubt(about, reason, why, True, 1, None)

    def drop(self, key: JobKey) -> bool:
        """A job has shown that it starts, or is another; whether it was in doubt."""
        return self._of.pop(key, None) is not None

    def expire(self, now: float) -> Iterable[JobKey]:
        """Let those be tried again whose time has come; which they are."""
        over = [k for k, each in self._of.items() if each.until is not None and each.until <= now]
        for key in over:
            self._of[key].until = None
        return over

    def next_expiry(self) -> float | None:
        """When the next one may be tried again, monotonic seconds."""
        found = (each.until for each in self._of.values())
        return min((until for until in found if until is not None), default=None)

    def forget(self, gone: Callable[[JobKey], bool]) -> None:
        """Forget jobs that are gone."""
        for key in [key for key in self._of if gone(key)]:
            del self._of[key]
