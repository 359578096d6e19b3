"""Units: milli-GPU and MiB, integers always.

A decimal crosses into an integer once, here, through ``Decimal(str(x))``; no float is ever
summed. A device has 1,000 milli; its capacity in memory is its *usable* MiB (total minus what
the driver reserves).
"""

from decimal import Decimal

DEVICE_MILLI = 1000
MIB = 1 << 20
LEAST_MIB = DEVICE_MILLI  # of a device: less, and its smallest share would be of no memory
MOST_MIB = 1 << 24  # of a device: 16 TiB, fifty times the largest there is
MOST_DEVICES = 64  # of a node


def milli_from_gpu(gpu: float | int | str | Decimal) -> int:
    """Milli-GPU of a number of GPUs (0.5 -> 500).

    Raises:
        ValueError: not a number, or more than three decimals.
    """
    try:
        scaled = Decimal(str(gpu)) * DEVICE_MILLI
    except ArithmeticError:
        raise ValueError(f"{gpu!r} is not a number of GPUs") from None
    milli = int(scaled)
    if milli != scaled:
        raise ValueError(f"{gpu} has more than three decimals")
    return milli


def gpu_from_milli(milli: int) -> str:
    """Decimal string of GPUs without trailing zeros (1800 -> '1.8')."""
    whole, rest = divmod(abs(milli), DEVICE_MILLI)
    text = f"{whole}.{rest:03d}".rstrip("0").rstrip(".") if rest else str(whole)
    return f"-{text}" if milli < 0 else text


def cap_mib(milli: int, usable_mib: int) -> int:
    """MiB that a share of a device may use: floor(f * M)."""
    return milli * usable_mib // DEVICE_MILLI


def most_milli(mib: int, usable_mib: int) -> int:
    """The largest share of a device that takes no more than ``mib``."""
    return max(0, ((mib + 1) * DEVICE_MILLI - 1) // usable_mib)


def milli_for_mib(mib: int, usable_mib: int) -> int:
    """Smallest share, in milli-GPU, of a device with ``usable_mib`` that holds ``mib``."""
    return -(-mib * DEVICE_MILLI // usable_mib)
