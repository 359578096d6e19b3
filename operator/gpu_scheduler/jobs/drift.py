"""What of a rendered Job may change later, and how to tell that the rest has.

``parallelism`` and ``suspend`` change at any time. Everything else is fixed when the Job is
created (the CRD refuses such a change too), so a digest that differs means an operator that
renders differently or another path, never a user's edit. Called when a GPUJob has changed.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gpu_scheduler.kube.objects import Job

_MUTABLE = frozenset({"parallelism", "suspend"})
_DIGEST_CHARS = 16


def digest(job_spec: Mapping[str, Any]) -> str:
    """A short hash of what of a Job's spec cannot change, for the annotation ``RENDERED``."""
    fixed = {key: value for key, value in job_spec.items() if key not in _MUTABLE}
    text = json.dumps(fixed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]


def mutable_patch(existing: Job, rendered: Mapping[str, Any]) -> dict[str, Any] | None:
    """The merge patch that makes an existing Job follow its GPUJob; None when it does already."""
    want, have = rendered["spec"], existing.spec
    patch: dict[str, Any] = {}
    if have.parallelism != want["parallelism"]:
        patch["parallelism"] = want["parallelism"]
    if have.suspend != want["suspend"]:
        patch["suspend"] = want["suspend"]
    return {"spec": patch} if patch else None
