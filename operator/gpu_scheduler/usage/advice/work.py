"""What is known of a piece of work when it is judged: a GPUJob, or who owns pods that ask.

Ratios are 0 to 1. None: nobody knows, which is never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpu_scheduler.usage.window import Window


class WorkType(StrEnum):
    """What it is for; it decides which rules apply."""

    TRAINING = "training"
    INTERACTIVE = "interactive"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Member:
    """One of several pods that do the same.

    Attributes:
        name: of the pod.
        means: its mean use of the device in each of the work's windows, in their order.
    """

    name: str
    means: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The same program with fewer workers, which has succeeded.

    Attributes:
        name: of its GPUJob.
        workers: that it had.
        mean: use of each device by it, of all its life.
    """

    name: str
    workers: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is judged. Of work with several shares, figures are of the fullest or typical one.

    Attributes:
        namespace: where it is.
        name: of the GPUJob; of other work kind/name in lower case, such as deployment/api.
        type: what it is for.
        share: of each of its devices; 1 is the whole.
        gpus: of each pod: 0.5 of one, 4 whole ones; with shares of several, their sum.
        pods: that hold so much.
        cap_mib: memory that it may hold on a device.
        device_mib: memory of the device.
        capability: compute capability, such as 8.0.
        gpu_model: product name.
        cpu_cores: limit of its container.
        cpu_now: CPU in use, of its limit, lately; before its first window nothing else tells it.
        io_now: share of time in which all of it waited for disks, lately.
        running_seconds: since its first pod ran.
        idle_seconds: since a kernel of it was seen, or since it runs.
        ever_used: whether a kernel of it was ever seen.
        peak_mib: most memory that it held on a device.
        busy_p95: of its use of the device since it began.
        refused: allocations that its cap refused since it began.
        windows: the last ones, the oldest first.
        takes_all: its allocator takes all memory at once, so that memory says nothing.
        members: of work with several pods that do the same.
        workers: pods that do the same, times the whole devices of each.
        means: use of each of its devices, in each of its windows, in their order.
        earlier: a run with fewer workers.
        idle_timeout: seconds without a kernel after which it is idle; None: there is none.
        price: of a GPU for an hour.
    """

    namespace: str
    name: str
    type: WorkType = WorkType.TRAINING
    share: float = 1.0
    gpus: float = 1.0
    pods: int = 1
    cap_mib: float | None = None
    device_mib: float | None = None
    capability: float | None = None
    gpu_model: str = ""
    cpu_cores: float | None = None
    cpu_now: float | None = None
    io_now: float | None = None
    running_seconds: float = 0
    idle_seconds: float | None = None
    ever_used: bool | None = None
    peak_mib: float | None = None
    busy_p95: float | None = None
    refused: int | None = None
    windows: Sequence[Window] = ()
    takes_all: bool = False
    members: Sequence[Member] = ()
    workers: int = 1
    means: Sequence[float | None] = ()
    earlier: EarlierRun | None = None
    idle_timeout: float | None = None
    price: float | None = None

    @property
    def gpus_held(self) -> float:
        """Of all its pods."""
        return self.gpus * self.pods

    @property
    def devices(self) -> int:
        """Of each pod."""
        return max(round(self.gpus / self.share), 1) if self.share > 0 else 1

    @property
    def is_job(self) -> bool:
        """Whether it is a GPUJob, which the command line changes."""
        return "/" not in self.name
