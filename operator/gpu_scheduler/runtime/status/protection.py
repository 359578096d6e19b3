"""Whether a job's pods keep to their memory caps and sit on sound devices: two conditions.

``Protected`` is there once an agent has reported on a pod whose containers run; ``DevicesHealthy``
once a pod holds a device that is not healthy, and until the job holds nothing any more. Messages
carry the agents' own sentences, which have the numbers. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpu_scheduler.api.condition import ConditionType
from gpu_scheduler.core.model.wording import names
from gpu_scheduler.state.nodes.agents import SeenContainer, worst
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.state.pods.pod import PodRecord, Stage

Wanted = tuple[str, bool, str, str]  # type, whether it holds, reason, message

_NOTHING_HOLDS = ("none", "unprotected")
_HELD_BY = {
    "kernel": ("Kernel", "the driver enforces the memory cap"),
    "interposer": ("Interposer", "a library in the container enforces the memory cap"),
    "framework": (
        "Framework",
        "nothing enforces the memory cap: the framework was told of it, and the agent watches",
    ),
}


class Watched:
    """What agents know of pods. By default: nothing."""

    def __init__(
        self,
        reports: Callable[[PodRecord], tuple[SeenContainer, ...]] = lambda pod: (),
        sick_devices: Callable[[PodRecord], tuple[NodeDevice, ...]] = lambda pod: (),
    ) -> None:
        """``sick_devices``: those of the pod's devices that are not healthy."""
        self.reports = reports
        self.sick_devices = sick_devices


def conditions(
    held: Iterable[PodRecord], watched: Watched, before: Mapping[str, Mapping[str, Any]]
) -> list[Wanted]:
    """The conditions of a job whose live pods hold devices (``before``: by type)."""
    pods = sorted(held, key=lambda pod: (pod.index, pod.name))
    run = [pod for pod in pods if pod.stage is Stage.RUNNING]
    found = [protected([(pod, watched.reports(pod)) for pod in run])]
    if pods:
        sick = [(pod, device) for pod in pods for device in watched.sick_devices(pod)]
        found.append(devices_healthy(sick, ConditionType.DEVICES_HEALTHY in before))
    return [each for each in found if each is not None]


def protected(reports: Iterable[tuple[PodRecord, tuple[SeenContainer, ...]]]) -> Wanted | None:
    """Whether the caps hold; None without a report."""
    known = [(pod, report) for pod, each in reports for report in each]
    if not known:
        return None
    over = [each for each in known if each[1].over_cap_since]
    bare = [each for each in known if each[1].isolation in _NOTHING_HOLDS and each not in over]
    if over or bare:
        reason = "OverCap" if over else "Unprotected"
        message = names([_sentence(pod, report) for pod, report in (*over, *bare)], "; ")
        return ConditionType.PROTECTED, False, reason, message
    reason, message = _HELD_BY.get(worst(report for _, report in known), ("Unknown", ""))
    return ConditionType.PROTECTED, True, reason, message


def devices_healthy(sick: list[tuple[PodRecord, NodeDevice]], told: bool) -> Wanted | None:
    """Whether the devices that the job holds are sound; None when that was never in question."""
    if not sick:
        return (ConditionType.DEVICES_HEALTHY, True, "Healthy", "") if told else None
    by_device: dict[tuple[str, str], tuple[NodeDevice, list[str]]] = {}
    for pod, device in sick:
        by_device.setdefault((pod.node, device.id), (device, []))[1].append(pod.name)
    sentences = [
        f"{device.id} of {node} {device.trouble} (held by {names(pods)})"
        for (node, _), (device, pods) in sorted(by_device.items(), key=lambda item: item[0])
    ]
    return ConditionType.DEVICES_HEALTHY, False, "DeviceUnhealthy", names(sentences, "; ")


def _sentence(pod: PodRecord, report: SeenContainer) -> str:
    if report.message:
        return f"{pod.name}: {report.message}"
    if report.over_cap_since:
        return (
            f"{pod.name}: container {report.container} is above its memory cap since "
            f"{report.over_cap_since}"
        )
    return f"{pod.name}: nothing enforces the memory cap of container {report.container}"
