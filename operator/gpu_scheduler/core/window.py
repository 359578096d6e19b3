"""How many pods of a job exist at once: not more than could run, and some that wait their turn.

A Job with parallelism 100,000 makes as many pods at once, whatever its project may hold. What waits
beyond the next few tells the planner nothing. So a Job is made as wide as its project's ceiling and
the cluster's GPUs allow, and half as much again, and grows with them. Gangs and roles need all of
their pods and have no window. Called by ``runtime.width``.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from gpu_scheduler.core.model.products import means
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import DEVICE_MILLI

LEAST_SPARE = 20  # pods that may wait beside those that could run


def could_run(
    devices: Sequence[DeviceRequest],
    models: Sequence[str],
    cluster: Iterable[tuple[str, int]],
    ceiling_milli: int,
) -> int:
    """Pods that the GPUs could hold if they were empty; never too few.

    Args:
        devices: what one pod asks for.
        models: that it takes; empty = any.
        cluster: product and usable MiB of each GPU.
        ceiling_milli: what the project may hold.
    """
    fitting, least_milli = 0, 0
    for (product, usable_mib), count in Counter(cluster).items():
        if models and not any(means(model, product) for model in models):
            continue
        each = sum(r.count * _milli(r, usable_mib) for r in devices)
        fitting += count * DEVICE_MILLI // max(each, 1)
        least_milli = min(each, least_milli or each)
    return min(fitting, ceiling_milli // max(least_milli, 1))


def window(wanted: int, possible: int, now: int | None = None, placed: int = 0) -> int:
    """How many pods there are to be.

    Small changes of what is possible change nothing, and no pod that has a place is given up for
    the window.

    Args:
        wanted: as the job says; never more.
        possible: see ``could_run``.
        now: how many there may be at present; None = the Job does not exist yet.
        placed: how many have a place.
    """
    spare = max(LEAST_SPARE, possible // 2)
    fitting = min(wanted, possible + spare)
    if now is None or now > wanted:
        return fitting if now is None else min(wanted, max(fitting, placed))
    if now < fitting:
        return fitting if now < min(wanted, possible + spare // 2) else now
    return max(fitting, min(placed, now)) if now > 2 * fitting else now


def _milli(asked: DeviceRequest, usable_mib: int) -> int:
    if asked.milli or not usable_mib:
        return asked.milli
    return -(-asked.mib * DEVICE_MILLI // usable_mib)
