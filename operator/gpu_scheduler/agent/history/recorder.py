"""Writes what was seen into the rings: a row every ten seconds, and what ten minutes leave.

Fed with every look at the devices, in their thread. What goes wrong with the disk costs the history
alone: it is said once, and tried again after a minute.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from gpu_scheduler.agent.container_host import UNKNOWN, HostUse
from gpu_scheduler.agent.history.columns import Kind, Values
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.history_file import HistoryError, HistoryFile
from gpu_scheduler.agent.history.slot import LOOKS, LOOKS_OF_STEP, Owner
from gpu_scheduler.agent.sampler import DeviceSample, Sample
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.core.model.units import MIB

log = logging.getLogger(__name__)

FILE = "history"
_TRY_AGAIN_SECONDS = 60.0
_WHOLE_STEPS = LOOKS // LOOKS_OF_STEP - 1  # whose looks are all there still
HostOf = Callable[[Collection[str], float], Mapping[str, HostUse]]


class Recorder:
    """Opens the history when it is first needed; not to be called from two threads."""

    def __init__(self, folder: Path, megabytes: int, clock: HistoryClock, host_of: HostOf) -> None:
        """Prepare.

        Args:
            folder: on the node, ours alone.
            megabytes: that the file takes.
            clock: of the history.
            host_of: what containers, by their ids, use of the node.
        """
        self._path = folder / FILE
        self._megabytes = megabytes
        self._clock = clock
        self._host_of = host_of
        self.file: HistoryFile | None = None
        self.without_ring = 0
        """Containers at the last look for which there was no ring left."""
        self._look = self._step = -1
        self._peaks: dict[Owner, float] = {}  # MiB, since the last row
        self._try_at = float("-inf")

    def take(self, sample: Sample, uses: Collection[ContainerUse], now: float) -> None:
        """Keep a look at the devices; ``now``: monotonic seconds."""
        if sample.problem is not None or now < self._try_at:
            return
        try:
            self._take(sample, uses, now)
        except (OSError, HistoryError) as error:
            log.warning("no history is kept for %g s: %s", _TRY_AGAIN_SECONDS, error)
            self._try_at = now + _TRY_AGAIN_SECONDS
            self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self.file is not None:
            self.file.close()
        self.file = None
        self._look = self._step = -1

    def _take(self, sample: Sample, uses: Collection[ContainerUse], now: float) -> None:
        rows = _rows(sample, uses)
        for owner, values in rows.items():
            if (memory := values.get("memoryMiB")) is not None:
                self._peaks[owner] = max(self._peaks.get(owner, 0.0), memory)
        if self.file is None:
            self.file = HistoryFile(self._path, self._megabytes, self._clock)
        look = self.file.look()
        if look == self._look:
            return
        hosts = self._host_of([each.container.own.id for each in uses], now)
        for use in uses:
            if use.container.own.id:
                rows[_owner(Kind.CONTAINER, use)] = _of_host(
                    hosts.get(use.container.own.id, UNKNOWN)
                )
        self._write(self.file, look, rows)

    def _write(self, file: HistoryFile, look: int, rows: Mapping[Owner, Values]) -> None:
        self._close_steps(file, look)
        for held in tuple(file.slots()):
            if held.owner is not None and held.owner.container_id and held.owner not in rows:
                file.end(held)
        self.without_ring = 0
        for owner, values in rows.items():
            slot = file.of(owner)
            if slot is None:
                self.without_ring += 1
            elif values:
                slot.add(look, {**values, **self._peak(owner, values)})
        file.mark()
        self._peaks = {}
        self._look = look

    def _peak(self, owner: Owner, values: Values) -> Values:
        peak = self._peaks.get(owner)
        return {} if peak is None else {"memoryMiB": max(peak, values.get("memoryMiB") or 0.0)}

    def _close_steps(self, file: HistoryFile, look: int) -> None:
        """Those that have ended since the last look; at the start all whose looks are there."""
        step = look // LOOKS_OF_STEP
        begin = max(self._step if self._step >= 0 else step - _WHOLE_STEPS, step - _WHOLE_STEPS, 0)
        for each in range(begin, step):
            for slot in file.slots():
                if not slot.last or slot.last // LOOKS_OF_STEP >= each:
                    slot.close_step(each)
        self._step = step


def _rows(sample: Sample, uses: Collection[ContainerUse]) -> dict[Owner, Values]:
    """What a look says of devices and of shares; of what could not be read, nothing: a gap."""
    rows: dict[Owner, Values] = {}
    allocated: dict[str, list[tuple[float, float | None]]] = {}
    total = {d.facts.uuid: _total_mib(d) for d in sample.devices}
    for use in uses:
        for each in use.uses:
            size = total.get(each.uuid)
            if size:
                share = min(each.cap_mib / size, 1.0)
                allocated.setdefault(each.uuid, []).append((share, each.busy_ratio))
            if use.container.own.id:
                seen = {"busy": each.busy_ratio, "memoryMiB": each.used_mib}
                rows[_owner(Kind.SHARE, use, each.uuid)] = seen if each.readable else {}
    for device in sample.devices:
        shares = allocated.get(device.facts.uuid, [])
        row = _of_device(device, shares) if device.readable else {}
        rows[Owner(kind=Kind.DEVICE, device=device.facts.uuid)] = row
    return rows


def _of_device(device: DeviceSample, shares: Collection[tuple[float, float | None]]) -> Values:
    known = [(share, busy) for share, busy in shares if busy is not None]
    memory = device.memory
    return {
        "busy": device.load.busy_ratio,
        "memoryMiB": None if memory is None else memory.used_bytes / MIB,
        "allocated": min(sum(share for share, _ in shares), 1.0),
        "used": None if len(known) < len(shares) else sum(min(each) for each in known),
        "powerWatts": device.load.power_watts,
        "temperatureCelsius": device.load.temperature_celsius,
    }


def _of_host(use: HostUse) -> Values:
    return {
        "cpuMilli": use.cpu_milli,
        "memoryMiB": use.memory_mib,
        "ioStalled": use.io_stalled,
        "memoryStalled": use.memory_stalled,
    }


def _total_mib(device: DeviceSample) -> float | None:
    memory = device.memory or device.facts.memory
    return None if memory is None else memory.total_bytes / MIB


def _owner(kind: Kind, use: ContainerUse, device: str = "") -> Owner:
    pod, own = use.container.pod, use.container.own
    return Owner(
        kind=kind,
        device=device,
        container_id=own.id,
        pod_uid=pod.uid,
        namespace=pod.namespace,
        pod=pod.name,
        container=own.name,
        job=pod.job,
        project=pod.project,
    )
