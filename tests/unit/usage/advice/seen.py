"""Looks at a piece of work, as an agent would cut them into windows and add them up."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpu_scheduler.usage.advice.oversized import p95_of
from gpu_scheduler.usage.advice.work import Member, Work
from gpu_scheduler.usage.answer import BUCKETS
from gpu_scheduler.usage.window import (
    MOST_WINDOWS,
    WARM_UP_SECONDS,
    WINDOW_SECONDS,
    Look,
    Window,
    window,
)

STEP = 10  # seconds from look to look
DEVICE_MIB = 81_920
USABLE = 0.95  # of a device's memory: what shares divide


def windows_of(looks: Sequence[Look], share: float) -> list[Window]:
    """All full ones since it began."""
    first, each = WARM_UP_SECONDS // STEP, WINDOW_SECONDS // STEP
    starts = range(first, len(looks) - each + 1, each)
    return [window(looks[at : at + each], share) for at in starts]


def work_of(
    looks: Sequence[Look],
    share: float = 1.0,
    windows: Sequence[Window] | None = None,
    **facts: Any,
) -> Work:
    """What is known of it after these looks, the first of which is ten seconds after Running.

    ``windows``: theirs, where they have been cut before.
    """
    known = [look for look in looks if look.busy is not None]
    buckets = [0] * BUCKETS
    for look in known:
        buckets[min(int((look.busy or 0.0) * BUCKETS), BUCKETS - 1)] += STEP
    last = max((at for at, look in enumerate(looks) if look.busy), default=-1)
    memory = [look.memory_mib for look in looks if look.memory_mib is not None]
    base = Work(
        namespace="team-a",
        name="train",
        share=share,
        gpus=share,
        cap_mib=share * USABLE * DEVICE_MIB,
        device_mib=DEVICE_MIB,
        capability=8.0,
        gpu_model="NVIDIA A100-SXM4-80GB",
        cpu_cores=8.0,
        cpu_now=looks[-1].cpu if looks else None,
        io_now=looks[-1].io_stalled if looks else None,
        running_seconds=len(looks) * STEP,
        idle_seconds=(len(looks) - 1 - last) * STEP if known else None,
        ever_used=any(look.busy for look in known) if known else None,
        peak_mib=max(memory, default=None),
        busy_p95=p95_of(buckets),
        refused=sum(look.refused for look in looks),
        windows=(windows_of(looks, share) if windows is None else windows)[-MOST_WINDOWS:],
        idle_timeout=1800,
    )
    return replace(base, **facts)


def member_of(name: str, looks: Sequence[Look], share: float = 1.0) -> Member:
    """One of several pods."""
    means = [each.busy_mean for each in windows_of(looks, share)]
    return Member(name, tuple(means[-MOST_WINDOWS:]))
