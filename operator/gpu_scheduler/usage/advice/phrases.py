"""Figures in the words of advice."""

from gpu_scheduler.core.model.units import gpu_from_milli


def percent(ratio: float | None) -> str:
    """'42 %'."""
    return f"{(ratio or 0.0) * 100:.0f} %"


def lasting(seconds: float) -> str:
    """'40 minutes', '3 hours', '2 days': never more than has passed, and seldom another text."""
    minutes = int(seconds // 60)
    if minutes >= 2 * 24 * 60:
        return f"{minutes // (24 * 60)} days"
    if minutes >= 120:
        return f"{minutes // 60} hours"
    if minutes >= 10:
        return f"{minutes // 10 * 10} minutes"
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def mib(amount: float) -> str:
    """'6,100 MiB'."""
    return f"{amount:,.0f} MiB"


def milli(share: float) -> int:
    """Thousandths of a GPU."""
    return round(share * 1000)


def gpus(amount: float) -> str:
    """'0.5 of a GPU', '1 GPU', '4 GPUs'."""
    text = gpu_from_milli(milli(amount))
    if milli(amount) < 1000:
        return f"{text} of a GPU"
    return f"{text} GPU{'' if text == '1' else 's'}"


def hours(amount: float) -> str:
    """'16.8 GPU-hours'."""
    return f"{amount:,.1f}".removesuffix(".0") + " GPU-hours"


def saving(amount: float, price: float | None) -> str:
    """'16.8 GPU-hours a day', and their price where that is known."""
    text = f"{hours(amount)} a day"
    return text if price is None else f"{text}, worth {amount * price:,.2f}"
