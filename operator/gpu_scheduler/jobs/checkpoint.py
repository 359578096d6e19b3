"""The folder in which a pod of a GPUJob with ``spec.checkpoint`` saves its work.

It is the same for each pod of an index, through retries, evictions and moves: ``NAMESPACE/NAME/
INDEX`` of the volume, of a role ``NAMESPACE/NAME/ROLE/INDEX``. A plain job that is deleted and
applied again finds what it had saved. Of a sweep NAME is followed by the GPUJob's uid: another
sweep of that name has other parameters under the same numbers. The node puts in the index, from a
variable that no template can set, and refuses ``..``.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from gpu_scheduler.api.checkpoint import Checkpoint, CheckpointVolume
from gpu_scheduler.api.names import CHECKPOINT_URL, CHECKPOINT_VOLUME, CHECKPOINTED
from gpu_scheduler.api.numbering import numbered
from gpu_scheduler.api.pod_env import JOB_INDEX, from_annotation
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.jobs.volume import mounted_at
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube import paths
from gpu_scheduler.kube.media_types import MERGE_PATCH
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.times import micro_timestamp

ENV_DIR = "GPUJOB_CHECKPOINT_DIR"
ENV_URL = "GPUJOB_CHECKPOINT_URL"
_OURS = frozenset({ENV_DIR, ENV_URL})

_NAME = "spec.checkpoint.volume.name"
_SPEC = "spec.template.spec"
# Volumes of a pod that are gone with it, or that nobody can write to.
_PASSING = {
    "emptyDir": "is gone with its pod",
    "ephemeral": "is gone with its pod",
    "configMap": "cannot be written to",
    "secret": "cannot be written to",
    "downwardAPI": "cannot be written to",
    "projected": "cannot be written to",
    "image": "cannot be written to",
    "gitRepo": "is gone with its pod",
}


def volumes(checkpoint: Checkpoint | None) -> list[dict[str, Any]]:
    """What a pod needs beside the volumes of its template."""
    if checkpoint is None or checkpoint.volume.name is not None:
        return []
    return [{"name": CHECKPOINT_VOLUME, **checkpoint.volume.to_json()}]


def put(
    pod_spec: dict[str, Any], checkpoint: Checkpoint, job: str, *, role: str = "", sweep: str = ""
) -> None:
    """Put the folder into each container and sidecar of a rendered pod spec, in place.

    Args:
        pod_spec: with the variables of ``render`` in it, and none of our own containers.
        checkpoint: of the GPUJob.
        job: namespace/name of the GPUJob.
        role: of its pods, where it has roles.
        sweep: uid of the GPUJob, if it is a sweep.
    """
    name = f"{job}.{sweep}" if sweep else job  # no GPUJob has a dot in its name
    folder = "/".join(filter(None, (name, role, f"$({JOB_INDEX})")))
    mount = {
        "name": checkpoint.volume.name or CHECKPOINT_VOLUME,
        "mountPath": checkpoint.mount_path,
        "subPathExpr": folder,
    }
    # Init containers have no folder; a variable that says so would be a wrong one.
    for container in (*(pod_spec.get("initContainers") or ()), *pod_spec["containers"]):
        container["env"] = [e for e in container["env"] if e.get("name") not in _OURS]
    for _, container in numbered(pod_spec):
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), dict(mount)]
        ours = [
            {"name": ENV_DIR, "value": checkpoint.mount_path},
            from_annotation(ENV_URL, CHECKPOINT_URL),
        ]
        container["env"] = ours + container["env"]


def problems(checkpoint: Checkpoint, pod_spec: Mapping[str, Any]) -> Iterator[Problem]:
    """Why a template of the right form cannot have the folder."""
    found = pod_spec.get("volumes") or ()
    if checkpoint.volume.name is None:
        for index, volume in enumerate(found):
            if volume.get("name") == CHECKPOINT_VOLUME:
                yield Problem(
                    f"{_SPEC}.volumes[{index}].name",
                    f"{CHECKPOINT_VOLUME} is the volume of spec.checkpoint; rename this one",
                )
    else:
        yield from _named_problems(checkpoint.volume, found)
    sidecars = {id(container) for _, container in numbered(pod_spec)}
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(pod_spec.get(kind) or ()):
            for mount_index, mount in enumerate(container.get("volumeMounts") or ()):
                path = mounted_at(mount)
                if path == checkpoint.mount_path and id(container) in sidecars:
                    yield Problem(
                        f"{_SPEC}.{kind}[{index}].volumeMounts[{mount_index}].mountPath",
                        f"{path} is where spec.checkpoint mounts its folder; mount this elsewhere, "
                        "or choose another spec.checkpoint.mountPath",
                    )


def _named_problems(volume: CheckpointVolume, found: Any) -> Iterator[Problem]:
    named = [each for each in found if each.get("name") == volume.name]
    if not named:
        known = ", ".join(str(each.get("name")) for each in found) or "none"
        yield Problem(_NAME, f"{volume.name} is no volume of spec.template; it has: {known}")
        return
    kinds = [kind for kind in _PASSING if named[0].get(kind) is not None]
    read_only = any(
        source.get("readOnly") for source in named[0].values() if isinstance(source, dict)
    )
    if not kinds and named[0].keys() <= {"name"}:
        kinds = ["emptyDir"]  # which it is if it says nothing
    if kinds or read_only:
        why = _PASSING[kinds[0]] if kinds else "cannot be written to"
        yield Problem(
            _NAME,
            f"{volume.name} is a volume of spec.template that {why} "
            f"({kinds[0] if kinds else 'readOnly'}); name one with persistentVolumeClaim, nfs or "
            "hostPath, or write one of these here",
        )


def saved(pod: Meta, at: datetime) -> Write:
    """Say on exactly this pod when its work was last saved."""
    body = {"metadata": {"uid": pod.uid, "annotations": {CHECKPOINTED: micro_timestamp(at)}}}
    return Write("PATCH", paths.pod(pod.namespace, pod.name), body, MERGE_PATCH)
