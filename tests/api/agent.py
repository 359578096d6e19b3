"""What the agent of a fake node would write, and what the operator says of it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.api.caller import Caller
from tests.api.replica import LEASE_NAMESPACE
from tests.api.tenant import GROUP, Json, Tenant, template, until

NODE = "r7525-0"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"


@dataclass(slots=True)
class Agent:
    """Writes what the agent of one node would."""

    admin: Caller
    node: str = NODE
    troubles: dict[int, Json] = field(default_factory=dict)  # by device
    containers: list[Json] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # levels, in its self-test

    def start(self) -> "Agent":
        body = {"apiVersion": "gpu-scheduler.io/v1alpha1", "kind": "GPUNode"}
        assert self.admin.create(f"{GROUP}/gpunodes", {**body, "metadata": {"name": self.node}}).ok
        self.report()
        return self

    def report(self) -> None:
        devices = [
            {
                "uuid": f"GPU-r{self.node[-1]}-{i}",
                "index": i,
                "model": "NVIDIA A100-PCIE-40GB",
                "memoryMiB": 40960,
                "usableMiB": 40448,
                "computeCapability": "8.0",
                "healthy": True,
                **self.troubles.get(i, {}),
            }
            for i in range(2)
        ]
        status = {
            "isolation": "none" if "interposer" in self.failed else "interposer",
            "failedIsolation": self.failed or None,
            "devices": devices,
            "containers": self.containers,
        }
        path = f"{GROUP}/gpunodes/{self.node}/status"
        answer = self.admin.patch(path, {"status": status})
        assert answer.ok, answer

    def sees(self, pod: Json, isolation: str = "interposer", **more: Any) -> None:
        """Report this pod's container, and no other."""
        meta = pod["metadata"]
        entry = {"namespace": meta["namespace"], "pod": meta["name"], "uid": meta["uid"]}
        self.containers = [{**entry, "container": 0, "isolation": isolation, **more}]
        self.report()

    def beat(self, seconds: int) -> None:
        """Renew the Lease: it lives so long from now."""
        name = f"gpu-node-{self.node}"
        spec = {
            "holderIdentity": self.node,
            "leaseDurationSeconds": seconds,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        labels = {"gpu-scheduler.io/component": "agent"}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
        }
        answer = self.admin.create(LEASES, body)
        if answer.status == 409:
            answer = self.admin.patch(f"{LEASES}/{name}", {"spec": spec})
        assert answer.ok, answer

    def live(self) -> None:
        """Be seen to be alive: a Lease that is renewed."""
        self.beat(seconds=600)
        self.beat(seconds=600)

    def stop(self) -> None:
        self.admin.send("DELETE", f"{LEASES}/gpu-node-{self.node}")
        self.admin.send("DELETE", f"{GROUP}/gpunodes/{self.node}")


def here(**container: Any) -> Json:
    """A template for the agent's node."""
    made = template(nodeSelector={"kubernetes.io/hostname": NODE})
    made["spec"]["containers"][0] |= container
    return made


def on_uuid(tenant: Tenant, job: str) -> bool:
    """Whether the job's pods were placed on devices that the agent named."""
    return all(g.device.startswith("GPU-r0-") for a in tenant.allocations(job) for g in a.devices)


def condition(tenant: Tenant, job: str, kind: str) -> Json:
    found = tenant.status(job).get("conditions", ())
    return next((c for c in found if c["type"] == kind), {})


def wait_condition(tenant: Tenant, job: str, kind: str, status: str) -> Json:
    return until(
        lambda: (c := condition(tenant, job, kind)).get("status") == status and c,
        lambda: f"{kind} of {job} is {status}; {tenant.status(job)}",
    )


def wait_event(tenant: Tenant, job: str, reason: str) -> str:
    """Until there is a warning; its message. It is said once."""
    event = tenant.wait_event(job, reason)
    assert event["type"] == "Warning"
    assert [e["reason"] for e in tenant.events(job)].count(reason) == 1
    return str(event["message"])
