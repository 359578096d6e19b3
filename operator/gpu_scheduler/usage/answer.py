"""What an agent answers when the leader asks what is going on at its node, as msgpack.

Ages are told, never times: a node's clock may be wrong. Ratios are 0 to 1. What nobody knows is
absent, never 0. Fields that a reader does not know are skipped.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from gpu_scheduler.usage.window import MOST_WINDOWS, Window

VERSION = 1
BUCKETS = 10  # of the histogram of use: below 10 %, below 20 %, and so on
MOST_PROCESSES = 64  # that are told of a share, those with most memory
_MOST_DEVICES, _MOST_SHARES, _MOST_ENDED = 256, 4096, 65536
_MOST_CODES = 64

# A node may be anybody's by now: what cannot be is no answer. NaN is none of these.
Ratio = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, le=1e15)]
Count = Annotated[int, Meta(ge=0, le=1 << 52)]
Name = Annotated[str, Meta(max_length=700)]
Buckets = Annotated[tuple[Count, ...], Meta(min_length=BUCKETS, max_length=BUCKETS)]


class _Struct(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    pass


class DeviceHealth(_Struct, frozen=True, kw_only=True):
    """How a device is, as the driver says.

    Attributes:
        celsius: its temperature.
        watts: that it takes.
        slowed: why it runs below its clocks: ``thermal``, ``power-brake``, ``power-cap``.
        xids: how often each error event was seen since the agent's start, by its code.
        uncorrected_ecc: errors of its memory since the last reset.
        remapped_after_corrected: rows of its memory that were replaced, in its life.
        remapped_after_uncorrected: the same, after errors that cost somebody their work.
        remap_failed: a row that could not be replaced.
        nvlink_mib_a_second: to and from it, over all links; only from Hopper on.
    """

    celsius: Amount | None = None
    watts: Amount | None = None
    slowed: Annotated[tuple[Name, ...], Meta(max_length=8)] | None = None
    xids: Annotated[dict[Count, Count], Meta(max_length=_MOST_CODES)] = {}
    uncorrected_ecc: Count | None = None
    remapped_after_corrected: Count | None = None
    remapped_after_uncorrected: Count | None = None
    remap_failed: bool = False
    nvlink_mib_a_second: Amount | None = None


class DeviceNow(_Struct, frozen=True, kw_only=True):
    """A device at the last look.

    Attributes:
        uuid: NVIDIA's identifier.
        busy: share of time with a kernel of anybody.
        memory_mib: in use.
        allocated: sum of the shares on it.
        used: of these, sum of what each uses, at most its share; None: not known of one.
        health: None: an agent of before says nothing of it.
    """

    uuid: Name
    busy: Ratio | None = None
    memory_mib: Amount | None = None
    allocated: Amount = 0.0
    used: Amount | None = None
    health: DeviceHealth | None = None


class ProcessNow(_Struct, frozen=True, kw_only=True):
    """A process on a device; ``pid``: the node's."""

    pid: Count
    memory_mib: Amount | None = None
    busy: Ratio | None = None


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

    containers: Count = 0
    seconds: Amount = 0.0
    busy_seconds: Amount = 0.0
    held_gpu_seconds: Amount = 0.0
    used_gpu_seconds: Amount = 0.0
    unused_gpu_seconds: Amount = 0.0
    buckets: Buckets = (0,) * BUCKETS
    peak_mib: Count = 0
    refused: Count = 0

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


def percentile_of(buckets: Sequence[int], percent: int) -> float | None:
    """Of a histogram of use: the upper end of the step, so never too little; None of nothing."""
    total, passed = sum(buckets), 0
    for number, seconds in enumerate(buckets, 1):
        passed += seconds
        if total and passed * 100 >= total * percent:
            return number / len(buckets)
    return None


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
        first_minute_mib: most memory that it held in its first minute.
        totals: since it began.
        busy: share of time with a kernel of its own, at the last look.
        memory_mib: that it holds.
        cpu_milli: cores in use × 1000; and so on: of the container, not of this device.
        processes: its own on this device, with most memory first.
        windows: the last full ones, the oldest first; None where the asker has them.
    """

    device: Name
    pod_uid: Name
    container: Name
    work: Name = ""
    share: Ratio = 0.0
    cap_mib: Count = 0
    device_mib: Count = 0
    compute_capability: Name = ""
    age_seconds: Count = 0
    idle_seconds: Count | None = None
    ever_busy: bool = False
    first_minute_mib: Count = 0
    totals: Totals = Totals()
    busy: Ratio | None = None
    memory_mib: Amount | None = None
    cpu_milli: Amount | None = None
    cpu_limit_milli: Amount | None = None
    ram_mib: Amount | None = None
    ram_limit_mib: Amount | None = None
    processes: Annotated[tuple[ProcessNow, ...], Meta(max_length=MOST_PROCESSES)] = ()
    windows: Annotated[tuple[Window, ...], Meta(max_length=MOST_WINDOWS)] | None = None


class EndedUse(_Struct, frozen=True, kw_only=True):
    """All shares of one work that have ended on this node.

    Attributes:
        work: whose they were.
        totals: of all of them.
    """

    work: Name
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
    look: Count = 0
    devices: Annotated[tuple[DeviceNow, ...], Meta(max_length=_MOST_DEVICES)] = ()
    shares: Annotated[tuple[ShareUse, ...], Meta(max_length=_MOST_SHARES)] = ()
    ended: Annotated[tuple[EndedUse, ...], Meta(max_length=_MOST_ENDED)] = ()


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
