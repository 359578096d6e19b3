"""Advice as users were told it: in a job's status, and once a day in an Event.

It stays word for word while the same rules hold: figures that move by the minute would be a write
each.
"""

from collections.abc import Collection, Mapping, Sequence

from gpu_scheduler.api.advice import Advice
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.common.work_name import GPUJOB
from gpu_scheduler.runtime.usage.kept_work import Advised
from gpu_scheduler.runtime.usage.works import LiveWork
from gpu_scheduler.state.changes import Changes

REASON = "Advice"
_AGAIN_SECONDS = 86400.0


class AdviceTold:
    """By work."""

    def __init__(self, events: Events, changes: Changes) -> None:
        """Nobody was told anything."""
        self._events = events
        self._changes = changes
        self._told: dict[str, tuple[Advice, ...]] = {}
        self._said: dict[str, dict[str, float]] = {}  # Events, by work and rule

    def of(self, key: str) -> Sequence[Advice] | None:
        """What was told of a work; None: it was not looked at."""
        return self._told.get(key)

    def take_over(self, key: str, advised: Advised) -> None:
        """Go on from what another leader told of a work."""
        if advised.advice:  # else its status may say some that this leader did not live to write
            self._told[key] = tuple(advised.advice)
        self._said[key] = dict(advised.events)

    def events(self, key: str, now: float) -> Mapping[str, float]:
        """By rule, when an Event of the last day spoke of a work (epoch seconds)."""
        said = self._said.get(key, {})
        return {rule: at for rule, at in said.items() if 0 <= now - at < _AGAIN_SECONDS}

    def take(self, work: LiveWork, found: Sequence[Advice], now: float) -> None:
        """Tell what is new; ``now``: epoch seconds."""
        key = work.name.key
        before = self._told.get(key)
        rules = [each.rule for each in found]
        if before is not None and rules == [each.rule for each in before]:
            return
        self._told[key] = tuple(found)
        if work.name.kind == GPUJOB:
            self._changes.touch_statuses([work.job.key])
        if found and not (before is None and _stood(work, rules[0])):
            self._say(work, found[0], now)

    def _say(self, work: LiveWork, advice: Advice, now: float) -> None:
        if advice.rule in self.events(work.name.key, now):
            return
        self._said.setdefault(work.name.key, {})[advice.rule] = now
        pod, _ = work.pods[0]
        is_job = work.name.kind == GPUJOB
        about = InvolvedObject.of_job(work.job) if is_job else InvolvedObject.of_pod(pod)
        self._events.say(about, "Normal", REASON, _sentence(advice))

    def keep(self, keys: Collection[str]) -> None:
        """Forget all other work."""
        self._told = {key: each for key, each in self._told.items() if key in keys}
        self._said = {key: each for key, each in self._said.items() if key in keys}


def _stood(work: LiveWork, rule: str) -> bool:
    """Whether another leader has told the same."""
    advice: Sequence[Mapping[str, object]] = work.job.status.get("advice") or ()
    return any(each.get("rule") == rule for each in advice)


def _sentence(advice: Advice) -> str:
    text = f"{advice.rule}: {advice.message}"
    return f"{text} ({advice.command})" if advice.command else text
