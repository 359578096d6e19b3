"""The bounds of all rules in one place.

Two more are part of the windows themselves, and the same for every rule: ``COMPUTES``, and ``LOW``
and ``HIGH``, in ``usage.window``.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Ratios are 0 to 1; of use, a ratio of the share where nothing else is said.

    Attributes:
        least_looks: in which its use was known, for a window to count.
        least_computing: share of looks in which it computed, for a rule that speaks of speed.
        stop_computing: the same for one that speaks of standing still.
        loading_seconds: since Running, for which a program may load before it first computes.
        loading_cpu: CPU, of its limit, from which a program that computes nothing loads.
        loading_cores: the same where the limit is known in cores.
        never_seconds: since Running, without a process on the GPU.
        throttled: share of looks in which the device was held back.
        tight_memory: of its cap, with an allocator that tries again.
        full_device: use of the device from which it is full.
        crowded_out: use below which a neighbour costs it something.
        neighbours_above: use of the device by neighbours, above their shares.
        low_use: below which its GPU waits for something.
        shown_use: the same where it is seen what for.
        busy_cpu: CPU, of its limit, above which CPU is what is short.
        spare_ram: RAM, of its limit, below which more workers have room.
        quiet_cpu: CPU, of its limit, below which nothing but one thread works.
        io_waits: share of time in which all of it waits for disks, from which I/O is short.
        io_none: below which it does not wait for them.
        core_below: cores that may lack of a whole number of them, and
        core_above: that may be used beside it.
        stalled: share of looks with hardly any use, or of time that stalls take.
        stall_peak: use that it reaches between stalls, at the 95th percentile.
        stall_seconds: from one stall to the next, at most.
        slow_member: of the median of all members, below which one is slow.
        tensor_capability: compute capability from which a device has tensor cores.
        tensor_use: use above which tensor cores would matter.
        tensor_none: activity of tensor cores below which they are not used.
        size_margin: memory that a smaller share leaves, times the peak.
        size_step_milli: shares that are advised are multiples of it, in thousandths of a GPU.
        size_gain_milli: by how much the share that is advised has to be smaller.
        size_seconds: that were seen before a size is advised.
        small_memory: peak of memory, of its cap, below which a batch is small.
        small_use_from: use from which it is small, and
        small_use_below: below which.
    """

    least_looks: int = 45
    least_computing: float = 0.6
    stop_computing: float = 0.2
    loading_seconds: int = 1800
    loading_cpu: float = 0.05
    loading_cores: float = 0.5
    never_seconds: int = 600
    throttled: float = 0.2
    tight_memory: float = 0.97
    full_device: float = 0.95
    crowded_out: float = 0.8
    neighbours_above: float = 0.05
    low_use: float = 0.4
    shown_use: float = 0.6
    busy_cpu: float = 0.8
    spare_ram: float = 0.5
    quiet_cpu: float = 0.4
    io_waits: float = 0.1
    io_none: float = 0.05
    core_below: float = 0.1
    core_above: float = 0.3
    stalled: float = 0.2
    stall_peak: float = 0.7
    stall_seconds: int = 300
    slow_member: float = 0.7
    tensor_capability: float = 7.0
    tensor_use: float = 0.6
    tensor_none: float = 0.05
    size_margin: float = 1.15
    size_step_milli: int = 50
    size_gain_milli: int = 100
    size_seconds: int = 1800
    small_memory: float = 0.5
    small_use_from: float = 0.4
    small_use_below: float = 0.7
