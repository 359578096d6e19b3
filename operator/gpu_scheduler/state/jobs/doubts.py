"""Jobs in doubt: their last pods could not start for a reason of their own, such as a policy.

Nobody gives way to them (``WaitingJob.doubtful``) until one of their pods has started on what is
free, and they are tried again after a time that grows, if anything but a node may be to blame. What
was said stays until then, or until their spec is another. It counts for all jobs that are alike
(ADR 0064): those that wait, and those that come later, which wait as long. A new leader takes it
from the condition in their status.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gpu_scheduler.api.condition import ConditionType
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.core.model.wording import at, clip
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.state.jobs.job import GPUJobRecord, namespace_of

Delays = Callable[[int], float]
"""Seconds until the next try, by the number of those before; 0 = at once."""

DOUBTFUL = frozenset({Reason.PLACEMENT_REFUSED, Reason.START_TIMED_OUT})
_AGAIN = "; it is tried again at "
_NOBODY = "; until one of its pods has started it gets free GPUs only, and nobody gives way to it"
_OF_ITS_NAME = "metadata.name: "  # begins what is wrong with one job, and with none like it
_ELSEWHERE_SECONDS = 1.0
_MOST_CHARS = 600
KEPT_SECONDS = 3600.0  # what is known of those that are alike, after the last of them failed
_MOST_ALIKE, _MOST_OF_NAMESPACE = 1024, 64


def elsewhere_first(pause: Backoff) -> Delays:
    """Another node may do, so the first new try is soon; what was decided before still counts."""
    return lambda times: pause.delay_seconds(times - 1) if times else _ELSEWHERE_SECONDS


def on_free_room(times: int) -> float:
    """It may be placed at once; only nobody is to give way."""
    return 0.0


@dataclass(frozen=True, slots=True)
class About:
    """A job as it was when its pods could not start.

    Attributes:
        uid: Its own.
        generation: Of its spec.
        started: Pods of it that had come to run by then: what they do says nothing new.
        alike: What it has in common with those that are like it; empty: that is not known.
    """

    uid: str
    generation: int
    started: frozenset[PodUID] = frozenset()
    alike: str = ""


@dataclass(frozen=True, slots=True)
class FailedStart:
    """A pod of a job could not start.

    Attributes:
        at: When, monotonic seconds.
        why: What was said.
        reason: One of ``DOUBTFUL``.
        delays: When the job is tried again.
        explained: Whether ``why`` names the cause.
    """

    at: float
    why: str
    reason: Reason = Reason.PLACEMENT_REFUSED
    delays: Delays = on_free_room
    explained: bool = True


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
        quiet: It was never held back: what it waits for comes first when it is told of.
        inherited: Its own pods have not failed, those of one that is like it have.
    """

    about: About
    reason: Reason
    why: str
    explained: bool
    times: int
    until: float | None
    moment: str = ""
    quiet: bool = False
    inherited: bool = False

    def said(self, wait: Wait | None) -> tuple[str, str]:
        """Reason and sentence for its user; ``wait``: why it has no place now, if that is known."""
        if self.until is not None:
            return self.reason, f"{self.why}{_AGAIN}{self.moment}"
        if self.quiet and wait is not None:
            return wait.reason, f"{wait.message}; {self.why}{_NOBODY}"
        waits = f"; {wait.message}" if wait is not None else ""
        return self.reason, f"{self.why}{_NOBODY}{waits}"


