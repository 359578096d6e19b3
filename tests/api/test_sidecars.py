"""GPUs of native sidecars on a real API server: accepted, placed, counted."""

from typing import Any

import pytest
from tests.api.caller import Answer
from tests.api.tenant import GROUP, Tenant, template, until

from gpu_scheduler.api.names import DEFAULT_CONTAINER, devices_annotation, memory_mib_annotation

CACHE = {"name": "cache", "image": "example/cache:1", "restartPolicy": "Always"}
FETCH = {"name": "fetch", "image": "example/fetch:1"}
ASKED = [{"name": "main", "gpu": 0.5}, {"name": "cache", "gpu": 0.25}]


def test_a_sidecar_gets_its_share_beside_the_container(tenant: Tenant) -> None:
    tenant.submit("pair", template=template(initContainers=[FETCH, CACHE]), containers=ASKED)
    (held,) = tenant.wait_placed("pair")
    assert {allocated.container: allocated.milli for allocated in held.devices} == {0: 500, 65: 250}
    (pod,) = tenant.pods("pair")
    notes = pod["metadata"]["annotations"]
    assert notes[devices_annotation(65)] == next(g.device for g in held.devices if g.container)
    assert int(notes[memory_mib_annotation(65)]) == next(g.mib for g in held.devices if g.container)
    assert notes[DEFAULT_CONTAINER] == "main"
    sidecar = next(c for c in pod["spec"]["initContainers"] if c["name"] == "cache")
    assert {"gpu-scheduler-c65"} <= {mount["name"] for mount in sidecar["volumeMounts"]}
    until(
        lambda: tenant.status("pair").get("allocatedGPU") == "0.75",
        lambda: f"both count; {tenant.status('pair')}",
    )


def submitted(tenant: Tenant, **spec: Any) -> Answer:
    body = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": "wrong", "namespace": tenant.name},
        "spec": spec,
    }
    return tenant.admin.create(f"{GROUP}/namespaces/{tenant.name}/gpujobs", body)


@pytest.mark.parametrize("init", [[FETCH], [{**CACHE, "name": "other"}], [{"image": "x"}], []])
def test_other_init_containers_get_none(tenant: Tenant, init: list[dict[str, str]]) -> None:
    asked = [{"name": "fetch", "gpu": 0.5}]
    answer = submitted(tenant, template=template(initContainers=init), containers=asked)
    assert answer.status == 422
    assert "or of an init container there with restartPolicy Always" in answer.message


@pytest.mark.parametrize("kind", ["initContainers", "containers"])
def test_nobody_else_gives_a_sidecar_gpus(tenant: Tenant, kind: str) -> None:
    """The rules for whole templates hold for sidecars as well."""
    pick = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    made = template(initContainers=[CACHE])
    made["spec"][kind] = [{**made["spec"][kind][0], "env": pick}]
    assert submitted(tenant, template=made, containers=[{"name": "cache", "gpu": 0.5}]).ok
    assert "NVIDIA_VISIBLE_DEVICES" in tenant.wait_reason("wrong", "Invalid")
