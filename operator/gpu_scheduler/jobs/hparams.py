"""A trial's parameters in its program: variables, arguments and a file, and where its result goes.

The template names annotations only, so one Job runs many trials: the write that places a pod sets
them (``annotations``), and the node resolves them when it creates the containers. Our variables
come before the user's, so ``$(HPARAM_LR)`` expands in their values; ``${hparam.lr}`` is turned into
that.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from gpu_scheduler.api.hparam_refs import env_name, replaced
from gpu_scheduler.api.names import (
    FILE_HPARAMS,
    FIRST_TRIAL,
    HPARAMS,
    MOUNT_PATH,
    REPORT_URL,
    SEGMENT,
    TRIAL,
    TRIALS,
    files_volume,
    hparam_annotation,
)
from gpu_scheduler.api.numbering import numbered
from gpu_scheduler.api.pod_env import JOB_COMPLETIONS, JOB_INDEX, Env, from_annotation
from gpu_scheduler.api.search import Value, text_of
from gpu_scheduler.api.segments import Segment

ENV_TRIAL = "GPUJOB_TRIAL"
ENV_POD_INDEX = "POD_INDEX"  # Run:ai's name for the same
ENV_RESULT_FILE = "GPUJOB_RESULT_FILE"
ENV_REPORT_URL = "GPUJOB_REPORT_URL"
ENV_HPARAMS_FILE = "GPUJOB_HPARAMS_FILE"

RESULT_FILE = "/dev/termination-log"  # Kubernetes' default terminationMessagePath

MOST_RULES = 17  # of the 20 that a podFailurePolicy may have; three are ours
# A user's POD_INDEX wins: the name is not ours.
_OURS = frozenset({ENV_TRIAL, ENV_RESULT_FILE, ENV_REPORT_URL, ENV_HPARAMS_FILE})
_COUNTS = {JOB_INDEX: TRIAL, JOB_COMPLETIONS: TRIALS}  # of the sweep, not of one of its Jobs


def inject(pod_spec: dict[str, Any], names: Iterable[str], gpu_containers: Iterable[int]) -> None:
    """Put the parameters ``names`` into a rendered pod spec, in place.

    Args:
        pod_spec: with the volumes and variables of ``render`` in it.
        names: of the parameters, as the sweep has them.
        gpu_containers: numbers of the containers that have the volume with our files.
    """
    numbers = dict(numbered(pod_spec))
    with_files = {id(numbers[index]) for index in gpu_containers}
    ours = [from_annotation(env_name(name), hparam_annotation(name)) for name in names]
    for kind in ("initContainers", "containers"):
        for container in pod_spec.get(kind) or ():
            _fill(container, ours, has_files=id(container) in with_files)
    files = {files_volume(index) for index in gpu_containers}
    for volume in pod_spec.get("volumes") or ():
        if volume.get("name") in files:
            field = {"fieldPath": f"metadata.annotations['{HPARAMS}']"}
            volume["downwardAPI"]["items"].append({"path": FILE_HPARAMS, "fieldRef": field})


def _fill(container: dict[str, Any], parameters: Env, *, has_files: bool) -> None:
    result_file = container.get("terminationMessagePath") or RESULT_FILE
    ours = [
        *parameters,
        from_annotation(ENV_TRIAL, TRIAL),
        from_annotation(ENV_POD_INDEX, TRIAL),
        {"name": ENV_RESULT_FILE, "value": result_file},
        from_annotation(ENV_REPORT_URL, REPORT_URL),
    ]
    if has_files:
        ours.append({"name": ENV_HPARAMS_FILE, "value": f"{MOUNT_PATH}/{FILE_HPARAMS}"})
    kept = [e for e in container.get("env") or () if e.get("name") not in _OURS]
    container["env"] = deepcopy(ours) + [_entry(entry) for entry in kept]
    for key in ("command", "args"):
        if isinstance(container.get(key), list):
            container[key] = [_expand(text) for text in container[key]]


def _entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    if annotation := _COUNTS.get(str(entry.get("name"))):
        return from_annotation(str(entry["name"]), annotation)
    return dict(entry) | ({"value": _expand(entry["value"])} if "value" in entry else {})


def _expand(text: Any) -> Any:
    if not isinstance(text, str):
        return text  # the API server says so in the dry run
    return replaced(text, lambda name: f"$({env_name(name)})")


def fail_fast_rules(codes: Iterable[int], containers: Sequence[str]) -> list[dict[str, Any]]:
    """Rules of a Job's podFailurePolicy: no retry after these exit codes.

    ``containers``: whose; not those of sidecars, which somebody else may have put there and which
    end by a signal. Where there are too many for a policy, all count.
    """
    values = sorted(codes)
    if not values:
        return []
    whose = [{"containerName": name} for name in containers]
    return [
        {"action": "FailIndex", "onExitCodes": each | {"operator": "In", "values": [*values]}}
        for each in (whose if len(whose) <= MOST_RULES else [{}])
    ]


def segment_annotations(segment: Segment) -> dict[str, str]:
    """What a Job of a sweep bears: its number and that of its first trial."""
    return {SEGMENT: str(segment.number), FIRST_TRIAL: str(segment.first)}


def annotations(trial: int, trials: int, parameters: Mapping[str, Value]) -> dict[str, str]:
    """What the one write that places the pod of a trial sets, beside the allocation.

    Args:
        trial: its number.
        trials: how many the sweep has now.
        parameters: its values by name.
    """
    as_json = json.dumps({name: parameters[name] for name in sorted(parameters)})
    each = {hparam_annotation(name): text_of(value) for name, value in parameters.items()}
    return {TRIAL: str(trial), TRIALS: str(trials), HPARAMS: as_json, **each}
