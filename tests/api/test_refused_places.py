"""Jobs whose places a policy of the cluster refuses: they say so, and cost nobody anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.api.conftest import administrator
from tests.api.replica import CALM_LEASE, operating
from tests.api.tenant import Json, Tenant, template, until

from cluster import Running

POLICY = Path(__file__).parents[1] / "fixtures" / "field" / "no-binding.yaml"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WORDS = "requests must equal limits here"
NODE = {"nodeSelector": {"kubernetes.io/hostname": "r7525-0"}}
# Anti-affinity by labels of namespaces, which only kube-scheduler judges: the gate path.
GATED = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "nobody"}},
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
}
DOOMED: dict[str, Json] = {
    "doomed": {"gpu": 2, "template": template(**NODE)},
    "doomed-gate": {"gpu": 2, "template": template(**NODE, **GATED)},
    "gang": {"gpu": 1, "parallelism": 2, "gang": True, "template": template(**NODE)},
}


@pytest.fixture
def tenant(control_plane: Running) -> Iterator[Tenant]:
    settings = {**CALM_LEASE, "patience_seconds": "0", "recheck_seconds": "1"}
    made = Tenant(administrator(control_plane)).create(quota=8)
    try:
        with operating(control_plane, settings):
            yield made
            made.delete()
    finally:
        lift(made)


def forbid(tenant: Tenant, *, kube_scheduler_alone: bool = False) -> None:
    """``kube_scheduler_alone``: pods may leave their gate."""
    policy, binding = yaml.safe_load_all(POLICY.read_text(encoding="utf-8"))
    if kube_scheduler_alone:
        del policy["spec"]["matchConstraints"]["resourceRules"][1]
    for path, body in (
        ("validatingadmissionpolicies", policy),
        ("validatingadmissionpolicybindings", binding),
    ):
        assert tenant.admin.create(f"{ADMISSION}/{path}", body).ok
    body = {"metadata": {"name": "doomed"}, "target": {"kind": "Node", "name": "r7525-0"}}
    path = f"/api/v1/namespaces/{tenant.name}/pods/doomed/binding?dryRun=All"
    until(lambda: WORDS in tenant.admin.create(path, body).message, "the policy is in force")


def lift(tenant: Tenant) -> None:
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        tenant.admin.send("DELETE", f"{ADMISSION}/{kind}/no-binding-of-doomed")


@pytest.mark.parametrize("name", DOOMED)
def test_who_is_refused_says_why_and_others_have_the_gpus(tenant: Tenant, name: str) -> None:
    forbid(tenant)
    tenant.submit(name, priority=90, **DOOMED[name])
    assert WORDS in tenant.wait_reason(name, "PlacementRefused")
    tenant.submit("good", gpu=2, priority=10, template=template(**NODE))
    tenant.wait_phase("good", "Running")

    def waits() -> bool:
        """Its node is none that it keeps away from: whoever may be evicted for it goes now."""
        status = tenant.status(name)
        assert status["reason"] == "PlacementRefused" and WORDS in status["message"]
        return "nobody gives way" in status["message"] and "failed" not in status["message"]

    until(waits, lambda: f"it waits for what is free; {tenant.status(name)}")
    (pod,) = tenant.pods("good")
    assert "deletionTimestamp" not in pod["metadata"]
    assert not [e for e in tenant.events("good") if e["reason"] == "Preempted"]


def test_a_binding_that_kube_scheduler_may_not_make_is_said_at_once(tenant: Tenant) -> None:
    """Its gate is taken off, so it has its place, and holds it until it is given up."""
    forbid(tenant, kube_scheduler_alone=True)
    tenant.submit("doomed-gate", priority=90, **DOOMED["doomed-gate"])
    message = tenant.wait_reason("doomed-gate", "Placing", says=WORDS)
    assert "has its place on r7525-0; kube-scheduler: " in message
    assert WORDS in tenant.wait_reason("doomed-gate", "PlacementRefused")


@pytest.mark.parametrize("name", ["doomed", "doomed-gate"])
def test_it_is_tried_where_room_is_free_and_starts_once_nobody_refuses(
    tenant: Tenant, name: str
) -> None:
    forbid(tenant)
    tenant.submit(name, priority=90, **DOOMED[name])
    message = until(
        lambda: "it is tried again at 2" in (m := tenant.status(name)["message"]) and m,
        lambda: f"it says when it is tried again; {tenant.status(name)}",
    )
    assert WORDS in message
    lift(tenant)
    until(
        lambda: (s := tenant.status(name))["phase"] == "Running" and not s.get("reason"),
        lambda: f"it runs and says nothing more; {tenant.status(name)}",
    )