class Doubts:
    """By job."""

    def __init__(self, now: Callable[[], float]) -> None:
        """``now``: epoch seconds."""
        self._now = now
        self._of: dict[JobKey, Doubt] = {}
        # By namespace, the oldest first, and until when.
        self._alike: dict[str, dict[str, tuple[Doubt, float]]] = {}

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

    def note(self, key: JobKey, about: About, failed: FailedStart) -> float:
        """A pod could not start; until when the job is held back, monotonic seconds.

        What goes wrong while it is held back was decided before, and belongs to the same try.
        """
        why, known = clip(failed.why, _MOST_CHARS), self._of.get(key)
        if known is not None and known.until is not None:
            if failed.explained and not known.explained:
                known.why = why
                known.explained = True
            return known.until
        times = known.times if known is not None else 0
        delay = failed.delays(times)
        if not delay and known is not None:
            return failed.at  # what is known already says more
        until, held = failed.at + delay, bool(delay)
        self._of[key] = Doubt(
            about,
            failed.reason,
            why,
            failed.explained,
            times + held,
            until if held else None,
            at(self._now() + delay) if held else "",
            quiet=not held,
        )
        self._remember(self._of[key], failed.at)
        return until

    def inherit(self, key: JobKey, about: About, now: float) -> bool:
        """A job is like one whose pods could not start: it waits as that would; whether it is."""
        of = self._alike.get(namespace_of(about.alike), {})
        known, kept_until = of.get(about.alike, (None, 0.0))
        if known is None or kept_until <= now or key in self._of:
            return False
        held = known.until if known.until is not None and known.until > now else None
        self._of[key] = replace(known, about=about, until=held, inherited=True)
        return True

    def any_of(self, namespace: str) -> bool:
        """Whether jobs of a namespace may be like one whose pods could not start."""
        return namespace in self._alike

    def _remember(self, doubt: Doubt, now: float) -> None:
        """Know it of those that are alike; of too many the oldest of one namespace go."""
        alike = doubt.about.alike
        if not alike or doubt.why.startswith(_OF_ITS_NAME):
            return
        of = self._alike.pop(namespace_of(alike), {})
        self._alike[namespace_of(alike)] = of  # the last one
        of.pop(alike, None)
        if len(of) >= _MOST_OF_NAMESPACE:
            del of[next(iter(of))]
        of[alike] = replace(doubt), now + KEPT_SECONDS
        if sum(map(len, self._alike.values())) > _MOST_ALIKE:
            most = max(self._alike, key=lambda namespace: len(self._alike[namespace]))
            self._forget_alike(next(iter(self._alike[most])))

    def _forget_alike(self, alike: str) -> None:
        of = self._alike.get(namespace_of(alike), {})
        if of.pop(alike, None) is not None and not of:
            del self._alike[namespace_of(alike)]

    def see(self, job: GPUJobRecord, *, new: bool) -> None:
        """A GPUJob changed; of a ``new`` one the status tells what an earlier leader knew."""
        known = self._of.get(job.key)
        if known is not None and (known.about.uid, known.about.generation) != (
            job.uid,
            job.generation,
        ):
            del self._of[job.key]
        if new:
            self.restore(job.key, About(job.uid, job.generation), *_told(job))

    def restore(self, key: JobKey, about: About, reason: str, why: str) -> None:
        """An object says what an earlier leader knew; an empty ``reason``: nothing."""
        if reason in DOUBTFUL:
            why = clip(why.partition(_AGAIN)[0].partition(_NOBODY)[0], _MOST_CHARS)
            self._of[key] = Doubt(about, Reason(reason), why, True, 1, None)

    def read(self, key: JobKey, about: About, message: str) -> None:
        """The same of a pod that asks by itself: what it is told while it waits."""
        head, found, _ = message.partition(_AGAIN if _AGAIN in message else _NOBODY)
        if found:
            self.restore(key, about, Reason.PLACEMENT_REFUSED, head.partition(": ")[2])

    def complete(self, key: JobKey, about: About, now: float) -> None:
        """What is like a job of which an earlier leader knew."""
        known = self._of.get(key)
        if known is not None and not known.about.alike:
            known.about = replace(known.about, alike=about.alike)
            self._remember(known, now)

    def release(self, key: JobKey) -> None:
        """A job may be tried now: what kept it from that has shown that it moves."""
        if (known := self._of.get(key)) is not None:
            known.until = None

    def drop(self, key: JobKey) -> list[JobKey]:
        """A job has shown that it starts; it, and those that were in doubt only by likeness."""
        known = self._of.pop(key, None)
        if known is None:
            return []
        alike = known.about.alike
        self._forget_alike(alike)
        like = ((k, each) for k, each in self._of.items() if alike and each.about.alike == alike)
        others = [k for k, each in like if each.inherited]
        for other in others:
            del self._of[other]
        return [key, *others]

    def expire(self, now: float) -> Iterable[JobKey]:
        """Let those be tried again whose time has come; which they are."""
        over = [k for k, each in self._of.items() if each.until is not None and each.until <= now]
        for key in over:
            self._of[key].until = None
        self._let_go(now)
        return over

    def _let_go(self, now: float) -> None:
        for of in tuple(self._alike.values()):
            for alike in [each for each, (_, until) in of.items() if until <= now]:
                self._forget_alike(alike)

    def next_expiry(self) -> float | None:
        """When the next one may be tried again, monotonic seconds."""
        found = (each.until for each in self._of.values())
        return min((until for until in found if until is not None), default=None)

    def forget(self, gone: Callable[[JobKey], bool]) -> None:
        """Forget jobs that are gone; not that others like them will fail."""
        for key in [key for key in self._of if gone(key)]:
            del self._of[key]


def _told(job: GPUJobRecord) -> tuple[str, str]:
    """Reason and sentence of the condition in its status; an older version had only the reason."""
    for each in job.status.get("conditions") or ():
        if each.get("type") == ConditionType.IN_DOUBT and each.get("status") == "True":
            return str(each.get("reason") or ""), str(each.get("message") or "")
    return str(job.status.get("reason") or ""), str(job.status.get("message") or "")
