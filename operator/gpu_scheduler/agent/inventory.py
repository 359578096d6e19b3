"""NVML's figures as the devices of a GPUNode: pure functions.

Usable memory is what programs can have: the total without the driver's own part, in whole MiB,
rounded down so that the sum of caps never exceeds it. Called by the sampler.
"""

from dataclasses import replace

from gpu_scheduler.agent.driver import DeviceMemory, DeviceProperties
from gpu_scheduler.api.gpunode import Device, ForeignProcess
from gpu_scheduler.core.model.units import MIB

MOST_FOREIGN = 16  # as many as GPUNode holds of them per device


def with_configured_memory(facts: DeviceProperties, unified_memory_mib: int) -> DeviceProperties:
    """The facts, with the configured size where a device shares the machine's memory."""
    if facts.memory is not None or not unified_memory_mib:
        return facts
    return replace(facts, memory=DeviceMemory(unified_memory_mib * MIB, 0, 0))


def problem(facts: DeviceProperties) -> str | None:
    """Why a device cannot be shared at all, whatever its health."""
    if facts.mig:
        return "MIG is enabled: only whole GPUs are shared; disable MIG or label the node away"
    if facts.memory is None:
        return (
            "shares the machine's memory, so that NVML tells no size: set the agent's "
            "unifiedMemoryMiB"
        )
    return None


def device(
    facts: DeviceProperties,
    message: str | None,
    foreign: list[ForeignProcess] | None = None,
    context_mib: int | None = None,
) -> Device:
    """A device as GPUNode shows it; ``message`` says why it is unhealthy."""
    memory = facts.memory or DeviceMemory(0, 0, 0)
    message = message or problem(facts)
    return Device(
        uuid=facts.uuid,
        index=facts.index,
        model=facts.model[:128],
        memory_mib=memory.total_bytes // MIB,
        usable_mib=max(0, memory.total_bytes - memory.reserved_bytes) // MIB,
        compute_capability=facts.compute_capability,
        healthy=message is None,
        message=None if message is None else message[:512],
        context_mib=context_mib,
        foreign_processes=(foreign or [])[:MOST_FOREIGN] or None,
    )
