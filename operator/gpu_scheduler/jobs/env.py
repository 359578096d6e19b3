"""Environment variables: which GPUs a container sees, its memory cap, which part of the job it is.

Ours come before the user's, so that ``$(GPU_MEMORY_LIMIT_MIB)`` expands in their values and
arguments. A later entry of the same name would win, so reserved names are taken out of theirs:
nobody widens a share by setting NVIDIA_VISIBLE_DEVICES. What frameworks are told is in
``framework``.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from gpu_scheduler.api.names import (
    CAP_PREFIX,
    VISIBLE_DEVICES,
    VOID,
    devices_annotation,
    memory_mib_annotation,
)
from gpu_scheduler.api.pod_env import JOB_COMPLETIONS, JOB_INDEX, Env, from_annotation

MEMORY_LIMIT_MIB = "GPU_MEMORY_LIMIT_MIB"
JOB_NAME = "GPUJOB_NAME"
ROLE = "GPUJOB_ROLE"
WORLD_SIZE = "GPUJOB_WORLD_SIZE"
HOSTS = "GPUJOB_HOSTS"

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"  # set by the Job controller

_IDENTITY = (JOB_NAME, JOB_INDEX, JOB_COMPLETIONS, ROLE, WORLD_SIZE, HOSTS)
RESERVED = frozenset({VISIBLE_DEVICES, MEMORY_LIMIT_MIB, *_IDENTITY})


def identity(job: str, completions: int) -> Env:
    """Which job, which part of it, of how many."""
    return [
        {"name": JOB_NAME, "value": job},
        from_annotation(JOB_INDEX, INDEX_ANNOTATION),
        {"name": JOB_COMPLETIONS, "value": str(completions)},
    ]


def gpu_env(
    container: int, part: Env, framework: Env, theirs: Sequence[Mapping[str, Any]] | None
) -> Env:
    """Environment of GPU container number ``container``.

    Args:
        container: index in the pod's containers.
        part: from ``identity`` and, of pods that know of each other, ``distributed``.
        framework: from ``framework_env``; wins over entries of the same names.
        theirs: ``env`` of the user's container.
    """
    told = {entry["name"] for entry in framework}
    return [
        from_annotation(VISIBLE_DEVICES, devices_annotation(container)),
        from_annotation(MEMORY_LIMIT_MIB, memory_mib_annotation(container)),
        *framework,
        *deepcopy(part),
        *(entry for entry in _kept(theirs) if entry.get("name") not in told),
    ]


def void_env(part: Env, theirs: Sequence[Mapping[str, Any]] | None) -> Env:
    """Environment of a container that gets no GPU, whatever its image says."""
    return [{"name": VISIBLE_DEVICES, "value": VOID}, *deepcopy(part), *_kept(theirs)]


def _kept(theirs: Sequence[Mapping[str, Any]] | None) -> Env:
    return [dict(entry) for entry in theirs or () if not _reserved(entry.get("name"))]


def _reserved(name: object) -> bool:
    return name in RESERVED or (isinstance(name, str) and name.startswith(CAP_PREFIX))
