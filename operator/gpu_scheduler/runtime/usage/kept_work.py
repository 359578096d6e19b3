"""What is remembered of a workload from minute to minute, and after it has ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import Any

import orjson

from gpu_scheduler.api.advice import MOST_RULES, Advice, AdviceEvent
from gpu_scheduler.api.gpuusage import Busy, HostUse, MemoryUse, Workload
from gpu_scheduler.api.job_usage import MOST_ROLES
from gpu_scheduler.kube.times import timestamp
from gpu_scheduler.runtime.common.work_name import GPUJOB
from gpu_scheduler.runtime.usage.curve import UNKNOWN, LifeCurve, Point, RankCurves
from gpu_scheduler.runtime.usage.sums import (
    mean,
    p50,
    percent,
    role_usages,
    slowest_rank,
    used_gpu_seconds,
)
from gpu_scheduler.runtime.usage.works import LiveWork, busy_of, gpus, in_step
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.usage.advice.oversized import p95_of
from gpu_scheduler.usage.answer import Totals


@dataclass(frozen=True, slots=True)
class Advised:
    """What is said of a workload. Times are epoch seconds.

    Attributes:
        advice: what to change, the headline first.
        since: when the headline, or silence after one, began; 0: nothing was ever said.
        events: by rule, when one spoke of it in the last day.
    """

    advice: Sequence[Advice] = ()
    since: float = 0.0
    events: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, shown: Workload) -> "Advised":
        """As an object has it; one of a version before dates its advice alone."""
        first = shown.advice[0] if shown.advice else None
        since = epoch_seconds(shown.advice_since or (first and first.since) or "")
        events = {each.rule: epoch_seconds(each.at) for each in shown.advice_events or ()}
        if first is not None and shown.advice_events is None:
            events[first.rule] = since
        return cls(tuple(shown.advice), since, events)

    def shown(self) -> dict[str, object]:
        """As an object says it."""
        events = [AdviceEvent(rule=rule, at=stamp(at)) for rule, at in sorted(self.events.items())]
        return {
            "advice": list(self.advice),
            "advice_since": stamp(self.since) if self.since else None,
            "advice_events": events[:MOST_RULES] or None,
        }


@dataclass(slots=True)
class KeptWork:
    """A workload. Times are epoch seconds.

    Attributes:
        shown: as the object had it last.
        totals: since it began.
        curve: its life.
        ranks: the same of each pod of a gang, since this leader began.
        ended: when it gave its last GPU back; 0: it has not.
    """

    shown: Workload
    totals: Totals = Totals()
    curve: LifeCurve = field(default_factory=LifeCurve)
    ranks: RankCurves = field(default_factory=RankCurves)
    ended: float = 0.0
    _told: tuple[Workload, Mapping[str, Any], int] | None = None

    def told(self) -> tuple[Mapping[str, Any], int]:
        """What its object says of it, and how many bytes that takes; made where it is another."""
        known = self._told
        if known is None or known[0] is not self.shown:
            body = self.shown.to_json()
            self._told = known = self.shown, body, len(orjson.dumps(body))
        return known[1:]

    @property
    def seconds(self) -> float:
        """From its first GPU to its last; of what runs, or where nobody knows: for ever."""
        began = epoch_seconds(self.shown.started_at or "")
        return self.ended - began if self.ended and began else inf

    @classmethod
    def begin(cls, work: LiveWork, now: float) -> "KeptWork":
        """Of work that holds GPUs for the first time."""
        name = work.name
        return cls(
            Workload.model_validate(
                {
                    "kind": name.shown_kind,
                    "name": name.name,
                    "uid": name.key if name.kind == GPUJOB else None,
                    "state": "Running",
                    "started_at": stamp(_started(work) or now),
                }
            )
        )

    @classmethod
    def of(cls, shown: Workload) -> "KeptWork":
        """Going on from what an object has; sums of what runs come from the agents again."""
        ended = epoch_seconds(shown.ended_at or "")
        return cls(shown, curve=LifeCurve.of(shown.curve), ended=ended)

    def update(self, work: LiveWork, totals: Totals, advised: Advised | None, now: float) -> None:
        """It holds GPUs now.

        Args:
            work: what runs.
            totals: of all its shares since it began, those that have ended too.
            advised: what to change about it; None: nobody has looked, so it is what it was.
            now: epoch seconds.
        """
        self.ended = 0.0
        before = self.totals
        if totals.seconds >= before.seconds:  # else an agent is not heard of
            self.totals = totals
        memory = max((share.memory_mib or 0 for share in work.shares), default=None)
        seconds = self.totals.seconds - before.seconds
        busy = _percent(self.totals.busy_seconds - before.busy_seconds, seconds)
        if self.curve.points and not before.containers:  # the first minute of a new leader
            busy = _percent(work.busy() or 0.0, 1.0) if work.busy() is not None else UNKNOWN
        cpu = work.of_containers("cpu_milli")
        self.curve.add(
            Point(
                busy,
                UNKNOWN if memory is None else round(memory),
                UNKNOWN if cpu is None else round(cpu / 10),
            )
        )
        gang = _is_gang(work)
        if gang:
            self.ranks.look({pod.name: busy_of(shares) for pod, shares in work.pods}, now)
        idle = work.idle_seconds()
        self.shown = self.shown.model_copy(
            update={
                "project": str(work.project) or None,
                "type": str(work.type),
                "state": "Running",
                "pods": len(work.pods),
                "gpus": gpus(work.milli),
                "ended_at": None,
                "host": _host(work),
                "idle_since": stamp(now - idle) if idle and idle >= _IDLE_SECONDS else None,
                "busy": _busy(self.totals, work.busy()),
                "memory_mib": _memory(work, self.totals),
                "gpu_seconds": round(self.totals.held_gpu_seconds),
                "used_gpu_seconds": used_gpu_seconds(self.totals),
                "curve": self.curve.shown(),
                "slowest_rank": (
                    slowest_rank(work.by_pod()) or self.shown.slowest_rank if gang else None
                ),
                **(advised.shown() if advised is not None else {}),
            }
        )

    def by_role(self, totals: Mapping[str, Totals]) -> None:
        """The same by role; less than was said, of which an agent is not heard, is left out."""
        known = {each.name: each for each in self.shown.roles or ()}
        for each in role_usages(totals) or ():
            before = known.get(each.name)
            if before is None or each.gpu_seconds >= before.gpu_seconds:
                known[each.name] = each
        if known:
            roles = sorted(known.values(), key=lambda each: each.name)
            self.shown = self.shown.model_copy(update={"roles": roles[:MOST_ROLES]})

    def rest(self) -> None:
        """It holds none at present, and may get some again."""
        self.curve.add(Point())
        if self.ranks.points:
            self.ranks.look({}, 0.0)
        self.shown = self.shown.model_copy(
            update={
                "pods": 0,
                "gpus": 0,
                "host": _NO_HOST,
                "idle_since": None,
                "busy": self.shown.busy.model_copy(update={"now": None}),
                "memory_mib": self.shown.memory_mib.model_copy(update={"now": None}),
                "curve": self.curve.shown(),
            }
        )

    def end(self, totals: Totals, now: float) -> None:
        """It holds none any more."""
        self.ended = now
        if totals.seconds >= self.totals.seconds:
            self.totals = totals
        known = self.totals.containers > 0
        self.shown = self.shown.model_copy(
            update={
                "state": "Ended",
                "ended_at": stamp(now),
                "host": _NO_HOST,
                "idle_since": None,
                "busy": _busy(self.totals, None) if known else self.shown.busy,
                "memory_mib": self.shown.memory_mib.model_copy(
                    update={
                        "now": None,
                        "peak": max(self.totals.peak_mib, self.shown.memory_mib.peak or 0),
                    }
                ),
                "gpu_seconds": max(round(self.totals.held_gpu_seconds), self.shown.gpu_seconds),
                "used_gpu_seconds": _most(
                    used_gpu_seconds(self.totals), self.shown.used_gpu_seconds
                ),
            }
        )


def _is_gang(work: LiveWork) -> bool:
    """Of a Deployment nobody knows whether its pods wait for each other: nothing is said."""
    return work.name.kind == GPUJOB and len(work.pods) > 1 and in_step(work)


_IDLE_SECONDS = 60
_NO_HOST = HostUse.model_validate({})


def stamp(now: float) -> str:
    """Epoch seconds as objects carry them."""
    return timestamp(datetime.fromtimestamp(now, UTC))


def _started(work: LiveWork) -> float:
    return min((each for pod, _ in work.pods if (each := epoch_seconds(pod.started))), default=0.0)


def _most(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _percent(part: float, of: float) -> int:
    return min(max(round(100 * part / of), 0), 100) if of > 0 else UNKNOWN


def _busy(totals: Totals, now: float | None) -> Busy:
    known = {"now": now, "mean": mean(totals), "p50": p50(totals), "p95": p95_of(totals.buckets)}
    return Busy.model_validate(
        {name: percent(each) for name, each in known.items() if each is not None}
    )


def _memory(work: LiveWork, totals: Totals) -> MemoryUse:
    fullest = max(work.shares, key=lambda share: share.totals.peak_mib, default=None)
    now = work.summed("memory_mib")
    return MemoryUse.model_validate(
        {
            "now": None if now is None else round(now),
            "peak": totals.peak_mib if totals.containers else None,
            "cap": fullest.cap_mib if fullest is not None else None,
        }
    )


def _host(work: LiveWork) -> HostUse:
    figures = {
        name: work.of_containers(name)
        for name in ("cpu_milli", "cpu_limit_milli", "ram_mib", "ram_limit_mib")
    }
    known = {name: round(each) for name, each in figures.items() if each is not None}
    return HostUse.model_validate(known)
