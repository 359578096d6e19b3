"""What of a Job that exists differs from what it should be, and how that is written.

``parallelism`` and ``suspend`` follow the GPUJob. ``completions`` is fixed when a Job is made, but
the API server lets anybody who may edit Jobs change it together with ``parallelism``, and that is
how it is put back. Everything else is immutable while a Job runs, so a digest that differs means an
operator that renders differently or another path, never a user's edit; while it is suspended parts
of its template may change, and are compared before it goes on.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from gpu_scheduler.api.names import RENDERED
from gpu_scheduler.kube.objects import Meta

_FOLLOWED = frozenset({"parallelism", "suspend"})
_COMPARED = ("completions", "parallelism", "suspend")
_DIGEST_CHARS = 16

# What of a suspended Job's template may change, by KEP 2926; CPU and memory are the user's affair.
_LOOSE = (
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec", "nodeSelector"),
    ("spec", "affinity"),
    ("spec", "tolerations"),
    ("spec", "schedulingGates"),
)
# Labels that the API server itself puts there.
_OF_JOBS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_OF_JOBS_ONCE = ("controller-uid", "job-name")


class _TemplatedSpec(msgspec.Struct, frozen=True):
    template: dict[str, Any] = {}


class TemplatedJob(msgspec.Struct, frozen=True):
    """A Job with its pod template as JSON, which watches leave out."""

    metadata: Meta = Meta()
    spec: _TemplatedSpec = _TemplatedSpec()


class LiveJobSpec(Protocol):
    """A Job's spec, or what is kept of it."""

    @property
    def parallelism(self) -> int | None:
        """Pods at once."""

    @property
    def completions(self) -> int | None:
        """Indexes."""

    @property
    def suspend(self) -> bool:
        """Whether it has no pods."""


def digest(job_spec: Mapping[str, Any]) -> str:
    """A short hash of what of a Job's spec cannot change, for the annotation ``RENDERED``."""
    fixed = {key: value for key, value in job_spec.items() if key not in _FOLLOWED}
    text = json.dumps(fixed, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]


def changes(seen: LiveJobSpec, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a Job's spec to write, so that it is as wanted; those alone that differ."""
    return {
        field: wanted[field]
        for field in _COMPARED
        if field in wanted and getattr(seen, field) != wanted[field]
    }


def steps(seen: LiveJobSpec, fields: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The specs to write one after the other for these changes.

    ``completions`` may be written with the same ``parallelism`` alone; its own follows.
    """
    if "completions" not in fields:
        return (dict(fields),)
    parallelism = fields.get("parallelism", seen.parallelism)
    first = {**fields, "parallelism": fields["completions"]}
    return (
        (first,) if parallelism == fields["completions"] else (first, {"parallelism": parallelism})
    )


def edited(found: TemplatedJob, rendered: Mapping[str, Any]) -> list[str]:
    """Fields of a suspended Job's template that somebody has changed.

    Args:
        found: the Job as the API server has it.
        rendered: as it would be created now; one that was rendered otherwise is not judged.
    """
    ours = (rendered["metadata"].get("annotations") or {}).get(RENDERED)
    if found.metadata.annotations.get(RENDERED) != ours:
        return []
    there, wanted = found.spec.template, rendered["spec"].get("template") or {}
    return [
        f"spec.template.{part}.{field}"
        for part, field in _LOOSE
        if _own(there, part, field) != _own(wanted, part, field)
    ]


def _own(template: Mapping[str, Any], part: str, field: str) -> Any:
    value = (template.get(part) or {}).get(field) or None
    if field != "labels" or value is None:
        return value
    return {k: v for k, v in value.items() if k not in (*_OF_JOBS, *_OF_JOBS_ONCE)} or None
