"""Nodes as the ledger is to know them: what the kubelet says, and the agent or else the labels.

Invariant: after every change the ledger has the node's capacity, its devices and why it takes no
pods. Devices are the agent's while there is a report, and those of the labels without one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.objects import Node
from gpu_scheduler.state.nodes import devices
from gpu_scheduler.state.nodes import node as nodes
from gpu_scheduler.state.nodes.agents import AgentStore, Reports
from gpu_scheduler.state.nodes.ledger import Ledger
from gpu_scheduler.state.pods import plugin
from gpu_scheduler.state.pods.pod import PodRecord


class NodeStore:
    """Nodes by name, and what their agents report."""

    def __init__(
        self,
        ledger: Ledger,
        pods: Mapping[PodUID, PodRecord],
        refreshed: Callable[[str], None],
        told: Callable[[Iterable[PodUID]], None],
    ) -> None:
        """Start empty.

        Args:
            ledger: is told.
            pods: that are known.
            refreshed: hears of each node of which the ledger knows something new.
            told: hears of pods of which agents may say something else.
        """
        self.agents = AgentStore()
        self._ledger = ledger
        self._pods = pods
        self._refreshed = refreshed
        self._told = told
        self._nodes: dict[str, Node] = {}

    def changed(self, node: Node) -> None:
        """Take over a node's news."""
        self._nodes[node.metadata.name] = node
        self._refresh(node.metadata.name)

    def gone(self, name: str) -> None:
        """Forget a node; what its agent said stays until its GPUNode is gone too."""
        self._nodes.pop(name, None)
        if self._ledger.drop_node(name):
            self._refreshed(name)

    def reported(
        self,
        name: str,
        found: tuple[devices.NodeDevice, ...],
        reports: Reports | None = None,
        failed: tuple[str, ...] = (),
    ) -> None:
        """Take over what the agent reports of a node.

        Args:
            name: of the node.
            found: its devices.
            reports: containers by pod.
            failed: levels of isolation that did not hold in its self-test.
        """
        changed, pods = self.agents.put(name, found, reports or {}, failed)
        if changed:
            self._refresh(name)
            pods |= self._pods_on(name)
        self._told(pods)

    def report_gone(self, name: str) -> None:
        """Fall back to the node's labels; what is held by UUID is on none of their devices."""
        pods = self.agents.drop(name)
        self._refresh(name)
        self._told(pods)

    def agent_silent(self, name: str, why: str) -> None:
        """Note that a node's agent is not heard of (``why``), or that it is again (empty)."""
        if self.agents.set_silent(name, why):
            self._refresh(name)
            self._told(self._pods_on(name))

    def _pods_on(self, name: str) -> set[PodUID]:
        return {pod.uid for pod in self._pods.values() if pod.node == name}

    def _refresh(self, name: str) -> None:
        if self._tell_ledger(name):
            self._refreshed(name)

    def _tell_ledger(self, name: str) -> bool:
        """What is known of a node now; False when that is nothing new."""
        node = self._nodes.get(name)
        if node is None:
            return False
        found, info = self.agents.devices.get(name), nodes.info(node)
        if found is None:
            found = devices.from_labels(node.metadata.labels)
            why = devices.not_listed(node.metadata.labels)
            info = replace(info, unschedulable=info.unschedulable or why, not_listed=why)
        if failed := self.agents.failed_isolation.get(name):
            info = replace(info, failed_isolation=failed)
        if not info.unschedulable and (silence := self.agents.silence(name)):
            info = replace(info, unschedulable=silence)
        return self._ledger.set_node(info, found, plugin.served(node))

    def takes_pods(self, name: str) -> bool:
        """Whether a node is up and not cordoned; who uses its GPUs does not matter."""
        node = self._nodes.get(name)
        return node is not None and not nodes.unschedulable(node)

    def advertised(self, resource: str) -> bool:
        """Whether some node has any of a resource."""
        return any(n.status.allocatable.get(resource, "0") != "0" for n in self._nodes.values())

    def labels(self, name: str) -> Mapping[str, str]:
        """Labels of a node; none when it is unknown."""
        node = self._nodes.get(name)
        return node.metadata.labels if node else {}

    def uid(self, name: str) -> str:
        """UID of a Node; empty when it is unknown."""
        node = self._nodes.get(name)
        return node.metadata.uid if node else ""

    def sick_devices(self, pod: PodRecord) -> tuple[devices.NodeDevice, ...]:
        """Those of a pod's devices that its node's agent calls unhealthy."""
        if pod.allocation is None or not self.agents.has_sick_devices(pod.node):
            return ()
        held = {g.device for g in self._ledger.resolved(pod.node, pod.allocation.devices)}
        return tuple(d for d in self.agents.devices[pod.node] if d.id in held and not d.healthy)
