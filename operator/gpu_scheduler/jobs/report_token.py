"""The token with which a pod reports: its kubelet projects it, and nobody else can read it.

A ServiceAccount token that is bound to the pod, for an audience that no API server takes: whoever
has it can report for that pod and do nothing else. The kubelet renews the file, so a program reads
it for each report. Pods that have nowhere to report get none. The volume says no mode and no user:
the kubelet makes the file readable for whoever the containers run as (all alike: their user; with
fsGroup: that group; else everybody in the pod).
"""

from collections.abc import Iterator, Mapping
from posixpath import dirname
from typing import Any

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import FILE_TOKEN, REPORT_AUDIENCE, TOKEN_PATH, TOKEN_VOLUME
from gpu_scheduler.api.numbering import with_fields
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.jobs.volume import mounted_at

ENV_FILE = "GPUJOB_TOKEN_FILE"
SECONDS = 600  # the least that an API server gives; renewed when four fifths are over

_OURS = "is where pods find the token for their reports"


def stops_early(spec: GPUJobSpec) -> bool:
    """Whether trials of this GPUJob report how they go."""
    return spec.sweep is not None and spec.sweep.early_stopping is not None


def reports(spec: GPUJobSpec) -> bool:
    """Whether pods of this GPUJob report anything."""
    return spec.checkpoint is not None or stops_early(spec)


def put(pod_spec: dict[str, Any]) -> None:
    """Put the token into each container of a rendered pod spec, in place."""
    source = {"audience": REPORT_AUDIENCE, "expirationSeconds": SECONDS, "path": FILE_TOKEN}
    volume = {"name": TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": source}]}}
    pod_spec["volumes"] = [*(pod_spec.get("volumes") or ()), volume]
    for _, container in with_fields(pod_spec):
        mount = {"name": TOKEN_VOLUME, "mountPath": TOKEN_PATH, "readOnly": True}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
        theirs = [e for e in container.get("env") or () if e.get("name") != ENV_FILE]
        container["env"] = [{"name": ENV_FILE, "value": f"{TOKEN_PATH}/{FILE_TOKEN}"}, *theirs]


def problems(pod_spec: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """Mounts of a template that would hide the token; ``path``: of its spec."""
    for field, container in with_fields(pod_spec, path):
        for index, mount in enumerate(container.get("volumeMounts") or ()):
            here, at = f"{field}.volumeMounts[{index}].mountPath", mounted_at(mount)
            if at is None:
                continue
            if _covers(at):
                yield Problem(here, f"{TOKEN_PATH} {_OURS}; mount the volume elsewhere")
            elif mount.get("readOnly") and at in _ABOVE:
                yield Problem(
                    here,
                    f"{TOKEN_PATH} could not be made in a read-only {at}; mount the volume without "
                    "readOnly or elsewhere",
                )


def _covers(path: str) -> bool:
    return any(path == ours or path.startswith(f"{ours}/") for ours in _PATHS)


def _above(path: str) -> Iterator[str]:
    while (path := dirname(path)) != "/":
        yield path


_PATHS = (TOKEN_PATH, TOKEN_PATH.removeprefix("/var"))  # in most images /var/run leads to /run
_ABOVE = frozenset(above for path in _PATHS for above in _above(path))
