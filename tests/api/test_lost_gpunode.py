"""A GPUNode that is lost gives nothing away: what running pods hold is held.

Both GPUs of one fake node are held, by UUID. Whatever then becomes of the GPUNode or the Node, a
second job gets neither, says why, and starts when there is room that is known to be free.
"""

from collections.abc import Callable, Iterator

import pytest
from tests.api.agent import NODE, Agent, here, on_uuid
from tests.api.conftest import administrator
from tests.api.fake_nodes import NODES
from tests.api.replica import CALM_LEASE, operating
from tests.api.tenant import GROUP, Json, Tenant, until

from cluster import Running

GPUNODE = f"{GROUP}/gpunodes/{NODE}"


@pytest.fixture
def agent(control_plane: Running) -> Iterator[Agent]:
    started = Agent(administrator(control_plane)).start()
    yield started
    started.stop()


@pytest.fixture
def tenant(control_plane: Running, agent: Agent) -> Iterator[Tenant]:
    """A tenant, and an operator for each test: the last one changes its leader."""
    with operating(control_plane):
        made = Tenant(agent.admin).create(quota=8)
        yield made
        made.delete()


def fill(tenant: Tenant) -> None:
    """Both GPUs of the node, by UUID."""
    tenant.submit("holder", gpu=1, parallelism=2, completions=2, template=here())
    tenant.wait_placed("holder", 2)
    until(lambda: tenant.status("holder").get("podSummary") == "2/0/2", "both run")
    assert on_uuid(tenant, "holder")


def held_milli(tenant: Tenant) -> dict[int, int]:
    """Milli-GPU by physical device of the node, whatever pods call it."""
    held: dict[int, int] = {}
    for allocation in tenant.allocations(""):
        if allocation.node == NODE:
            for allocated in allocation.devices:
                number = int(allocated.device.rpartition("-")[2])
                held[number] = held.get(number, 0) + allocated.milli
    return held


def waits_for_unlisted(tenant: Tenant, job: str) -> str:
    """Until the job says that pods hold devices which the node does not list."""
    message = until(
        lambda: "but not those of 2 pods" in (m := tenant.status(job).get("message", "")) and m,
        lambda: f"{job} says why it waits: {tenant.status(job)}; {tenant.allocations(job)}",
    )
    assert tenant.status(job)["reason"] == "WaitingForGPU"
    assert f"{tenant.name}/holder-" in message and "holds 1 of GPU-r0-" in message
    assert tenant.allocations(job) == []
    return str(message)


def delete(agent: Agent) -> None:
    assert agent.admin.send("DELETE", GPUNODE).ok


def take_status(agent: Agent) -> None:
    assert agent.admin.patch(f"{GPUNODE}/status", {"status": None}).ok


def rename_devices(agent: Agent) -> None:
    agent.troubles = {i: {"uuid": f"GPU-other-{i}"} for i in range(2)}
    agent.report()


@pytest.mark.parametrize("lose", [delete, take_status, rename_devices])
def test_devices_that_a_gpunode_no_longer_names_are_not_given_out_again(
    tenant: Tenant, agent: Agent, lose: Callable[[Agent], None]
) -> None:
    fill(tenant)
    lose(agent)
    tenant.submit("next", gpu=1, template=here())
    waits_for_unlisted(tenant, "next")
    agent.troubles = {}
    if not agent.admin.get(GPUNODE).ok:
        agent.start()
    agent.report()
    until(
        lambda: "no GPU is free" in tenant.status("next").get("message", ""),
        lambda: f"the node is open again, and full: {tenant.status('next')}",
    )
    assert held_milli(tenant) == {0: 1000, 1: 1000}
    tenant.remove("holder")
    tenant.wait_placed("next")
    assert on_uuid(tenant, "next")


def test_without_a_gpunode_the_labels_count_again_once_nobody_holds_what_it_named(
    tenant: Tenant, agent: Agent
) -> None:
    fill(tenant)
    delete(agent)
    tenant.submit("next", gpu=1, template=here())
    waits_for_unlisted(tenant, "next")
    tenant.remove("holder")
    ((allocated,),) = (a.devices for a in tenant.wait_placed("next"))
    assert allocated.device in ("0", "1")
    agent.start()  # and what was placed by index keeps its device
    tenant.submit("last", gpu=1, template=here())
    tenant.wait_placed("last")
    assert on_uuid(tenant, "last")
    assert held_milli(tenant) == {0: 1000, 1: 1000}


def test_a_node_that_is_registered_again_with_its_pods_alive_gives_nothing_away(
    tenant: Tenant, agent: Agent, control_plane: Running
) -> None:
    fill(tenant)
    before = [pod["metadata"]["uid"] for pod in tenant.pods("holder")]
    node: Json = agent.admin.get(f"{NODES}/{NODE}").body
    assert agent.admin.send("DELETE", f"{NODES}/{NODE}").ok
    delete(agent)  # as the garbage collector does: it belonged to that Node
    meta = {k: node["metadata"][k] for k in ("name", "labels", "annotations")}
    control_plane.add_nodes(
        [{"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": node["status"]}]
    )
    tenant.submit("next", gpu=1, template=here())
    waits_for_unlisted(tenant, "next")
    assert [pod["metadata"]["uid"] for pod in tenant.pods("holder")] == before
    agent.start()
    until(
        lambda: "no GPU is free" in tenant.status("next").get("message", ""),
        lambda: f"the node is open again, and full: {tenant.status('next')}",
    )
    assert held_milli(tenant) == {0: 1000, 1: 1000}


def test_a_leader_that_never_saw_the_gpunode_gives_nothing_away(
    control_plane: Running, agent: Agent
) -> None:
    tenant = Tenant(agent.admin)
    with operating(control_plane, CALM_LEASE, "first"):
        tenant.create(quota=8)
        fill(tenant)
    delete(agent)
    with operating(control_plane, CALM_LEASE, "second"):
        tenant.submit("next", gpu=1, template=here())
        waits_for_unlisted(tenant, "next")
        tenant.delete()
