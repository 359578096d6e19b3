"""What tests look at in gangs: who is bound where, what was charged, what was said."""

import json

from tests.api.pod_watch import ended
from tests.api.replica import CALM_LEASE
from tests.api.tenant import Json, Tenant, until

SETTINGS = {**CALM_LEASE, "stuck_seconds": "3", "preemption": "strict"}


def bound(tenant: Tenant, job: str) -> list[Json]:
    """Pods of a job that have a node, have not ended and are not on their way out."""
    return [
        pod
        for pod in tenant.pods(job)
        if pod["spec"].get("nodeName")
        and not pod["metadata"].get("deletionTimestamp")
        and not ended(pod)
    ]


def wait_nodes(tenant: Tenant, job: str, nodes: set[str]) -> None:
    """Until the job has one pod on each of these nodes and nowhere else."""
    until(
        lambda: sorted(p["spec"]["nodeName"] for p in bound(tenant, job)) == sorted(nodes),
        lambda: f"{job} is on {nodes}; status {json.dumps(tenant.status(job))}",
        90,
    )


def charged(tenant: Tenant, *jobs: str) -> int:
    """Failures that the Jobs have counted."""
    return sum(int(tenant.batch_job(job)["status"].get("failed", 0)) for job in jobs)


def released(tenant: Tenant, job: str) -> str:
    """Until the gang has been released; why."""
    return str(tenant.wait_event(job, "GangReleased")["message"])
