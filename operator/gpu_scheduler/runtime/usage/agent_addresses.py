"""Where the agents are: follows the pods."""

from dataclasses import dataclass

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.common.agent_pods import is_agent
from gpu_scheduler.state.pods.pod import PodRecord, Stage


@dataclass(frozen=True, slots=True)
class AgentAddress:
    """An agent that runs."""

    uid: str
    node: str
    ip: str


class AgentAddresses:
    """By node; of two on one node, as while one is replaced, the one that was seen last."""

    def __init__(self, namespace: str) -> None:
        """``namespace``: of the operator."""
        self._namespace = namespace
        self.by_node: dict[str, AgentAddress] = {}

    def observe(self, obj: Pod, pod: PodRecord) -> None:
        """A pod was added or changed."""
        if not is_agent(obj, pod, self._namespace):
            return
        if pod.stage is Stage.RUNNING and not pod.deleting and obj.status.pod_ip:
            self.by_node[pod.node] = AgentAddress(pod.uid, pod.node, obj.status.pod_ip)
        else:
            self.gone(pod.uid)

    def gone(self, uid: PodUID) -> None:
        """A pod is gone."""
        for node, agent in self.by_node.items():
            if agent.uid == uid:
                del self.by_node[node]
                return
