"""The Job by which the API server judges what somebody wrote as the pods of a GPUJob.

It has the template as its author wrote it, so paths are theirs, and of ours only what the policies
ask of a Job of ours. What no judgement depends on is levelled: jobs that differ in arguments or in
the values of variables alone, such as those that a loop submits, are one question.
"""

import hashlib
from copy import deepcopy
from typing import Any

import orjson

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import CONDITION_DISRUPTION, SCHEDULER_NAME
from gpu_scheduler.jobs.marks import own_labels
from gpu_scheduler.jobs.owner import owner_reference
from gpu_scheduler.jobs.template import pod_template

_ANY = "x"  # stands for any text


def levelled(spec: GPUJobSpec) -> dict[str, Any]:
    """The pod template of one part of a GPUJob, as far as its judgement depends on it."""
    template = pod_template(spec)
    pod_spec = template["spec"]
    for kind in ("containers", "initContainers"):
        containers = pod_spec.get(kind)
        for container in containers if isinstance(containers, list) else ():
            if isinstance(container, dict):
                _level(container)
    return template


def _level(container: dict[str, Any]) -> None:
    for kind in ("command", "args"):
        words = container.get(kind)
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            container[kind] = [_ANY] if words else []
    env = container.get("env")
    for entry in env if isinstance(env, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("value"), str) and entry["value"]:
            entry["value"] = _ANY  # beside valueFrom none may stand, and an empty one may


def digest(template: dict[str, Any]) -> bytes:
    """What tells templates apart."""
    options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    return hashlib.sha256(orjson.dumps(template, option=options)).digest()


def tried_job(
    name: str, namespace: str, uid: str, project: str, template: dict[str, Any]
) -> dict[str, Any]:
    """A Job of a GPUJob, with this template, that is never stored."""
    made = deepcopy(template)
    made["spec"] |= {"restartPolicy": "Never", "schedulerName": SCHEDULER_NAME}
    condition = {"type": CONDITION_DISRUPTION, "status": "True"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": own_labels(name, project, ""),
            "ownerReferences": [owner_reference(name, uid)],
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": 1,
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [condition]}]},
            "template": made,
        },
    }
