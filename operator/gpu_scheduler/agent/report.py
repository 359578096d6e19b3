"""What the agent found, as the status of its GPUNode: pure functions.

Equal knowledge gives an equal status, whatever moves in between, so that a write follows from a
change and from nothing else. Usable memory of a device is what programs can have: the total without
the driver's own part, in whole MiB, rounded down so that the sum of caps never exceeds it.
"""

from collections.abc import Mapping

from gpu_scheduler.agent.driver import DeviceMemory, DeviceProperties
from gpu_scheduler.agent.isolation import IsolationVerdict
from gpu_scheduler.agent.poll import Poll
from gpu_scheduler.agent.selftest import SelftestVerdict as SelfTest
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.agent.watchdog import OverCapContainer
from gpu_scheduler.api.gpunode import ContainerReport, Device, ForeignProcess, GPUNodeStatus
from gpu_scheduler.core.model.units import MIB

MOST_DEVICES = 64
MOST_CONTAINERS = 1024
MOST_FOREIGN = 16  # as many as GPUNode holds of them per device
_MESSAGE = 512


def status(
    look: Poll, foreign: Mapping[str, list[ForeignProcess]], self_test: SelfTest | None
) -> GPUNodeStatus:
    """The status after a look.

    Args:
        look: What it found.
        foreign: Of that the foreign processes that are reported, by device.
        self_test: None when there was none.
    """
    devices = [
        device(
            each.facts,
            each.message,
            foreign.get(each.facts.uuid),
            look.contexts_mib.get(each.facts.uuid),
        )
        for each in look.sample.devices
    ]
    containers = [
        container_report(
            use, look.verdicts[use.key], look.over.get(use.key), look.compute_percent.get(use.key)
        )
        for use in look.usage.containers
    ]
    containers.sort(key=lambda c: (c.namespace, c.pod, c.uid, c.container))
    return GPUNodeStatus(
        driver_version=look.sample.driver_version or None,
        isolation=self_test.isolation if self_test else None,
        failed_isolation=(list(self_test.failed) or None) if self_test else None,
        self_test=self_test.sentence[:1024] if self_test else None,
        gpus=len(devices),
        devices=devices[:MOST_DEVICES],
        containers=containers[:MOST_CONTAINERS],
    )


def unreadable(known: GPUNodeStatus, problem: str) -> GPUNodeStatus:
    """The status when the driver cannot be asked: what was there, unhealthy."""
    devices = [
        each.model_copy(update={"healthy": False, "message": problem[:_MESSAGE]})
        for each in known.devices
    ]
    return known.model_copy(update={"devices": devices})


def container_report(
    use: ContainerUse,
    verdict: IsolationVerdict,
    over: OverCapContainer | None,
    compute_percent: int | None = None,
) -> ContainerReport:
    """One container; being above the cap is told before a missing layer."""
    messages = [text for text in (over.message if over else None, verdict.message) if text]
    return ContainerReport(
        namespace=use.container.pod.namespace,
        pod=use.container.pod.name,
        uid=use.container.pod.uid,
        container=use.container.own.index,
        isolation=verdict.isolation,
        compute_percent=compute_percent,
        over_cap_since=over.since if over else None,
        message="; ".join(messages)[:_MESSAGE] or None,
    )


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
