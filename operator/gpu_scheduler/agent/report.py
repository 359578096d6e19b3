"""What the agent found, as the status of its GPUNode: pure functions.

Equal knowledge gives an equal status, whatever moves in between, so that a write follows from a
change and from nothing else. Called by the agent after each sample; written by ``publish``.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gpu_scheduler.agent.inventory import device
from gpu_scheduler.agent.isolation import IsolationVerdict
from gpu_scheduler.agent.sampler import Sample
from gpu_scheduler.agent.selftest import SelftestVerdict as SelfTest
from gpu_scheduler.agent.usage import ContainerUse, Usage
from gpu_scheduler.agent.watchdog import Key, OverCapContainer
from gpu_scheduler.api.gpunode import ContainerReport, Device, GPUNodeStatus

MOST_DEVICES = 64
MOST_CONTAINERS = 1024
_MESSAGE = 512


def status(
    sample: Sample,
    usage: Usage,
    over: Mapping[Key, OverCapContainer],
    verdict: Callable[[ContainerUse], IsolationVerdict],
    self_test: SelfTest | None,
    contexts_mib: Mapping[str, int] = MappingProxyType({}),
    compute_percent: Mapping[Key, int] = MappingProxyType({}),
) -> GPUNodeStatus:
    """The status after a sample.

    Args:
        sample: All devices.
        usage: Who is on them.
        over: Containers above their cap.
        verdict: The layer in place for a container.
        self_test: None when there was none.
        contexts_mib: What a context takes, by device; nothing where none was seen.
        compute_percent: Share of time by container; nothing where it is not known.
    """
    devices = [
        device(
            each.facts,
            each.message,
            usage.foreign.get(each.facts.uuid),
            contexts_mib.get(each.facts.uuid),
        )
        for each in sample.devices
    ]
    containers = [
        container_report(use, verdict(use), over.get(use.key), compute_percent.get(use.key))
        for use in usage.containers
    ]
    containers.sort(key=lambda c: (c.namespace, c.pod, c.uid, c.container))
    return _status(sample.driver_version, devices, containers, self_test)


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


def _status(
    driver: str,
    devices: list[Device],
    containers: list[ContainerReport],
    self_test: SelfTest | None,
) -> GPUNodeStatus:
    return GPUNodeStatus(
        driver_version=driver or None,
        isolation=self_test.isolation if self_test else None,
        self_test=self_test.sentence[:1024] if self_test else None,
        gpus=len(devices),
        devices=devices[:MOST_DEVICES],
        containers=containers[:MOST_CONTAINERS],
    )
