"""Resources that a node counts beside CPU and memory: a real kubelet never has to refuse a pod.

Two kinds that the node says it has, as a device plugin would; jobs whose pods ask for some of
each. ``RESOURCE_PODS``: how many pods in all.
"""

import os
from collections.abc import Iterator
from random import Random

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import container, template
from tests.e2e.waits import until

from cluster.credentials import REAL_NODE_NAME

NODE = f"/api/v1/nodes/{REAL_NODE_NAME}"
HAS = {"example.com/dongle": 3, "example.com/lamp": 5}
PODS, OF_A_JOB, SEED = int(os.environ.get("RESOURCE_PODS", "6")), 3, 7


def said(admin: Caller, of: str) -> Json:
    return {kind: admin.get(NODE).body["status"][of].get(kind) for kind in HAS}


@pytest.fixture
def counted(admin: Caller) -> Iterator[None]:
    """The node has these; the kubelet takes them over into what may be allocated."""
    wanted = {kind: str(amount) for kind, amount in HAS.items()}
    assert admin.patch(f"{NODE}/status", {"status": {"capacity": wanted}}).ok
    until(lambda: said(admin, "allocatable") == wanted, "the kubelet offers them")
    yield
    gone = dict.fromkeys(HAS)
    patch = {"status": {"capacity": gone, "allocatable": gone}}
    assert admin.patch(f"{NODE}/status", patch).ok


def asks(amounts: dict[str, int]) -> Json:
    texts = {kind: str(amount) for kind, amount in amounts.items()}
    return template(container("sleep 0.2", resources={"limits": texts}))


def test_the_kubelet_refuses_none_of_the_pods_that_ask_for_what_few_nodes_have(
    tenant: Tenant, counted: None
) -> None:
    random, jobs = Random(SEED), [f"job-{number}" for number in range(PODS // OF_A_JOB)]
    for name in jobs:
        amounts = {kind: random.randrange(has) for kind, has in HAS.items()}
        amounts["example.com/dongle"] = amounts["example.com/dongle"] or 2
        spec = {"gpu": 0.05, "parallelism": OF_A_JOB, "completions": OF_A_JOB, "retries": 0}
        tenant.submit(name, template=asks({k: v for k, v in amounts.items() if v}), **spec)
    tenant.submit("never", gpu=0.05, template=asks({"example.com/dongle": 4}))
    tenant.wait_reason("never", "Unsatisfiable")
    assert "example.com/dongle" in tenant.status("never")["message"]
    for name in jobs:
        tenant.wait_phase(name, "Succeeded")  # with no retry: a pod that is refused has failed
    assert all(pod["status"]["phase"] == "Succeeded" for n in jobs for pod in tenant.pods(n))
