"""How many pods of a job the GPUs could hold if they were empty."""

from collections import Counter
from collections.abc import Iterable, Sequence

from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.products import means


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
        fitting += _most(devices, usable_mib, count)
        least_milli = min(each, least_milli or each)
    return min(fitting, ceiling_milli // max(least_milli, 1))


def _most(devices: Sequence[DeviceRequest], usable_mib: int, count: int) -> int:
    """Pods that so many GPUs hold, by fractions alone and by MiB alone."""
    milli, mib = sum(r.count * r.milli for r in devices), sum(r.count * r.mib for r in devices)
    most = count * DEVICE_MILLI // max(milli, 1)
    if mib and len(devices) == 1:
        return count * (usable_mib // devices[0].mib) // devices[0].count
    return min(most, count * usable_mib // mib) if mib else most


def _milli(asked: DeviceRequest, usable_mib: int) -> int:
    if asked.milli or not usable_mib:
        return asked.milli
    return -(-asked.mib * DEVICE_MILLI // usable_mib)
