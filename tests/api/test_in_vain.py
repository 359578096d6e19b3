"""Nobody gives way to what can never start, and no GPU is kept for it without end: ADR 0064."""

import pytest
from tests.api.replica import CALM_LEASE
from tests.api.site import Team
from tests.api.tenant import Json, Tenant, held, template, until

SETTINGS = {
    **CALM_LEASE,
    "guarantee_seconds": "1",
    "min_runtime_seconds": "0",
    "stuck_seconds": "2",
    "avoid_seconds": "1",
    "recheck_seconds": "1",
}
CLAIMED: Json = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
BY_DRA: Json = {"resourceClaims": [{"name": "c", "resourceClaimName": "gpu"}]}


def borrowing(team: Team) -> Tenant:
    """Somebody holds all GPUs, and nothing of them is theirs."""
    borrower = team(quota=0)
    borrower.submit("work", gpu=1, parallelism=8, retries=0)
    borrower.wait_placed("work", 8)
    return borrower


def evictions(borrower: Tenant) -> list[str]:
    return [e["message"] for e in borrower.events("work") if e["reason"] == "Preempted"]


def bound_claim(tenant: Tenant) -> None:
    """A volume and the claim that is bound to it."""
    about = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"]}
    claim = f"/api/v1/namespaces/{tenant.name}/persistentvolumeclaims"
    volume = {
        **about,
        "storageClassName": tenant.name,
        "hostPath": {"path": "/tmp"},
        "claimRef": {"namespace": tenant.name, "name": "data"},
    }
    wanted = {
        "storageClassName": tenant.name,
        "accessModes": about["accessModes"],
        "volumeName": tenant.name,
        "resources": {"requests": about["capacity"]},
    }
    path = "/api/v1/persistentvolumes"
    assert tenant.admin.create(path, {"metadata": {"name": tenant.name}, "spec": volume}).ok
    assert tenant.admin.create(claim, {"metadata": {"name": "data"}, "spec": wanted}).ok
    until(
        lambda: tenant.admin.get(f"{claim}/data").body["status"]["phase"] == "Bound",
        "the claim is bound",
    )


@pytest.mark.parametrize(
    "named, missing",
    [
        (CLAIMED, "there is no PersistentVolumeClaim data of namespace"),
        (BY_DRA, "there is no resource claim gpu in namespace"),
        ({"serviceAccountName": "robot"}, "service account"),
    ],
    ids=["claim", "resource-claim", "account"],
)
def test_nobody_gives_way_to_what_lacks_something_that_can_be_read(
    team: Team, named: Json, missing: str
) -> None:
    borrower, owner = borrowing(team), team(quota=8)
    owner.submit("never", gpu=1, template=template(**named))
    until(
        lambda: (
            missing in (s := owner.status("never")["message"])
            and ("Nothing is held" if named is CLAIMED else "nobody gives way to it") in s
        ),
        lambda: f"it says what is missing; {owner.status('never')}",
    )
    assert evictions(borrower) == []
    if named is CLAIMED:  # then it has its guarantee
        bound_claim(owner)
        owner.wait_phase("never", "Running")
        assert evictions(borrower)


def test_a_place_of_which_kube_scheduler_says_nothing_has_an_end(team: Team) -> None:
    owner = team(quota=8)
    owner.submit("never", gpu=2, parallelism=1, template=template(**BY_DRA))
    said = owner.wait_reason("never", "PlacementRefused")
    assert "has not bound it within" in said and "does not say why" in said
    until(lambda: held(owner) == 0, "it gives back what it held")
    until(
        lambda: "it is tried again at" in owner.status("never")["message"],
        lambda: f"it says when it is tried again; {owner.status('never')}",
    )
    borrower = borrowing(team)
    until(
        lambda: "nobody gives way to it" in owner.status("never")["message"],
        lambda: f"it waits for what is free; {owner.status('never')}",
    )
    assert evictions(borrower) == []
