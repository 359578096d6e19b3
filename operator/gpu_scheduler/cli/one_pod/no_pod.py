"""Why there is no pod that a command could be about: in one line, with what to ask next."""

from collections.abc import Mapping
from typing import Any

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.finding import ResolvedTarget
from gpu_scheduler.cli.one_pod.choosing import Wanted, phase_of

_ENDED = ("Succeeded", "Failed")


def why_none(cluster: ClusterAccess, found: ResolvedTarget, wanted: Wanted) -> Failed:
    """What to say where ``choose`` finds nothing."""
    name = found.name
    if found.kind == "pod":
        return Failed(f"pod {name} {_pod_words(found.pods[0])}; kubectl gpu why pod/{name}")
    if found.job is None:
        word = f"{found.kind}/{name}"
        return Failed(f"no pod of {word} runs{_of(wanted)}; kubectl gpu why {word}")
    status = found.job.get("status") or {}
    spec = found.job.get("spec") or {}
    phase, reason = str(status.get("phase") or ""), str(status.get("reason") or "")
    if wanted.trial is not None and not spec.get("sweep"):
        return Failed(f"{name} is no sweep and has no trials; --index N says which pod")
    if wanted.role is not None and wanted.role not in (roles := _roles(spec)):
        has = f"its roles are {', '.join(roles)}" if roles else "it has no roles"
        return Failed(f"{name} has no role {wanted.role!r}; {has}")
    if wanted.trial is not None and (state := _trial_state(cluster, found, wanted.trial)):
        return Failed(
            f"trial {wanted.trial} of {name} has ended ({state}) and its pod is gone; "
            f"kubectl gpu sweep trials {name} shows its result"
        )
    most = _most(spec)
    number = wanted.index if wanted.trial is None else wanted.trial
    if most is not None and number is not None and number >= most:
        return Failed(f"{name} has no {wanted}: they are numbered 0 to {most - 1}")
    if phase in _ENDED:
        has_pods = any(phase_of(pod) in _ENDED for pod in found.pods)
        left = (
            f"its pods have ended; kubectl gpu logs {name} shows what they printed"
            if has_pods
            else "its pods are gone"
        )
        return Failed(
            f"{name} has ended ({reason or phase}){_of(wanted, ', asked for')}, and {left}"
        )
    told = f" ({reason or phase})" if reason or phase else ""
    return Failed(f"{name} has no pod{_of(wanted)} that runs yet{told}; kubectl gpu why {name}")


def _of(wanted: Wanted, words: str = " of") -> str:
    return f"{words} {wanted}" if str(wanted) else ""


def _pod_words(pod: Mapping[str, Any]) -> str:
    phase = phase_of(pod)
    if pod["metadata"].get("deletionTimestamp"):
        return "is ending"
    return "has not started" if phase in ("", "Pending") else f"has ended ({phase})"


def _roles(spec: Mapping[str, Any]) -> list[str]:
    return [str(role.get("name")) for role in spec.get("roles") or ()]


def _most(spec: Mapping[str, Any]) -> int | None:
    """How many pods are numbered; None where the spec cannot be read, or roles say it."""
    from gpu_scheduler.api.gpujob import GPUJobSpec
    from gpu_scheduler.api.validate import read

    model = read(GPUJobSpec, spec)
    if isinstance(model, tuple) or model.roles is not None:
        return None
    return model.total_pods or None


def _trial_state(cluster: ClusterAccess, found: ResolvedTarget, trial: int) -> str:
    """What became of a trial; empty where it has not ended, or nobody knows."""
    from gpu_scheduler.kube import errors
    from gpu_scheduler.sweeps.commands.cluster import fetch
    from gpu_scheduler.sweeps.core.outcome import TrialState

    try:
        table = fetch(cluster.client, found.namespace, found.name).table
    except (ValueError, errors.ApiError):
        return ""
    outcome = table.get(trial)
    return "" if outcome is None or outcome.state is TrialState.STARTED else outcome.state.value
