"""What the agent of one made-up node says of the pods that its orders name.

Its figures move with each answer, and sums only grow. Of seven pods in ten the use is high, of two
it is low, and one never uses its GPU. The memory that a pod holds says when it was looked at, so
whoever reads it elsewhere knows how old it is there.
"""

from dataclasses import dataclass, field
from random import Random

from gpu_scheduler.api.orders import Orders
from gpu_scheduler.usage.answer import (
    BUCKETS,
    AgentUsage,
    DeviceHealth,
    DeviceNow,
    EndedUse,
    ProcessNow,
    ShareUse,
    Totals,
    dumps,
)
from gpu_scheduler.usage.window import MOST_WINDOWS, WINDOW_SECONDS, Window

LOOK_SECONDS = 10
LEAST_MIB = 1024
"""Whoever holds so much was looked at when the clock began."""
_FIRST_LOOK = 1_000_000  # of a history that is older than this program
_AGES = (3600, 10800)  # of a share that is seen first, seconds: it is advised
_KINDS = ((0.7, 0.8), (0.2, 0.1), (0.1, 0.0))  # how many have which use
_CORES_MILLI, _RAM_MIB = 4000.0, 8192.0


@dataclass(slots=True)
class _ShareSums:
    """A container's share of a device, and its sums since it began."""

    uid: str
    container: str
    device: str
    work: str
    cap_mib: int
    level: float
    began: float
    seconds: float = 0.0
    busy_seconds: float = 0.0
    used_gpu_seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    busy: float = 0.0
    memory_mib: float = 0.0


class NodeAnswers:
    """One node; times are seconds of a clock that begins at 0."""

    def __init__(self, devices: list[str], device_mib: int, random: Random) -> None:
        """``device_mib``: memory of each device."""
        self._devices = devices
        self._device_mib = device_mib
        self._random = random
        self._shares: dict[tuple[str, str, str], _ShareSums] = {}
        self._ended: dict[str, tuple[int, Totals]] = {}  # by work, and at which look

    def __len__(self) -> int:
        return len(self._shares)

    def told(self, orders: Orders, now: float) -> None:
        """Orders have come: these pods run, and no others."""
        named = {
            (pod.uid, container.name, device): (pod.work, cap_mib)
            for pod in orders.pods
            for container in pod.containers
            for device, cap_mib in container.caps_mib.items()
        }
        for key in self._shares.keys() - named.keys():
            gone = self._shares.pop(key)
            before = self._ended.get(gone.work, (0, Totals()))[1]
            self._ended[gone.work] = _look(now), before + self._totals(gone)
        for key, (work, cap_mib) in named.items():
            if key not in self._shares:
                self._shares[key] = self._begin(*key, work, cap_mib, now)

    def _begin(
        self, uid: str, container: str, device: str, work: str, cap_mib: int, now: float
    ) -> _ShareSums:
        parts, levels = zip(*_KINDS, strict=True)
        (level,) = self._random.choices(levels, parts)
        age = self._random.randint(*_AGES)
        begun = _ShareSums(uid, container, device, work, cap_mib, level, now - age)
        self._use(begun, age)
        return begun

    def answer(self, since: int, now: float) -> bytes:
        """All that is new to who has the answer of look ``since``; 0: who has none."""
        for share in self._shares.values():
            self._use(share, now - share.began - share.seconds)
            share.memory_mib = LEAST_MIB + now
        running = {share.work for share in self._shares.values()}
        ended = self._ended.items()
        return dumps(
            AgentUsage(
                look=_look(now),
                devices=tuple(map(self._device, self._devices)),
                shares=tuple(self._told(share, since, now) for share in self._shares.values()),
                ended=tuple(
                    EndedUse(work=work, totals=totals)
                    for work, (look, totals) in ended
                    if look >= since or work in running
                ),
            )
        )

    def _use(self, share: _ShareSums, seconds: float) -> None:
        """So many more seconds of use, a little more or less than usual."""
        noise = self._random.uniform(-0.1, 0.1) if share.level else 0.0
        share.busy = busy = min(max(share.level + noise, 0.0), 1.0)
        share.seconds += seconds
        share.busy_seconds += seconds * busy
        share.used_gpu_seconds += seconds * min(busy, self._part(share))
        share.buckets[min(int(busy * BUCKETS), BUCKETS - 1)] += round(seconds)

    def _part(self, share: _ShareSums) -> float:
        return min(share.cap_mib / self._device_mib, 1.0)

    def _totals(self, share: _ShareSums) -> Totals:
        return Totals(
            containers=1,
            seconds=share.seconds,
            busy_seconds=share.busy_seconds,
            held_gpu_seconds=share.seconds * self._part(share),
            used_gpu_seconds=share.used_gpu_seconds,
            unused_gpu_seconds=0.0 if share.level else share.seconds * self._part(share),
            buckets=tuple(share.buckets),
            peak_mib=round(share.memory_mib),
        )

    def _told(self, share: _ShareSums, since: int, now: float) -> ShareUse:
        age = int(now - share.began)
        cut = _look(share.began + age // WINDOW_SECONDS * WINDOW_SECONDS)  # the last window's end
        return ShareUse(
            device=share.device,
            pod_uid=share.uid,
            container=share.container,
            work=share.work,
            share=self._part(share),
            cap_mib=share.cap_mib,
            device_mib=self._device_mib,
            compute_capability="8.0",
            age_seconds=age,
            idle_seconds=0 if share.level else age,
            ever_busy=share.level > 0,
            first_minute_mib=LEAST_MIB,
            totals=self._totals(share),
            busy=share.busy,
            memory_mib=share.memory_mib,
            cpu_milli=_CORES_MILLI * share.busy,
            cpu_limit_milli=_CORES_MILLI,
            ram_mib=_RAM_MIB / 2,
            ram_limit_mib=_RAM_MIB,
            processes=(ProcessNow(pid=4711, memory_mib=share.memory_mib, busy=share.busy),),
            windows=_windows(share) if cut >= since else None,
        )

    def _device(self, uuid: str) -> DeviceNow:
        busy = self._random.random()
        health = DeviceHealth(
            celsius=round(40 + 40 * busy),
            watts=round(100 + 200 * busy),
            slowed=(),
            uncorrected_ecc=0,
            remapped_after_corrected=0,
            remapped_after_uncorrected=0,
        )
        return DeviceNow(
            uuid=uuid, busy=busy, memory_mib=20_000.0, allocated=1.0, used=busy, health=health
        )


def _look(now: float) -> int:
    return _FIRST_LOOK + int(now // LOOK_SECONDS)


def _windows(share: _ShareSums) -> tuple[Window, ...]:
    level = share.level
    one = Window(
        looks=WINDOW_SECONDS // LOOK_SECONDS,
        busy_mean=level,
        busy_median=level,
        busy_p95=min(level * 1.1, 1.0),
        busy_max=min(level * 1.2, 1.0),
        computing=1.0 if level else 0.0,
        low=0.0 if level > 0.5 else 1.0,
        device_busy_median=level,
        neighbours_above=0.0,
        memory_min_mib=share.memory_mib,
        memory_max_mib=share.memory_mib,
        tensor_median=level / 2,
        throttled=0.0,
        cpu_median=level,
        ram_max=0.5,
        io_stalled=0.0,
    )
    return (one,) * MOST_WINDOWS
