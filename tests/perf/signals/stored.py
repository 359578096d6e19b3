"""What signals write: each version of each GPUUsage, and what etcd counts."""

import time
import urllib.request
from dataclasses import dataclass, field

import msgspec
from tests.perf.signals.figures import total

from gpu_scheduler.kube.objects import Meta

_SECONDS = 10.0
_ETCD = {
    "dbBytes": "etcd_mvcc_db_total_size_in_bytes",
    "dbBytesInUse": "etcd_mvcc_db_total_size_in_use_in_bytes",
    "puts": "etcd_mvcc_put_total",
    "putBytes": "etcd_debugging_mvcc_total_put_size_in_bytes",
}


class Usage(msgspec.Struct, frozen=True, gc=False):
    """A GPUUsage, whose status stays JSON, to be weighed."""

    metadata: Meta = Meta()
    status: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(slots=True)
class UsageEyes:
    """A sink for GPUUsages: when each was written, and how large it was then."""

    written: list[tuple[float, int]] = field(default_factory=list)

    def changed(self, obj: Usage) -> None:
        """See ``EventHandler``."""
        self.written.append((time.monotonic(), len(bytes(obj.status))))

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``EventHandler``."""

    def replaced(self) -> None:
        """See ``EventHandler``."""

    def between(self, begin: float, end: float) -> list[tuple[float, int]]:
        """Those of a span of time."""
        return [each for each in self.written if begin <= each[0] < end]


def etcd(port: int) -> dict[str, float]:
    """What it has counted until now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_SECONDS) as answer:
        text = answer.read().decode()
    return {name: total(text, metric) for name, metric in _ETCD.items()}
