"""Events when a device falls ill or is used past us: on its GPUNode, and on jobs that share it.

Jobs, and pods without one, learn of illness by their condition; strangers on a device are no fault
of theirs and no condition, but whoever sits beside one should know. Each change is told once; what
an operator finds when it starts is no change.
"""

from collections.abc import Iterator

from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.state.pods.pod import Stage

UNHEALTHY, FOREIGN = "DeviceUnhealthy", "ForeignProcesses"
Devices = tuple[NodeDevice, ...]


def news(before: Devices, after: Devices) -> Iterator[tuple[NodeDevice, str]]:
    """Devices with a new trouble, and which kind it is."""
    known = {device.id: device for device in before}
    for device in after:
        old = known.get(device.id)
        if not device.healthy and (old is None or old.healthy):
            yield device, UNHEALTHY
        if set(device.intruders) - set(old.intruders if old else ()):
            yield device, FOREIGN


class DeviceEvents:
    """Tells of devices' troubles."""

    def __init__(self, state: ClusterState, events: Events) -> None:
        """``events``: where they are told."""
        self._state = state
        self._events = events

    def changed(self, node: str, uid: str, before: Devices, after: Devices) -> None:
        """The devices of GPUNode ``node`` were others before."""
        for device, reason in news(before, after):
            try:
                self._tell(node, uid, device, reason)
            except Exception:
                unexpected("device_events", f"{device.id} of {node}")

    def _tell(self, node: str, uid: str, device: NodeDevice, reason: str) -> None:
        if reason == FOREIGN:
            strangers = ", ".join(device.intruders)
            message = (
                f"{device.id} of {node} has processes without a share of it: {strangers}; "
                "it takes no new pods"
            )
        else:
            message = f"{device.id} of {node} {device.trouble}; it takes no new pods"
        self._events.say(InvolvedObject("GPUNode", "", node, uid), "Warning", reason, message)
        if reason == FOREIGN:
            for subject in self._holders(node, device):
                self._events.say(subject, "Warning", reason, message)

    def _holders(self, node: str, device: NodeDevice) -> list[InvolvedObject]:
        """GPUJobs with a pod on the device, and pods without one."""
        found: dict[InvolvedObject, None] = {}
        for pod in self._state.pods.known.values():
            if pod.node != node or pod.stage is Stage.ENDED or pod.allocation is None:
                continue
            held = self._state.ledger.resolved(node, pod.allocation.devices)
            if not any(g.device == device.id for g in held):
                continue
            job = self._state.workloads.gpujob_of(pod)
            found[InvolvedObject.of_job(job) if job is not None else InvolvedObject.of_pod(pod)] = (
                None
            )
        return list(found)
