"""What of a rendered Job may change later, and how to tell that the rest has.

``parallelism`` and ``suspend`` change at any time; ``completions`` only together with an equal
``parallelism`` (a job without ``completions`` of its own). The digest covers everything else.
Called by the runtime when a GPUJob has changed.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gpu_scheduler.jobs.env import JOB_COMPLETIONS
from gpu_scheduler.kube.objects import Job

_MUTABLE = frozenset({"parallelism", "completions", "suspend"})
_DIGEST_CHARS = 16


def digest(job: Mapping[str, Any]) -> str:
    """A short hash of what of a rendered Job cannot change, for the annotation ``RENDERED``."""
    fixed = {key: value for key, value in job["spec"].items() if key not in _MUTABLE}
    template = fixed["template"]
    pod_spec = {
        key: [_without_completions(c) for c in value or ()] if _is_container_list(key) else value
        for key, value in template["spec"].items()
    }
    fixed["template"] = {**template, "spec": pod_spec}
    text = json.dumps(fixed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]


def _is_container_list(key: str) -> bool:
    return key in ("containers", "initContainers")


def _without_completions(container: Mapping[str, Any]) -> dict[str, Any]:
    env = [entry for entry in container["env"] if entry.get("name") != JOB_COMPLETIONS]
    return {**container, "env": env}


def mutable_patch(existing: Job, rendered: Mapping[str, Any]) -> dict[str, Any] | None:
    """The merge patch that makes an existing Job follow its GPUJob; None when it does already."""
    want = rendered["spec"]
    have = existing.spec
    patch: dict[str, Any] = {}
    if have.parallelism != want["parallelism"]:
        patch["parallelism"] = want["parallelism"]
    if have.suspend != want["suspend"]:
        patch["suspend"] = want["suspend"]
    if have.completions != want["completions"] == want["parallelism"]:
        patch["completions"] = want["completions"]
    return {"spec": patch} if patch else None
