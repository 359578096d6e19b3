"""A GPUProject from options, judged by the rules of the CRD before anything is sent."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from gpu_scheduler.api.gpuproject import GPUProjectSpec
from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.api.validate import read


def body_of(
    name: str, quota: str, limit: str | None, weight: int | None, namespaces: Sequence[str]
) -> dict[str, Any]:
    """The object.

    Raises:
        ValueError: an option is not what the field takes.
    """
    spec: dict[str, Any] = {
        "namespaces": list(dict.fromkeys(namespaces)),
        "quota": _amount("quota", quota),
    }
    if limit is not None:
        spec["limit"] = _amount("limit", limit)
    if weight is not None:
        spec["weight"] = weight
    judged = read(GPUProjectSpec, spec)
    if isinstance(judged, tuple):
        raise ValueError("; ".join(map(str, judged)))
    if judged.limit_milli is not None and judged.limit_milli < judged.quota_milli:
        raise ValueError(f"--limit {limit}: less than --quota {quota}, which is guaranteed")
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUProject",
        "metadata": {"name": name},
        "spec": spec,
    }


def _amount(option: str, text: str) -> int | float:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"--{option} {text}: a number of GPUs, such as 4 or 0.5") from None
    if not value.is_finite() or value < 0 or value != round(value, 3):
        raise ValueError(f"--{option} {text}: a number of GPUs with at most three decimals")
    return int(value) if value == value.to_integral_value() else float(value)
