"""What a pod template of a GPUJob says and its pods do not get, with the field that counts.

A template that was copied from somewhere says more than its author has thought of: it is no
mistake, so the job runs, and what does not count is told once, in the condition Accepted. Pure.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import GROUP
from gpu_scheduler.api.parts import parts
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.jobs.scheduling import DEFAULT_SCHEDULER
from gpu_scheduler.jobs.users_path import source

_MOST_CHARS = 1000
_MOST_KEYS = 3  # of labels or annotations that are named


def unhonoured(spec: GPUJobSpec) -> str:
    """A sentence; empty where everything counts."""
    if spec.template is None and all(role.template is None for role in spec.roles or ()):
        return ""
    found: dict[str, None] = {}
    for part in parts(spec):
        if part.spec.template is not None:
            found |= dict.fromkeys(_of(spec, part.spec.template, source(spec, part.role)))
    return clip("; ".join(found), _MOST_CHARS)


def _of(spec: GPUJobSpec, template: Mapping[str, Any], where: str) -> Iterator[str]:
    pod = template.get("spec")
    pod = pod if isinstance(pod, dict) else {}
    if pod.get("schedulerName") == DEFAULT_SCHEDULER:
        yield (
            f"{where}.spec.schedulerName: {DEFAULT_SCHEDULER} does not count, as the GPU scheduler "
            "places the pods; remove the field"
        )
    if spec.time_limit_seconds is not None and pod.get("activeDeadlineSeconds") is not None:
        yield (
            f"{where}.spec.activeDeadlineSeconds does not count beside spec.timeLimitSeconds "
            f"({spec.time_limit_seconds} s); remove one of them"
        )
    meta = template.get("metadata") or {}
    for kind in ("labels", "annotations"):
        entries = meta.get(kind) if isinstance(meta, dict) else None
        keys = entries if isinstance(entries, dict) else {}
        ours = [key for key in keys if key.startswith(f"{GROUP}/")]
        if ours:
            named = ", ".join(sorted(ours)[:_MOST_KEYS])
            yield (
                f"{where}.metadata.{kind}: {named} {'do' if ours[1:] else 'does'} not count, as "
                "fields of the GPUJob say it (spec.gpu, spec.gpuModels, spec.priority …)"
            )
