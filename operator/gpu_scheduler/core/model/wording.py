"""Amounts and requests in words, the same everywhere a reason speaks of them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.request import DeviceRequest, PodShape, Project
from gpu_scheduler.core.model.resources import HUGEPAGES
from gpu_scheduler.core.model.units import DEVICE_MILLI, MIB, gpu_from_milli

GIB = MIB * 1024
MOST_NAMES = 3
_MOST_SECONDS = 253_402_300_799.0  # the end of the year 9999, as far as dates go


def clip(text: str, most_chars: int) -> str:
    """The beginning of a text, at most so long, cut where a word ends."""
    if len(text) <= most_chars:
        return text
    kept = text[: most_chars - 1]
    space = kept.rfind(" ")
    return f"{kept[:space] if space > most_chars // 2 else kept}…"


def gpus(milli: int) -> str:
    """'1 GPU', '0.5 GPUs'."""
    return f"{gpu_from_milli(milli)} GPU{'' if milli == DEVICE_MILLI else 's'}"


def gpu_count(count: int) -> str:
    """'1 GPU', '4 GPUs'."""
    return gpus(count * DEVICE_MILLI)


def needs(pod_shape: PodShape) -> str:
    """What a pod asks for: '0.5 of a GPU', '2 GPUs (a100 or a30)', '20480 MiB of a GPU'."""
    if not pod_shape.devices:
        return "no GPU"
    text = " + ".join(_request(request) for request in pod_shape.devices)
    return f"{text} ({' or '.join(pod_shape.models)})" if pod_shape.models else text


def _request(request: DeviceRequest) -> str:
    if request.milli == DEVICE_MILLI:
        return gpus(request.count * DEVICE_MILLI)
    amount = f"{request.mib} MiB" if request.mib else gpu_from_milli(request.milli)
    return (
        f"{amount} of a GPU" if request.count == 1 else f"{amount} of each of {request.count} GPUs"
    )


def memory(size_bytes: int) -> str:
    """'64Gi', '1536Mi', and bytes where nothing rounder is exact."""
    if size_bytes % GIB == 0 and size_bytes:
        return f"{size_bytes // GIB}Gi"
    if size_bytes % MIB == 0 and size_bytes:
        return f"{size_bytes // MIB}Mi"
    return str(size_bytes)


def scalar(name: str, amount: int) -> str:
    """Of a countable resource: hugepages are memory."""
    return memory(amount) if name.startswith(HUGEPAGES) else str(amount)


def room(size_bytes: int) -> str:
    """Memory of a node, which is nothing round: '24104Mi', rounded down."""
    return memory(size_bytes // MIB * MIB if size_bytes >= MIB else size_bytes)


def cpu(milli: int) -> str:
    """Cores as a decimal: '1.5'."""
    return gpu_from_milli(milli)


def names(items: Sequence[str], separator: str = ", ", of: int | None = None) -> str:
    """The first few of a list and how many more there are; ``of``: how many in all."""
    shown = separator.join(items[:MOST_NAMES])
    more = (len(items) if of is None else of) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def nodes(count: int) -> str:
    """'1 node', '4 nodes'."""
    return f"{count} node{'' if count == 1 else 's'}"


def ceiling(project: Project) -> str:
    """What binds a project: 'its limit 2.5', or 'its quota 2 (weight 0: it never borrows)'."""
    limit = quota.limit_milli(project)
    if project.weight > 0 or limit < project.quota_milli:
        return f"its limit {gpu_from_milli(limit)}"
    return f"its quota {gpu_from_milli(project.quota_milli)} (weight 0: it never borrows)"


def pods(count: int) -> str:
    """'1 pod', '4 pods'."""
    return f"{count} pod{'' if count == 1 else 's'}"


def at(epoch_seconds: float) -> str:
    """A moment: '2026-01-31T12:00:05Z'."""
    return datetime.fromtimestamp(min(epoch_seconds, _MOST_SECONDS), UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def span(seconds: float) -> str:
    """'40 s', '12 min', '3 h', '2 days'."""
    for size, unit, most in ((1, "s", 120), (60, "min", 120 * 60), (3600, "h", 48 * 3600)):
        if seconds < most:
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds / 86400)} days"
