"""Which rule stands at the head of what is said of a piece of work, and for how long.

It changes at most once an hour, to another rule or to silence, so that nobody is told two things in
one hour. Silence after a headline is a state of its own, with an empty rule: a headline that comes
and goes is held to the same hour.
"""

from collections.abc import Sequence

from gpu_scheduler.usage.advice.finding import Finding

DWELL_SECONDS = 3600
SILENCE = ""

Headline = tuple[str, float]
"""A rule, or ``SILENCE``, and since when (epoch seconds)."""


def settle(
    previous: Headline | None, findings: Sequence[Finding], now: float, *, ended: bool = False
) -> Headline | None:
    """The headline from now on.

    Args:
        previous: what this function said before; None: nothing was ever said.
        findings: what holds now, the first matters most.
        now: epoch seconds.
        ended: the work is over, which silences it at once.
    """
    if ended:
        return None
    rule = str(findings[0].rule) if findings else SILENCE
    if previous is None:
        return (rule, now) if findings else None
    before, since = previous
    stands = 0 <= now - since < DWELL_SECONDS  # a clock that was set back holds nothing up
    return previous if rule == before or stands else (rule, now)
