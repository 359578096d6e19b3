"""GPUs of native sidecars on a real API server: accepted, placed, counted."""

import pytest
from tests.api.caller import Caller
from tests.api.tenant import GROUP, Tenant, template, until

from gpu_scheduler.api.names import DEFAULT_CONTAINER, devices_annotation, memory_mib_annotation

CACHE = {"name": "cache", "image": "example/cache:1", "restartPolicy": "Always"}
FETCH = {"name": "fetch", "image": "example/fetch:1"}
ASKED = [{"name": "main", "gpu": 0.5}, {"name": "cache", "gpu": 0.25}]


def test_a_sidecar_gets_its_share_beside_the_container(tenant: Tenant) -> None:
    tenant.submit("pair", template=template(initContainers=[FETCH, CACHE]), containers=ASKED)
    (held,) = tenant.wait_placed("pair")
    assert {grant.container: grant.milli for grant in held.grants} == {0: 500, 65: 250}
    (pod,) = tenant.pods("pair")
    notes = pod["metadata"]["annotations"]
    assert notes[devices_annotation(65)] == next(g.device for g in held.grants if g.container)
    assert int(notes[memory_mib_annotation(65)]) == next(g.mib for g in held.grants if g.container)
    assert notes[DEFAULT_CONTAINER] == "main"
    sidecar = next(c for c in pod["spec"]["initContainers"] if c["name"] == "cache")
    assert {"gpu-scheduler-c65"} <= {mount["name"] for mount in sidecar["volumeMounts"]}
    until(
        lambda: tenant.status("pair").get("allocatedGpu") == "0.75",
        lambda: f"both count; {tenant.status('pair')}",
    )


def test_an_init_container_that_ends_gets_none(tenant: Tenant) -> None:
    tenant.submit(
        "fetches",
        template=template(initContainers=[FETCH]),
        containers=[{"name": "fetch", "gpu": 0.5}],
    )
    message = tenant.wait_reason("fetches", "Invalid")
    assert message.startswith("spec.containers[0].name: init container fetch ends before")


@pytest.mark.parametrize("kind", ["initContainers", "containers"])
def test_nobody_else_gives_a_sidecar_gpus(tenant: Tenant, admin: Caller, kind: str) -> None:
    """The rules for whole templates hold for sidecars as well."""
    pick = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    pod = {"initContainers": [CACHE]} if kind == "containers" else {}
    made = template(**pod)
    made["spec"][kind] = (
        [{**CACHE, "env": pick}]
        if kind == "initContainers"
        else [{"name": "main", "image": "example/placeholder:1", "env": pick}]
    )
    body = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": "picks", "namespace": tenant.name},
        "spec": {"template": made, "containers": [{"name": "cache", "gpu": 0.5}]},
    }
    assert admin.create(f"{GROUP}/namespaces/{tenant.name}/gpujobs", body).ok
    assert "NVIDIA_VISIBLE_DEVICES" in tenant.wait_reason("picks", "Invalid")
