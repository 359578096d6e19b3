"""Admission policies: whether the server has such, and whether ours are there and bound."""

from gpu_scheduler.api.unstructured import name_of, part
from gpu_scheduler.cli.checks.facts import (
    Check,
    CheckInputs,
    Read,
    missing,
    ok,
    some,
    unknown,
    unread,
    warn,
)

_SUFFIXES = ("allocations", "bindings", "crds", "operator", "sweeps", "term")
"""Of the policies that stand in every installation with ``admission.enabled``."""


def validating(facts: CheckInputs) -> list[Check]:
    """What keeps others from writing allocations."""
    name = "admission policies"
    if "validatingadmissionpolicies" not in facts.admission:
        said = "this API server has no ValidatingAdmissionPolicies; they came with Kubernetes 1.30"
        return [missing(name, said)]
    if facts.validating is None:
        return unread(name, "ValidatingAdmissionPolicies", "validatingadmissionpolicies")
    mend = facts.upgrade()
    if not facts.validating:
        said = "none is installed: whoever may edit pods may take any GPU"
        return [warn(name, said, facts.upgrade("admission.enabled=true"))]
    names = [name_of(each) for each in facts.validating]
    gone = [s for s in _SUFFIXES if not any(n.endswith(f"-{s}") for n in names)]
    if gone:
        said = f"some are missing: {some([f'…-{suffix}' for suffix in gone])}"
        return [missing(name, said, mend)]
    if unbound := _unbound(names, facts.validating_bindings):
        said = f"not bound, so without effect: {some(unbound)}"
        return [missing(name, said, mend)]
    if facts.validating_bindings is None:
        said = f"{len(names)} are installed; you may not read their bindings"
        return [unknown(name, said)]
    return [ok(name, f"{len(names)} are installed and bound")]


def mutating(facts: CheckInputs) -> list[Check]:
    """What makes pods of Deployments and others ours."""
    name = "any-pod policy"
    if "mutatingadmissionpolicies" not in facts.admission:
        said = (
            "this API server has no MutatingAdmissionPolicies (on by default from 1.36): pods "
            "that ask for a share are refused until they are rendered"
        )
        return [warn(name, said, "kubectl gpu render -f FILE | kubectl apply -f -")]
    if facts.mutating is None:
        return unread(name, "MutatingAdmissionPolicies", "mutatingadmissionpolicies")
    mend = facts.upgrade("shares.enabled=true")
    if not facts.mutating:
        said = "is not installed: pods that ask for a share by a label are not ours"
        return [warn(name, said, mend)]
    names = [name_of(each) for each in facts.mutating]
    if unbound := _unbound(names, facts.mutating_bindings):
        return [missing(name, f"not bound, so without effect: {unbound[0]}", mend)]
    if facts.mutating_bindings is None:
        return [unknown(name, "is installed; you may not read its binding")]
    return [ok(name, "is installed and bound")]


def _unbound(names: list[str], bindings: Read) -> list[str]:
    if bindings is None:
        return []
    bound = {str(part(each, "spec").get("policyName")) for each in bindings}
    return [name for name in names if name not in bound]
