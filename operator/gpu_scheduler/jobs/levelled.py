"""What of a GPUJob's pod template its judgement depends on.

The template is as its author wrote it, so paths are theirs. What no judgement depends on is made
the same: jobs that differ in arguments or in the values of variables alone, such as those that a
loop submits, are one question.
"""

import hashlib
from typing import Any

import orjson

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.jobs.template import pod_template

_ANY = "x"  # stands for any text


def levelled(spec: GPUJobSpec) -> dict[str, Any]:
    """The pod template of one part of a GPUJob, as far as its judgement depends on it."""
    template = {**(spec.template or {}), **pod_template(spec)}
    for kind in ("containers", "initContainers"):
        containers = template["spec"].get(kind)
        for container in containers if isinstance(containers, list) else ():
            if isinstance(container, dict):
                _level(container)
    return template


def digest(template: dict[str, Any]) -> bytes:
    """What tells templates apart."""
    return hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()


def _level(container: dict[str, Any]) -> None:
    for kind in ("command", "args"):
        words = container.get(kind)
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            container[kind] = [_ANY] if words else []
    env = container.get("env")
    for entry in env if isinstance(env, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("value"), str) and entry["value"]:
            entry["value"] = _ANY  # beside valueFrom none may stand, and an empty one may
