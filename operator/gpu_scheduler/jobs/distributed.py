"""What the pods of a GPUJob are told of each other, in general and in the words of a framework.

Everything is the same for all pods of a role but for the index, which the Job controller writes on
each pod, and the rank, which the write that places the pod adds (``annotation``): Kubernetes can
insert a variable into another, but not add two numbers.

Sources: docs.pytorch.org/docs/stable/elastic/run.html (PET_ variables are torchrun's options) and
docs.pytorch.org/docs/stable/distributed.html; tensorflow.org/api_docs/python/tf/distribute/
cluster_resolver/TFConfigClusterResolver.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import RANK
from gpu_scheduler.api.parts import hosts
from gpu_scheduler.api.pod_env import JOB_INDEX, Env, from_annotation
from gpu_scheduler.api.roles import Framework
from gpu_scheduler.jobs.env import HOSTS, ROLE, WORLD_SIZE

TORCH_PORT = "29500"  # the default of torch.distributed
TENSORFLOW_PORT = 2222
# In a gang without roles all pods are alike; TensorFlow wants a word for that.
ONLY_ROLE = "worker"
_EVALUATOR = "evaluator"  # TensorFlow: looks on and is not a member of the cluster


def peer_env(gpujob: str, spec: GPUJobSpec, role: str) -> Env:
    """Which role this is, and who all the others are, in the order of ranks."""
    everybody = [host for _, host in hosts(gpujob, spec)]
    return [
        {"name": ROLE, "value": role or ONLY_ROLE},
        {"name": WORLD_SIZE, "value": str(len(everybody))},
        {"name": HOSTS, "value": ",".join(everybody)},
    ]


def peer_framework_env(
    gpujob: str, spec: GPUJobSpec, role: str, theirs: Iterable[Mapping[str, Any]]
) -> Env:
    """The same for the job's framework, without what the user's container sets itself.

    Args:
        gpujob: its name.
        spec: of the GPUJob.
        role: of the pod.
        theirs: ``env`` of the user's container.
    """
    chosen = {str(entry.get("name")): entry.get("value") for entry in theirs}
    if spec.framework is Framework.TORCH:
        told = _torch(gpujob, spec, chosen)
    elif spec.framework is Framework.TENSORFLOW:
        told = _tensorflow(gpujob, spec, role)
    else:
        told = []
    return [entry for entry in told if entry["name"] not in chosen]


def _torch(gpujob: str, spec: GPUJobSpec, chosen: Mapping[str, Any]) -> Env:
    first = next(host for _, host in hosts(gpujob, spec))
    # Who chooses one of a pair means the other as well.
    address = str(chosen.get("MASTER_ADDR") or chosen.get("PET_MASTER_ADDR") or first)
    port = str(chosen.get("MASTER_PORT") or chosen.get("PET_MASTER_PORT") or TORCH_PORT)
    size = str(spec.total_pods)
    return [
        {"name": "MASTER_ADDR", "value": address},
        {"name": "MASTER_PORT", "value": port},
        {"name": "WORLD_SIZE", "value": size},
        from_annotation("RANK", RANK),
        {"name": "PET_NNODES", "value": size},
        from_annotation("PET_NODE_RANK", RANK),
        {"name": "PET_MASTER_ADDR", "value": address},
        {"name": "PET_MASTER_PORT", "value": port},
    ]


def _tensorflow(gpujob: str, spec: GPUJobSpec, role: str) -> Env:
    cluster: dict[str, list[str]] = {}
    for kind, host in hosts(gpujob, spec):
        if kind != _EVALUATOR:
            cluster.setdefault(kind or ONLY_ROLE, []).append(f"{host}:{TENSORFLOW_PORT}")
    # The index is a number there, so it is put in after the text was made.
    config = json.dumps(
        {"cluster": cluster, "task": {"type": role or ONLY_ROLE, "index": "@"}},
        separators=(",", ":"),
    ).replace('"@"', f"$({JOB_INDEX})")
    return [{"name": "TF_CONFIG", "value": config}]
