"""Volumes decide the write path: an unbound claim goes through the gate, a shared one binds.

No provisioner is needed: volumes are folders of the node, made by hand.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import container, template
from tests.e2e.waits import until

from gpu_scheduler.api.names import GATE

CLASS = "waits-for-a-pod"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the node that becomes a volume."""
    made = tmp_path / "volume"
    made.mkdir()
    return made


@pytest.fixture
def storage_class(tenant: Tenant) -> Iterator[str]:
    """A class whose claims are bound by kube-scheduler, when it places their first pod."""
    path = "/apis/storage.k8s.io/v1/storageclasses"
    body = {
        "metadata": {"name": CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    assert tenant.admin.create(path, body).ok
    yield CLASS
    assert tenant.admin.send("DELETE", f"{path}/{CLASS}").ok


@pytest.fixture
def volume(tenant: Tenant, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A PersistentVolume of the class and access mode that the test is parametrised with."""
    storage, mode = request.param
    body: Json = {
        "metadata": {"name": tenant.name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": [mode],
            "storageClassName": storage,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(folder)},
        },
    }
    path = "/api/v1/persistentvolumes"
    assert tenant.admin.create(path, body).ok
    claim: Json = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": [mode],
            "storageClassName": storage,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    answer = tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/persistentvolumeclaims", claim)
    assert answer.ok, answer
    yield "data"
    assert tenant.admin.send("DELETE", f"{path}/{tenant.name}").ok


def claim_phase(tenant: Tenant) -> str:
    path = f"/api/v1/namespaces/{tenant.name}/persistentvolumeclaims/data"
    return str(tenant.admin.get(path).body["status"]["phase"])


def writer(claim: str) -> Json:
    """Writes which GPU it got, and which part of the job it is, into the volume."""
    script = 'echo "$NVIDIA_VISIBLE_DEVICES" > "/data/$GPUJOB_INDEX"'
    mounts = [{"name": "data", "mountPath": "/data"}]
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return template(container(script, volumeMounts=mounts), volumes=volumes)


def rendered(tenant: Tenant, name: str) -> Json:
    """The pod template of the job's Job."""
    spec: Json = tenant.batch_job(name)["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("volume", [(CLASS, "ReadWriteOnce")], indirect=True)
def test_a_job_with_an_unbound_claim_goes_through_the_gate_and_runs(
    tenant: Tenant, storage_class: str, volume: str, folder: Path
) -> None:
    assert claim_phase(tenant) == "Pending"
    tenant.submit("first-user", gpu=0.5, template=writer(volume))
    tenant.wait_phase("first-user", "Succeeded")
    template = rendered(tenant, "first-user")
    assert template["schedulingGates"] == [{"name": GATE}]
    assert template["schedulerName"] == "default-scheduler"
    assert claim_phase(tenant) == "Bound"
    device = tenant.allocations("first-user")[0].devices[0].device
    assert (folder / "0").read_text() == f"{device}\n"


@pytest.mark.parametrize("volume", [("", "ReadWriteMany")], indirect=True)
def test_jobs_on_a_bound_shared_volume_are_bound_directly(
    tenant: Tenant, volume: str, folder: Path
) -> None:
    until(lambda: claim_phase(tenant) == "Bound", "the claim is bound")
    tenant.submit("sharing", gpu=0.5, parallelism=2, completions=2, template=writer(volume))
    tenant.wait_phase("sharing", "Succeeded")
    template = rendered(tenant, "sharing")
    assert template["schedulerName"] == "gpu-scheduler"
    assert "schedulingGates" not in template
    assert sorted(path.name for path in folder.iterdir()) == ["0", "1"]
