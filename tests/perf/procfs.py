"""CPU seconds and memory of processes and of the machine, from /proc. Linux only.

CPU is user and system time of all threads; children that still run are not counted.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ResidentMemory:
    """Resident memory in MiB: now, and the most there ever was."""

    rss_mib: float
    peak_rss_mib: float


def cpu_seconds(pid: int) -> float:
    """CPU seconds that the process has used; 0 when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def cpu_by_name(pids: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds of several processes."""
    return {name: cpu_seconds(pid) for name, pid in pids.items()}


def busy_seconds(text: str | None = None) -> float:
    """CPU seconds since boot that all cores were busy, or taken away by the hypervisor.

    Args:
        text: of /proc/stat; None: it is read.
    """
    line = (Path("/proc/stat").read_text() if text is None else text).splitlines()[0]
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, line.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_SECOND


def memory(pid: int) -> ResidentMemory:
    """Resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = {line.split(":")[0]: line.split() for line in lines if line.startswith("Vm")}
    return ResidentMemory(int(kib["VmRSS"][1]) / 1024, int(kib["VmHWM"][1]) / 1024)
