"""Memory of the device: a cap that is too tight, and an allocator that hides what is needed."""

from collections.abc import Sequence

from gpu_scheduler.usage.advice import phrases
from gpu_scheduler.usage.advice.evidence import Condition, every, held, reaches, some
from gpu_scheduler.usage.advice.finding import Finding, RuleName
from gpu_scheduler.usage.advice.thresholds import Thresholds
from gpu_scheduler.usage.advice.work import Work
from gpu_scheduler.usage.window import Window

_TAKEN = 0.9  # of its cap, within a minute of its first process
_FLAT = 0.02  # of its cap


def takes_all(first_minute_mib: float, cap_mib: float, windows: Sequence[Window]) -> bool:
    """Whether an allocator took nearly all of the cap at once and has kept it since."""
    if first_minute_mib <= _TAKEN * cap_mib:
        return False
    lowest = [each.memory_min_mib for each in windows if each.memory_min_mib is not None]
    highest = [each.memory_max_mib for each in windows if each.memory_max_mib is not None]
    values = [first_minute_mib, *lowest, *highest]
    return max(values) - min(values) <= _FLAT * cap_mib


def memory_tight(work: Work, thresholds: Thresholds) -> Finding | None:
    """Its cap refused allocations, and it goes on: by trying again, or with less."""
    tries_again = None if work.refused is None else work.refused > 0 and not work.takes_all

    def condition(window: Window) -> Condition:
        filled = (
            None
            if window.memory_max_mib is None or not work.cap_mib
            else window.memory_max_mib / work.cap_mib
        )
        return some(
            window.refused > 0, every(tries_again, reaches(filled, thresholds.tight_memory))
        )

    if held(work, condition) is None:
        return None
    return Finding(
        RuleName.MEMORY_TIGHT,
        f"{_refusals(work)}{_full(work)}: ask for {_more(work)}, or use mixed precision, a "
        "smaller batch or gradient accumulation",
    )


def _refusals(work: Work) -> str:
    recent = sum(each.refused for each in work.windows[-2:])
    count = max(work.refused or 0, recent)
    since = f", {recent} of them in the last half-hour" if 0 < recent < count else ""
    return f"its memory cap refused {count:,} allocation{'' if count == 1 else 's'}{since}"


def _more(work: Work) -> str:
    return "a GPU with more memory" if work.share >= 1 else "a bigger share"


def _full(work: Work) -> str:
    if not work.peak_mib or not work.cap_mib:
        return ""
    return f", and it has held {phrases.mib(work.peak_mib)} of {phrases.mib(work.cap_mib)}"
