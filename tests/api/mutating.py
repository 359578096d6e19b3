"""Mutating policies of somebody else's, which change the pods that are made."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.api.caller import Caller
from tests.api.tenant import Json

_POLICIES = "/apis/admissionregistration.k8s.io/v1"


@contextmanager
def mutating(
    admin: Caller, name: str, mutation: Json, selector: Json, **spec: object
) -> Iterator[None]:
    """One that is there meanwhile; it is in force a little later than it is made.

    Args:
        admin: who may make one.
        name: of the policy, and of its binding.
        mutation: what it does.
        selector: joined to what it matches: pods that are made.
        spec: whatever else its spec says.
    """
    made = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    matches = {"resourceRules": [made], **selector}
    policies = f"{_POLICIES}/mutatingadmissionpolicies"
    bindings = f"{_POLICIES}/mutatingadmissionpolicybindings"
    body = {"matchConstraints": matches, "mutations": [mutation], **spec}
    assert admin.create(policies, {"metadata": {"name": name}, "spec": body}).ok
    assert admin.create(bindings, {"metadata": {"name": name}, "spec": {"policyName": name}}).ok
    try:
        yield
    finally:
        assert admin.send("DELETE", f"{bindings}/{name}").ok
        assert admin.send("DELETE", f"{policies}/{name}").ok
