"""What an agent answers when the leader asks what is going on at its node, as msgpack.

Ages are told, never times: a node's clock may be wrong. Ratios are 0 to 1. What nobody knows is
absent, never 0. Fields that a reader does not know are skipped.
"""

import msgspec

from gpu_scheduler.usage.window import Window

VERSION = 1
BUCKETS = 10  # of the histogram of use: below 10 %, below 20 %, and so on


class _Struct(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    pass


class DeviceNow(_Struct, frozen=True, kw_only=True):
    """A device at the last look.

    Attributes:
        uuid: NVIDIA's identifier.
        busy: share of time with a kernel of anybody.
        memory_mib: in use.
        allocated: sum of the shares on it.
        used: of these, sum of what each uses, at most its share; None: not known of one.
    """

    uuid: str
    busy: float | None = None
    memory_mib: float | None = None
    allocated: float = 0.0
    used: float | None = None


class Totals(_Struct, frozen=True, kw_only=True):
    """Of one or more shares since they began, of the time in which they were looked at.

    Attributes:
        containers: how many shares are summed up.
        seconds: in which their use was known.
        busy_seconds: of these with a kernel.
        held_gpu_seconds: share × time, also while their use was not known.
        used_gpu_seconds: of these used: at most the share.
        unused_gpu_seconds: of these without any kernel.
        buckets: seconds by use.
        peak_mib: most memory that one of them held.
        refused: allocations that caps refused.
    """

    containers: int = 0
    seconds: float = 0.0
    busy_seconds: float = 0.0
    held_gpu_seconds: float = 0.0
    used_gpu_seconds: float = 0.0
    unused_gpu_seconds: float = 0.0
    buckets: tuple[int, ...] = (0,) * BUCKETS
    peak_mib: int = 0
    refused: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        """Of both."""
        return Totals(
            containers=self.containers + other.containers,
            seconds=self.seconds + other.seconds,
            busy_seconds=self.busy_seconds + other.busy_seconds,
            held_gpu_seconds=self.held_gpu_seconds + other.held_gpu_seconds,
            used_gpu_seconds=self.used_gpu_seconds + other.used_gpu_seconds,
            unused_gpu_seconds=self.unused_gpu_seconds + other.unused_gpu_seconds,
            buckets=tuple(map(sum, zip(self.buckets, other.buckets, strict=True))),
            peak_mib=max(self.peak_mib, other.peak_mib),
            refused=self.refused + other.refused,
        )


class ShareUse(_Struct, frozen=True, kw_only=True):
    """A running container's share of one device.

    Attributes:
        device: UUID.
        work: of whose it is, see ``OrderedPod``; and so on: as the operator named them.
        share: of the device, 0 to 1.
        cap_mib: memory that it may hold there.
        device_mib: memory of the device.
        compute_capability: of the device, such as 8.0.
        age_seconds: since it was seen first.
        idle_seconds: since a kernel was seen last, or since it began; None: its use is not known.
        ever_busy: a kernel of it was seen.
        totals: since it began.
        busy: share of time with a kernel of its own, at the last look.
        memory_mib: that it holds.
        cpu_milli: cores in use × 1000; and so on: of the container, not of this device.
        windows: the last full ones, the oldest first; None where the asker has them.
    """

    device: str
    pod_uid: str
    container: str
    work: str = ""
    share: float = 0.0
    cap_mib: int = 0
    device_mib: int = 0
    compute_capability: str = ""
    age_seconds: int = 0
    idle_seconds: int | None = None
    ever_busy: bool = False
    totals: Totals = Totals()
    busy: float | None = None
    memory_mib: float | None = None
    cpu_milli: float | None = None
    cpu_limit_milli: float | None = None
    ram_mib: float | None = None
    ram_limit_mib: float | None = None
    windows: tuple[Window, ...] | None = None


class EndedUse(_Struct, frozen=True, kw_only=True):
    """All shares of one work that have ended on this node.

    Attributes:
        work: whose they were.
        totals: of all of them.
    """

    work: str
    totals: Totals


class AgentUsage(_Struct, frozen=True, kw_only=True):
    """The whole answer.

    Attributes:
        v: of this form.
        look: number of the last look, one each ten seconds; never goes back.
        devices: all of the node that can be read.
        shares: of all that runs.
        ended: where a share ended since the asker's last look, or one still runs.
    """

    v: int = VERSION
    look: int = 0
    devices: tuple[DeviceNow, ...] = ()
    shares: tuple[ShareUse, ...] = ()
    ended: tuple[EndedUse, ...] = ()


_DECODER = msgspec.msgpack.Decoder(AgentUsage)


class BadAnswerError(ValueError):
    """It is not what an agent of this version answers."""


def dumps(answer: AgentUsage) -> bytes:
    """The body."""
    return msgspec.msgpack.encode(answer)


def parse(body: bytes) -> AgentUsage:
    """What a body says.

    Raises:
        BadAnswerError: not msgpack, another version, or a field of the wrong type.
    """
    try:
        answer = _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadAnswerError(f"an answer that cannot be read: {error}") from None
    if answer.v != VERSION:
        raise BadAnswerError(f"an answer of version {answer.v}, expected {VERSION}")
    return answer
