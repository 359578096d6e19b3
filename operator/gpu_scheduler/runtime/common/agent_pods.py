"""Which pods are agents of ours."""

from gpu_scheduler.api.names import COMPONENT_AGENT, LABEL_COMPONENT
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.pods.pod import PodRecord


def is_agent(pod: Pod, record: PodRecord, namespace: str) -> bool:
    """Whether it is one; elsewhere than in the operator's ``namespace`` a label proves nothing."""
    label = pod.metadata.labels.get(LABEL_COMPONENT)
    return record.bound and record.namespace == namespace and label == COMPONENT_AGENT
