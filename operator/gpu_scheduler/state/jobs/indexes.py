"""The indexes that a Job's status names, as text such as '1,3-5'.

Who may write the status of Jobs may write anything there. So what is no such text names nothing,
nothing beyond the Job's own size counts, and a long range costs no more than a short one until
somebody walks it: then at most ``size`` steps.
"""

from collections.abc import Iterator

from gpu_scheduler.api.numbers import number

_MOST_CHARS = 7  # of one index below 100,000 and what parts it from the next


def ranges(text: str, size: int) -> Iterator[range]:
    """The indexes below ``size`` that ``text`` names, ascending, none of them twice."""
    if len(text) > _MOST_CHARS * size:
        return
    least = 0
    for part in text.split(","):
        low, dash, high = part.partition("-")
        first = number(low)
        last = number(high) if dash else first
        if first is None or last is None or first < least:
            continue
        found = range(first, min(last + 1, size))
        if found:
            yield found
            least = found.stop


def count(text: str, size: int) -> int:
    """How many indexes below ``size`` the text names."""
    return sum(map(len, ranges(text, size)))
