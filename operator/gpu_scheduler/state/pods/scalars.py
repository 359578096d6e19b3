"""Which names of resources are scalars: see ``core.model.resources``."""

from gpu_scheduler.api.share_keys import LIMITS
from gpu_scheduler.state.pods.plugin import is_gpu

INDEXED = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})


def is_scalar(name: str) -> bool:
    """Whether a node counts it, and nobody else gives it out.

    GPUs are given out device by device; a key by which a pod asks for a share of one is no
    resource of any node, and the kubelet passes over it.
    """
    return name not in INDEXED and name not in LIMITS and not is_gpu(name)
