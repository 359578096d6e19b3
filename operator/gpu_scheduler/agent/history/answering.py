"""What the leader is answered: made with each look, in its thread, and read from any other.

Nothing is told that is not of late: not while the driver does not answer, nor the disk.

Windows are cut every fifteen minutes of a share's life, after its warm-up, and told once to whoever
asks; after a restart of the agent they come from the rings.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from gpu_scheduler.agent.container_host import UNKNOWN, ContainerHostUse
from gpu_scheduler.agent.history.columns import RingType, Values
from gpu_scheduler.agent.history.history_file import HistoryFile
from gpu_scheduler.agent.history.rows import container_owner, device_mib, share_owner
from gpu_scheduler.agent.history.slot import LOOK_SECONDS, LOOKS, RingOwner, RingSlot
from gpu_scheduler.agent.sampler import DeviceSample, Sample
from gpu_scheduler.agent.usage import ContainerUse, Use
from gpu_scheduler.core.model.units import MIB
from gpu_scheduler.usage.answer import (
    MOST_PROCESSES,
    AgentUsage,
    DeviceHealth,
    DeviceNow,
    EndedUse,
    ProcessNow,
    ShareUse,
    Totals,
)
from gpu_scheduler.usage.window import (
    MOST_WINDOWS,
    WARM_UP_SECONDS,
    WINDOW_SECONDS,
    Look,
    Window,
    window,
)

_WARM_UP = WARM_UP_SECONDS // LOOK_SECONDS
_WINDOW = WINDOW_SECONDS // LOOK_SECONDS
_LATE_SECONDS = 3 * LOOK_SECONDS  # after which the last look says nothing of now
_ALONE = 0.05  # so much of a device's use may be nobody's
_Slots = Mapping[RingOwner, RingSlot]


@dataclass(frozen=True, slots=True)
class _Windows:
    """Of a share; ``count``: how many it has had, ``cut``: at which look the last was cut."""

    count: int = 0
    cut: int = 0
    last: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answer:
    """``problem``: for which no history is kept; ``at``: monotonic seconds."""

    look: int = 0
    devices: tuple[DeviceNow, ...] = ()
    shares: tuple[tuple[int, ShareUse], ...] = ()  # and when its last window was cut
    ended: tuple[tuple[int, EndedUse], ...] = ()  # and at which look
    at: float = float("-inf")
    problem: str = ""


class Answering:
    """The answer of this moment."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._answer = _Answer()
        self._windows: dict[RingOwner, _Windows] = {}

    def missing(self, now: float) -> str:
        """Why there is no answer of late; empty: there is one. ``now``: monotonic seconds."""
        answer = self._answer
        if answer.problem or not answer.look:
            return answer.problem or "no look at the GPUs yet"
        late = now - answer.at
        return f"no look at the GPUs for {late:.0f} s" if late > _LATE_SECONDS else ""

    def fails(self, problem: str) -> None:
        """Nothing is told until the next ``update``; ``problem``: why."""
        self._answer = replace(self._answer, problem=problem)

    def answer(self, since: int) -> AgentUsage:
        """All that is new to somebody who has the answer of look ``since``; 0: who has none."""
        now = self._answer
        if since > now.look:  # of a history that is no more
            since = 0
        running = {share.work for _, share in now.shares}
        return AgentUsage(
            look=now.look,
            devices=now.devices,
            shares=tuple(
                share if cut >= since else structs.replace(share, windows=None)
                for cut, share in now.shares
            ),
            ended=tuple(use for last, use in now.ended if last >= since or use.work in running),
        )

    def update(
        self,
        file: HistoryFile,
        sample: Sample,
        uses: Collection[ContainerUse],
        hosts: Mapping[str, ContainerHostUse],
        now: float,
    ) -> None:
        """Take over what was just written.

        Args:
            file: where it was written.
            sample: what was seen.
            uses: by whom.
            hosts: use of the node by container id.
            now: monotonic seconds.
        """
        look = file.look()
        slots = {slot.owner: slot for slot in file.slots() if slot.owner is not None}
        devices = {device.facts.uuid: device for device in sample.devices}
        windows: dict[RingOwner, _Windows] = {}
        shares: list[tuple[int, ShareUse]] = []
        for use in uses:
            host = hosts.get(use.container.own.id, UNKNOWN)
            for each in use.uses:
                owner, device = share_owner(use, each.uuid), devices.get(each.uuid)
                slot = slots.get(owner)
                if slot is None or device is None:
                    continue
                windows[owner] = cut = self._cut(slots, slot, container_owner(use), host, look)
                share = _share(slot, owner, host, look)
                size = round(device_mib(device) or 0)
                shares.append(
                    (
                        cut.cut,
                        structs.replace(
                            share,
                            cap_mib=each.cap_mib,
                            device_mib=size,
                            compute_capability=device.facts.compute_capability,
                            busy=each.busy_ratio,
                            memory_mib=each.used_mib,
                            processes=_processes(each),
                            windows=cut.last,
                        ),
                    )
                )
        self._windows = windows
        self._answer = _Answer(
            look,
            tuple(_device(slots, device, look) for device in sample.devices),
            tuple(shares),
            tuple(_ended(slots.values(), look)),
            at=now,
        )

    def _cut(
        self, slots: _Slots, slot: RingSlot, container: RingOwner, host: ContainerHostUse, look: int
    ) -> _Windows:
        """The share's windows, with those that are full now."""
        assert slot.owner is not None
        known = self._windows.get(slot.owner, _Windows())
        begin = slot.first + _WARM_UP
        count = max(look - begin, 0) // _WINDOW
        if count <= known.count:
            return known
        cut = list(known.last)
        for number in range(max(known.count, count - MOST_WINDOWS), count):
            since = begin + number * _WINDOW
            if since < look - LOOKS:
                continue  # the agent was not there when it was full, and half of it is gone
            until = since + _WINDOW
            device = dict(
                _looks(
                    slots, RingOwner(type=RingType.DEVICE, device=slot.owner.device), since, until
                )
            )
            of_host = dict(_looks(slots, container, since, until))
            looks = [
                _look(values, device.get(at, {}), of_host.get(at, {}), host)
                for at, values in slot.looks(since, until)
            ]
            cut.append(window(looks, slot.sums.share))
        return _Windows(count, look, tuple(cut[-MOST_WINDOWS:]))


