"""Pods on the gate path are bound by the stock scheduler, and it preempts nobody for them."""

from collections.abc import Iterator

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant, template, until

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PUSHY, PATIENT = "test-pushy", "test-patient"
NODES = tuple(f"r7525-{i}" for i in range(4))
# They keep out of the way of pods by a rule that only the stock scheduler judges.
AWAY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app": "theirs"}},
                "namespaceSelector": {
                    "matchExpressions": [
                        {"key": "kubernetes.io/metadata.name", "operator": "Exists"}
                    ]
                },
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


@pytest.fixture
def classes(admin: Caller) -> Iterator[None]:
    """One that preempts, as classes do unless they say otherwise, and one that does not."""
    pushy = {"metadata": {"name": PUSHY}, "value": 1000}
    patient = {"metadata": {"name": PATIENT}, "value": 1000, "preemptionPolicy": "Never"}
    for each in (pushy, patient):
        assert admin.create(CLASSES, each).ok
    yield
    for name in (PUSHY, PATIENT):
        assert admin.send("DELETE", f"{CLASSES}/{name}").ok


@pytest.fixture
def theirs(tenant: Tenant) -> Iterator[list[str]]:
    """A pod of somebody else on every node."""
    path = f"/api/v1/namespaces/{tenant.name}/pods"
    for node in NODES:
        container = {"name": "main", "image": "example/placeholder:1"}
        spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
        body = {"metadata": {"name": f"on-{node}", "labels": {"app": "theirs"}}, "spec": spec}
        assert tenant.admin.create(path, body).ok
    yield [f"{path}/on-{node}" for node in NODES]
    tenant.admin.send("DELETE", path)


def there(admin: Caller, paths: list[str]) -> bool:
    """Whether they run, and nobody has told them to go."""
    found = [admin.get(path).body for path in paths]
    return all(
        pod.get("status", {}).get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
        for pod in found
    )


def refusals(pods: list[Json]) -> list[str]:
    """What the stock scheduler said of pods that it had to bind."""
    return [
        condition["message"]
        for pod in pods
        for condition in pod["status"].get("conditions", ())
        if condition.get("reason") == "Unschedulable"
    ]


def test_a_class_that_preempts_is_refused_and_the_field_is_named(
    tenant: Tenant, classes: None, theirs: list[str]
) -> None:
    until(lambda: there(tenant.admin, theirs), "theirs run")
    wanted = template(affinity=AWAY, priorityClassName=PUSHY)
    tenant.submit("pushy", gpu=0.5, template=wanted)
    message = tenant.wait_reason("pushy", "Invalid")
    assert message.startswith(f"spec.template.spec.priorityClassName: {PUSHY} ")
    assert there(tenant.admin, theirs)


@pytest.mark.parametrize("of", [{"priorityClassName": PATIENT}, {}])
def test_pods_of_any_other_class_wait_for_those_in_their_way(
    tenant: Tenant, classes: None, theirs: list[str], of: Json
) -> None:
    until(lambda: there(tenant.admin, theirs), "theirs run")
    tenant.submit("patient", gpu=0.5, template=template(affinity=AWAY, **of))
    (said, *_) = until(lambda: refusals(tenant.pods("patient")), "the stock scheduler refuses it")
    assert "preemption" in said, said
    assert there(tenant.admin, theirs)
