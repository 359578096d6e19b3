"""What is said of one GPU alone: how it is, the processes on it, and who held it before."""

from collections.abc import Mapping

from gpu_scheduler.dashboard.picture import DeviceDetail
from gpu_scheduler.dashboard.reading.refs import of_name
from gpu_scheduler.dashboard.rows import EarlierRow, HealthRow, ProcessRow, XidRow
from gpu_scheduler.runtime.usage.charting.earlier_holders import EarlierHolder, EarlierHolders
from gpu_scheduler.runtime.usage.held import NodeHeld
from gpu_scheduler.runtime.usage.works import gpus
from gpu_scheduler.usage.answer import DeviceHealth

_SLOWED: Mapping[str, str] = {
    "thermal": "heat",
    "power-brake": "its board or rack cannot give the power",
    "power-cap": "a limit of its power",
}


def device_detail(node: NodeHeld, index: int, holders: EarlierHolders) -> DeviceDetail | None:
    """Of the device of this index; None: the node has none."""
    listed = next((each for each in node.devices if each.index == index), None)
    if listed is None:
        return None
    now = node.said.devices.get(listed.id) if node.said is not None else None
    processes = [
        ProcessRow(
            pid=each.pid,
            ref=of_name(held.pod.namespace, held.name),
            pod=held.pod.name,
            container=use.container,
            memory_mib=each.memory_mib,
            busy=each.busy,
        )
        for held in node.pods
        if held.pod is not None and held.name is not None
        for use in held.uses
        if use.device == listed.id
        for each in use.processes
    ]
    processes.sort(key=lambda each: (-(each.memory_mib or 0), each.pid))
    return DeviceDetail(
        health=_health(now.health) if now is not None and now.health is not None else None,
        processes=tuple(processes),
        earlier=tuple(_earlier(each) for each in holders.of(node.name, listed.id)),
        earlier_from=holders.began,
    )


def _earlier(held: EarlierHolder) -> EarlierRow:
    return EarlierRow(
        ref=of_name(held.namespace, held.name),
        gpus=gpus(held.milli),
        pods=held.pods,
        since=held.since,
        until=held.until,
    )


def _health(said: DeviceHealth) -> HealthRow:
    slowed = said.slowed
    return HealthRow(
        watts=said.watts,
        slowed=None if slowed is None else tuple(_SLOWED.get(each, each) for each in slowed),
        nvlink_mib_a_second=said.nvlink_mib_a_second,
        xids=tuple(XidRow(code=code, times=said.xids[code]) for code in sorted(said.xids)),
        uncorrected_ecc=said.uncorrected_ecc,
        remapped_after_corrected=said.remapped_after_corrected,
        remapped_after_uncorrected=said.remapped_after_uncorrected,
        remap_failed=said.remap_failed,
    )
