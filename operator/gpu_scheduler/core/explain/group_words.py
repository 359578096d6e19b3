"""What a group asks for, in words: of a lone pod what it wants, of a gang the sum."""

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.queue.pod_group import PodGroup

APART = (
    "they would fit if they shared GPUs, which pods of a gang do not: spec.distinctGPUs: false lets"
    ' them, on pods without a GPUJob the annotation gpu-scheduler.io/distinct-gpus: "false"'
)


def cost(group: PodGroup) -> str:
    """'0.5 of a GPU', '20480 MiB of a GPU, at least 0.25 of one'; of gangs 'at least 40 GPUs'."""
    needs = group.needs
    if group.job.gang is not None:
        return f"{'' if needs.exact else 'at least '}{wording.gpus(needs.least_milli)}"
    text = wording.needs(group.members[0][1].pod_shape)
    return text if needs.exact else f"{text}, at least {gpu_from_milli(needs.least_milli)} of one"


def together(group: PodGroup) -> str:
    """'needs 40 GPUs in 10 pods at once', and the pods that want none beside them."""
    if not group.needs.least_milli:
        return f"needs room for {wording.pods(len(group.members))} at once"
    counts = group.needs.counts.items()
    without = sum(count for pod_request, count in counts if not pod_request.least_milli)
    text = f"needs {cost(group)} in {wording.pods(len(group.members) - without)} at once"
    return f"{text}, with {without} more without GPUs" if without else text