def _looks(slots: _Slots, owner: RingOwner, since: int, until: int) -> Iterable[tuple[int, Values]]:
    slot = slots.get(owner)
    return () if slot is None else slot.looks(since, until)


def _look(share: Values, device: Values, used: Values, limits: ContainerHostUse) -> Look:
    busy, anybody = share.get("busy"), device.get("busy")
    alone = busy is not None and anybody is not None and anybody - busy <= _ALONE
    held_back = device.get("throttled")
    return Look(
        busy=busy,
        memory_mib=share.get("memoryMiB"),
        device_busy=anybody,
        neighbours_above=share.get("neighboursAbove"),
        tensor=device.get("tensor") if alone else None,
        throttled=None if held_back is None else held_back > 0,
        refused=round(share.get("refused") or 0),
        cpu=_part(used.get("cpuMilli"), limits.cpu_limit_milli),
        ram=_part(used.get("memoryMiB"), limits.memory_limit_mib),
        io_stalled=used.get("ioStalled"),
    )


def _part(used: float | None, limit: float | None) -> float | None:
    return used / limit if used is not None and limit else None


def _share(slot: RingSlot, owner: RingOwner, host: ContainerHostUse, look: int) -> ShareUse:
    sums = slot.sums
    return ShareUse(
        device=owner.device,
        pod_uid=owner.pod_uid,
        container=owner.container,
        work=owner.work,
        share=sums.share,
        age_seconds=slot.age_seconds(look),
        idle_seconds=sums.idle_seconds if sums.seconds else None,
        ever_busy=bool(sums.last_busy),
        first_minute_mib=sums.first_minute_mib,
        totals=slot.totals(look),
        cpu_milli=host.cpu_milli,
        cpu_limit_milli=host.cpu_limit_milli,
        ram_mib=host.memory_mib,
        ram_limit_mib=host.memory_limit_mib,
    )


def _device(slots: _Slots, device: DeviceSample, look: int) -> DeviceNow:
    """As its ring has it of this look; nothing, where there is none."""
    uuid = device.facts.uuid
    seen = _looks(slots, RingOwner(type=RingType.DEVICE, device=uuid), look, look + 1)
    values: Values = next((each for _, each in seen), {})
    return DeviceNow(
        uuid=uuid,
        busy=values.get("busy"),
        memory_mib=values.get("memoryMiB"),
        allocated=values.get("allocated") or 0.0,
        used=values.get("used"),
        health=_health(device),
    )


def _health(device: DeviceSample) -> DeviceHealth:
    load, vitals = device.load, device.vitals
    links = load.nvlink_rx_bytes_per_second, load.nvlink_tx_bytes_per_second
    known = [each for each in links if each is not None]
    return DeviceHealth(
        celsius=load.temperature_celsius,
        watts=load.power_watts,
        slowed=tuple(sorted(load.throttled)) if load.throttled is not None else None,
        xids=dict(device.xids),
        uncorrected_ecc=vitals.uncorrected_ecc,
        remapped_after_corrected=vitals.remapped_after_corrected,
        remapped_after_uncorrected=vitals.remapped_after_uncorrected,
        remap_failed=vitals.remap_failed,
        nvlink_mib_a_second=sum(known) / MIB if known else None,
    )


def _processes(use: Use) -> tuple[ProcessNow, ...]:
    """With most memory first."""
    ordered = sorted(use.processes, key=lambda each: (-(each.used_bytes or 0), each.pid))
    return tuple(
        ProcessNow(
            pid=each.pid,
            memory_mib=None if each.used_bytes is None else each.used_bytes / MIB,
            busy=each.busy_ratio,
        )
        for each in ordered[:MOST_PROCESSES]
    )


def _ended(slots: Iterable[RingSlot], look: int) -> Iterable[tuple[int, EndedUse]]:
    """By work, all its shares that are no more, and when the last of them ended."""
    found: dict[str, tuple[int, Totals]] = {}
    rings = [slot for slot in slots if slot.owner is not None and slot.last]
    summed = {slot.sums.summed for slot in rings}
    for slot in rings:
        owner = slot.owner
        if owner is None or owner.type not in (RingType.SHARE, RingType.WORK) or not owner.work:
            continue
        if owner.type is RingType.SHARE and slot.generation in summed:
            continue  # the node went down in the moment in which it was summed up
        last, totals = found.get(owner.work, (0, Totals()))
        found[owner.work] = max(last, slot.last), totals + slot.totals(look)
    return ((last, EndedUse(work=work, totals=totals)) for work, (last, totals) in found.items())
