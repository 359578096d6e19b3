"""The library that holds caps, as the API server sees it delivered: who gets it, and who not."""

from collections.abc import Iterator

import pytest
from tests.api.agent import here
from tests.api.caller import Answer, Caller
from tests.api.conftest import administrator
from tests.api.replica import CALM_LEASE, operating
from tests.api.tenant import Tenant, until

from cluster import Running

IMAGE = "example/gpu-scheduler:1"
LIBRARY = "gpu-scheduler-cap"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="module")
def capped(control_plane: Running) -> Iterator[Running]:
    """An operator that delivers the library."""
    with operating(control_plane, {**CALM_LEASE, "cap_image": IMAGE}):
        yield control_plane


@pytest.fixture
def admin(capped: Running) -> Caller:
    return administrator(capped)


def label_namespace(tenant: Tenant, **labels: str) -> Answer:
    path = f"/api/v1/namespaces/{tenant.name}"
    named = {f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}
    return tenant.admin.patch(path, {"metadata": {"labels": named}})


def test_the_restricted_pod_security_level_accepts_what_is_rendered(tenant: Tenant) -> None:
    assert label_namespace(tenant, enforce="restricted").ok
    tenant.submit("careless", gpu=0.5, template=here())
    # At first the operator may not know the project yet, which is Invalid as well.
    until(
        lambda: "violates PodSecurity" in tenant.status("careless").get("message", ""),
        lambda: f"the level is named; status {tenant.status('careless')}",
    )
    tenant.submit("careful", gpu=0.5, template=here(securityContext=RESTRICTED))
    tenant.wait_placed("careful")
    (pod,) = tenant.pods("careful")
    assert [c["name"] for c in pod["spec"]["initContainers"]] == [LIBRARY]
    assert pod["spec"]["initContainers"][0]["image"] == IMAGE
    paths = {m["mountPath"] for m in pod["spec"]["containers"][0]["volumeMounts"]}
    assert {"/etc/ld.so.preload", "/opt/gpu-scheduler/lib", "/opt/gpu-scheduler/state"} <= paths
    tenant.wait_phase("careful", "Running")


def test_a_pod_run_as_root_gets_the_library_from_a_container_that_is_not(tenant: Tenant) -> None:
    made = here()
    made["spec"]["securityContext"] = {"runAsUser": 0}
    tenant.submit("root", gpu=0.5, template=made)
    tenant.wait_placed("root")
    (pod,) = tenant.pods("root")
    assert pod["spec"]["initContainers"][0]["securityContext"]["runAsUser"] == 65532


def test_quotas_and_the_quality_of_service_do_not_notice(tenant: Tenant) -> None:
    path = f"/api/v1/namespaces/{tenant.name}/resourcequotas"
    hard = {
        "requests.cpu": "1",
        "limits.cpu": "1",
        "requests.memory": "1Gi",
        "limits.memory": "1Gi",
    }
    assert tenant.admin.create(path, {"metadata": {"name": "all"}, "spec": {"hard": hard}}).ok

    def used() -> dict[str, str]:
        return tenant.admin.get(f"{path}/all").body.get("status", {}).get("used", {})

    # A pod that is created in the first moments of a quota may be admitted by an API server that
    # has not heard of it, and is then counted only minutes later.
    until(lambda: used().get("requests.cpu") == "0", "the quota is in force")
    amounts = {"cpu": "1", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    tenant.submit("exact", gpu=0.5, template=here(resources=resources))
    tenant.wait_placed("exact")
    (pod,) = tenant.pods("exact")
    assert pod["status"]["qosClass"] == "Guaranteed"
    until(lambda: used().get("requests.cpu") == "1", "the quota counts the pod")


def test_a_job_can_do_without(tenant: Tenant) -> None:
    tenant.submit("plain", gpu=0.5, isolation="framework", template=here())
    tenant.wait_placed("plain")
    (pod,) = tenant.pods("plain")
    assert "initContainers" not in pod["spec"]
    assert LIBRARY not in str(pod["spec"]) and "ld.so.preload" not in str(pod["spec"])
    answer = tenant.patch("plain", isolation="interposer")
    assert answer.status == 422 and "isolation cannot be changed" in answer.message


def test_a_preload_file_of_ones_own_is_refused_with_the_way_out(tenant: Tenant) -> None:
    mount = {"name": "mine", "mountPath": "/etc/ld.so.preload", "subPath": "x"}
    made = here(volumeMounts=[mount])
    made["spec"]["volumes"] = [{"name": "mine", "emptyDir": {}}]
    tenant.submit("own", gpu=0.5, template=made)
    message = tenant.wait_reason("own", "Invalid")
    assert "containers[0].volumeMounts[0].mountPath" in message
    assert "spec.isolation: framework" in message
    tenant.submit("way-out", gpu=0.5, template=made, isolation="framework")
    tenant.wait_placed("way-out")
