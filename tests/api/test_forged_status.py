"""A user who may write statuses: what is written is put right, and no pod pays for it."""

from tests.api.conftest import administrator
from tests.api.replica import CALM_LEASE, Replica
from tests.api.tenant import GROUP, Json, Tenant, runs, template, until

from cluster import Running

ENDED: Json = {"phase": "Succeeded", "message": "all is well", "preemptedBy": "team-b/other"}


def forge(tenant: Tenant) -> None:
    path = f"{GROUP}/namespaces/{tenant.name}/gpujobs/job/status"
    assert tenant.admin.patch(path, {"status": ENDED}).ok
    numbers = {"status": {"allocatedGPU": "7", "fairShareGPU": "7"}}
    assert tenant.admin.patch(f"{GROUP}/gpuprojects/{tenant.name}/status", numbers).ok


def wait_right(tenant: Tenant, uid: str) -> None:
    """Until all is said as it is; nothing has happened to the pod, nor to what makes the next."""
    until(
        lambda: (s := tenant.status("job"))["phase"] == "Running" and "preemptedBy" not in s,
        lambda: f"the status is ours again: {tenant.status('job')}",
    )
    until(
        lambda: tenant.project_status()["allocatedGPU"] == "1",
        lambda: f"so is that of the project: {tenant.project_status()}",
    )
    (pod,) = tenant.pods("job")
    assert pod["metadata"]["uid"] == uid and "deletionTimestamp" not in pod["metadata"]
    assert not tenant.batch_job("job")["spec"].get("suspend")


def test_an_end_that_is_none_is_obeyed_by_no_leader(control_plane: Running) -> None:
    tenant = Tenant(administrator(control_plane)).create(quota=8)
    replica = Replica(control_plane, settings=dict(CALM_LEASE)).start()
    try:
        replica.wait_leading()
        tenant.submit("job", gpu=1, template=template(runs(3600)))
        tenant.wait_phase("job", "Running")
        (pod,) = tenant.pods("job")
        forge(tenant)
        wait_right(tenant, pod["metadata"]["uid"])
        replica.kill()
        forge(tenant)
        replica.forget()
        replica.start().wait_leading()
        wait_right(tenant, pod["metadata"]["uid"])
        assert "its status says Succeeded, and Job job has not ended" in replica.told()
        tenant.finish("job")
        tenant.delete()
    finally:
        if replica.alive():
            replica.stop()
