"""Every process on this node's devices, with the container that it belongs to. Pure.

For whoever may run a program in the agent's pod, which is the owner of the node: it names pods of
all tenants. What belongs to no container of ours is named by its command.
"""

from collections.abc import Iterator
from typing import Any

from gpu_scheduler.agent.sampler import DeviceProcess, DeviceSample, Sample
from gpu_scheduler.agent.usage import Usage
from gpu_scheduler.core.model.units import MIB

_Whose = dict[str, str]


def rows(sample: Sample, usage: Usage) -> list[dict[str, Any]]:
    """One for each process and device, by device; what is not known is null."""
    whose = {(uuid, pid): of for uuid, pid, of in _owners(usage)}
    return [
        _row(device, process, whose.get((device.facts.uuid, process.pid), {}))
        for device in sample.devices
        for process in sorted(device.processes, key=lambda each: each.pid)
    ]


def _owners(usage: Usage) -> Iterator[tuple[str, int, _Whose]]:
    for each in usage.containers:
        pod = {"namespace": each.container.pod.namespace, "pod": each.container.pod.name}
        for use in each.uses:
            for process in use.processes:
                yield use.uuid, process.pid, {**pod, "container": each.container.own.name}
        for near in each.beside:
            yield near.uuid, near.gpu_process.pid, {**pod, "container": near.name}


def _row(device: DeviceSample, process: DeviceProcess, whose: _Whose) -> dict[str, Any]:
    used = process.used_bytes
    return {
        "gpu": device.facts.index,
        "uuid": device.facts.uuid,
        "pid": process.pid,
        "command": None if process.process is None else process.process.command,
        "memoryMiB": None if used is None else -(-used // MIB),
        **{key: whose.get(key) for key in ("namespace", "pod", "container")},
    }
