"""A GPUJob that is there, running or ended, as the beginning of another: ``submit --from``. Pure.

What is not the job itself stays behind: name, status, uid, owners, labels and annotations of ours.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_scheduler.api.names import GROUP
from gpu_scheduler.api.unstructured import Body, name_of
from gpu_scheduler.cli.again import fresh

_MOST_CHARS = 40  # of a value that is shown


def copied(job: Body) -> dict[str, Any]:
    """The same job without a name, as somebody would write it into a file."""
    body = fresh(job)
    meta = body["metadata"]
    kept = {key: _of_others(meta.get(key) or {}) for key in ("labels", "annotations")}
    body["metadata"] = {
        **{key: meta[key] for key in ("namespace",) if key in meta},
        **{key: found for key, found in kept.items() if found},
    }
    return body


def what_changed(job: Body, new: Body) -> str:
    """Which fields of its spec the new one has otherwise, in one line."""
    old = fresh(job)["spec"]
    found = list(_differences("", old, new.get("spec") or {}))
    if not found:
        return f"{name_of(new)} is {name_of(job)} with another name alone"
    return f"{name_of(new)} is {name_of(job)} with other {', '.join(found)}"


def _of_others(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Those whose keys are not ours."""
    return {key: value for key, value in pairs.items() if not _is_ours(key)}


def _is_ours(key: str) -> bool:
    prefix = key.partition("/")[0]
    return prefix == GROUP or prefix.endswith(f".{GROUP}")


def _differences(path: str, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(f"{path}.{key}".lstrip("."), old.get(key), new.get(key))
        return
    before, after = _shown(old), _shown(new)
    yield f"{path} ({before} → {after})" if before and after else path


def _shown(value: Any) -> str:
    """Empty where it is no short scalar."""
    if value is None:
        return "none"
    if isinstance(value, Mapping | list):
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST_CHARS else ""
