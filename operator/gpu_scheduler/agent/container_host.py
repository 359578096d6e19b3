"""What a container uses of its node beside GPUs, and may use: CPU, memory, and how long it stalled.

Read from the node's cgroups, version 2 or 1; of version 1 there is no word of stalls. A file that
is missing or odd makes one figure unknown.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from gpu_scheduler.agent.cgroup_tree import is_v2, leaf_of_container
from gpu_scheduler.core.model.units import MIB

_TOGETHER_V1 = ("cpu,cpuacct", "cpuacct,cpu")  # usage and quota in one hierarchy; or in two
_LOOK_AGAIN_SECONDS = 30.0  # for the cgroup of a container that was not found: a walk is dear
_LIMITS_SECONDS = 30.0  # limits change only when a pod is resized in place
_MOST_CPU_MILLI = 1e7  # ten thousand cores
_MOST_MEMORY_MIB = 1 << 28  # 256 TiB; version 1 says "no limit" by a number near 2^63


@dataclass(frozen=True, slots=True)
class ContainerHostUse:
    """None: not known. ``stalled`` ratios are of the last ten seconds, of all its processes.

    A limit that is None is not known or not there.
    """

    cpu_milli: float | None = None  # mean since the look before
    memory_mib: float | None = None  # without file pages that nobody has touched for long
    io_stalled: float | None = None
    memory_stalled: float | None = None
    cpu_limit_milli: float | None = None
    memory_limit_mib: float | None = None


UNKNOWN = ContainerHostUse()


@dataclass(slots=True)
class _Folders:
    cpu: Path | None
    quota: Path | None
    memory: Path | None
    found_at: float
    seconds: float | None = None  # of CPU, at the last look
    looked_at: float = 0.0
    cpu_limit_milli: float | None = None
    memory_limit_mib: float | None = None
    limits_at: float = float("-inf")


class ContainerHost:
    """Reads when asked; remembers where each container's cgroups are."""

    def __init__(self, root: Path) -> None:
        """``root``: the node's cgroups."""
        self._root = root
        self._v2 = is_v2(root)
        self._known: dict[str, _Folders] = {}

    def read(self, container_ids: Collection[str], now: float) -> dict[str, ContainerHostUse]:
        """The use of each container since the look before; ``now``: monotonic seconds."""
        self._known = {key: each for key, each in self._known.items() if key in container_ids}
        return {each: self._of(each, now) for each in container_ids}

    def _of(self, container_id: str, now: float) -> ContainerHostUse:
        folders = self._known.get(container_id)
        missing = folders is None or folders.cpu is None or not folders.cpu.is_dir()
        if folders is None or (missing and now - folders.found_at >= _LOOK_AGAIN_SECONDS):
            folders = self._known[container_id] = self._find(container_id, now)
        if folders.cpu is None or folders.memory is None:
            return UNKNOWN
        seconds = self._cpu_seconds(folders.cpu)
        before = folders.seconds
        then = folders.looked_at
        folders.seconds = seconds
        folders.looked_at = now
        cpu = None
        if seconds is not None and before is not None and seconds >= before and now > then:
            cpu = 1000 * (seconds - before) / (now - then)
        if now - folders.limits_at >= _LIMITS_SECONDS:
            quota = folders.quota
            folders.cpu_limit_milli = None if quota is None else self._cpu_limit_milli(quota)
            folders.memory_limit_mib = self._memory_limit_mib(folders.memory)
            folders.limits_at = now
        return ContainerHostUse(
            cpu,
            self._memory_mib(folders.memory),
            _stalled(folders.memory / "io.pressure"),
            _stalled(folders.memory / "memory.pressure"),
            folders.cpu_limit_milli,
            folders.memory_limit_mib,
        )

    def _find(self, container_id: str, now: float) -> _Folders:
        if self._v2:
            leaf = leaf_of_container(container_id, self._root)
            return _Folders(leaf, leaf, leaf, now)
        cpu, quota, memory = (
            self._leaf_v1(container_id, names)
            for names in (("cpuacct", *_TOGETHER_V1), ("cpu", *_TOGETHER_V1), ("memory",))
        )
        return _Folders(cpu, quota, memory, now)

    def _leaf_v1(self, container_id: str, names: Iterable[str]) -> Path | None:
        """Its folder in the hierarchy that has one of these names."""
        tree = next((self._root / name for name in names if (self._root / name).is_dir()), None)
        return leaf_of_container(container_id, tree) if tree is not None else None

    def _cpu_seconds(self, folder: Path) -> float | None:
        if self._v2:
            used = _fields(folder / "cpu.stat").get("usage_usec")
            return None if used is None else used / 1e6
        used = _whole(folder / "cpuacct.usage")
        return None if used is None else used / 1e9

    def _memory_mib(self, folder: Path) -> float | None:
        """As the kubelet counts it: what is used less inactive file pages."""
        current, inactive = ("memory.current", "inactive_file") if self._v2 else _MEMORY_V1
        used = _whole(folder / current)
        if used is None:
            return None
        return max(used - _fields(folder / "memory.stat").get(inactive, 0), 0) / MIB

    def _cpu_limit_milli(self, folder: Path) -> float | None:
        """Quota over period, both in microseconds: 200000 of 100000 are two cores."""
        if self._v2:
            words = _text(folder / "cpu.max").split()
        else:
            words = [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        if len(words) != 2 or not all(each.isascii() and each.isdigit() for each in words):
            return None  # "max", or -1
        quota, period = map(int, words)
        milli = 1000 * quota / period if period else 0.0
        return milli if 0 < milli <= _MOST_CPU_MILLI else None

    def _memory_limit_mib(self, folder: Path) -> float | None:
        limit = _whole(folder / ("memory.max" if self._v2 else "memory.limit_in_bytes"))
        return limit / MIB if limit is not None and 0 < limit <= _MOST_MEMORY_MIB * MIB else None


_MEMORY_V1 = ("memory.usage_in_bytes", "total_inactive_file")


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""


def _whole(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isascii() and text.isdigit() else None


def _fields(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _text(path).splitlines())
    return {each[0]: int(each[1]) for each in pairs if len(each) == 2 and each[1].isdigit()}


def _stalled(path: Path) -> float | None:
    """The ``full avg10`` of a pressure file, 0 to 1."""
    for line in _text(path).splitlines():
        if line.startswith("full "):
            for part in line.split():
                name, _, value = part.partition("=")
                if name == "avg10":
                    try:
                        return min(max(float(value) / 100, 0.0), 1.0)
                    except ValueError:
                        return None
    return None
