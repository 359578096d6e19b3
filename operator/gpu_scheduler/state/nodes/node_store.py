"""Nodes as the ledger is to know them: what the kubelet says, and the agent or else the labels.

Invariant: after every change the ledger has the node's capacity, its devices and why it takes no
pods. Devices are the agent's while there is a report, and those of the labels without one.
"""

from collections.abc import Mapping
from dataclasses import replace

from gpu_scheduler.kube.objects import Node
from gpu_scheduler.state.nodes import devices
from gpu_scheduler.state.nodes import node as nodes
from gpu_scheduler.state.nodes.agents import AgentStore
from gpu_scheduler.state.nodes.ledger import Ledger
from gpu_scheduler.state.pods import plugin
from gpu_scheduler.state.pods.pod import PodRecord


class NodeStore:
    """Nodes by name. What returns a bool says whether the ledger knows something new."""

    def __init__(self, ledger: Ledger) -> None:
        """Start empty; ``ledger`` is told."""
        self.agents = AgentStore()
        self._ledger = ledger
        self._nodes: dict[str, Node] = {}

    def put(self, node: Node) -> bool:
        """Take over a node's news."""
        self._nodes[node.metadata.name] = node
        return self.refresh(node.metadata.name)

    def drop(self, name: str) -> bool:
        """Forget a node; what its agent said stays until its GPUNode is gone too."""
        self._nodes.pop(name, None)
        return self._ledger.drop_node(name)

    def refresh(self, name: str) -> bool:
        """Tell the ledger what is known of a node now."""
        node = self._nodes.get(name)
        if node is None:
            return False
        found, info = self.agents.devices.get(name), nodes.info(node)
        if found is None:
            found = devices.from_labels(node.metadata.labels)
            info = replace(
                info, unschedulable=info.unschedulable or devices.absurd(node.metadata.labels)
            )
        if not info.unschedulable and (silence := self.agents.silence(name)):
            info = replace(info, unschedulable=silence)
        return self._ledger.set_node(info, found, plugin.served(node))

    def takes_pods(self, name: str) -> bool:
        """Whether a node is up and not cordoned; who uses its GPUs does not matter."""
        node = self._nodes.get(name)
        return node is not None and not nodes.unschedulable(node)

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
        held = {g.device for g in self._ledger.resolved(pod.node, pod.allocation.grants)}
        return tuple(d for d in self.agents.devices[pod.node] if d.id in held and not d.healthy)
