"""Consolidation on a real control plane: parts of GPUs move together so that a big job starts.

Fake nodes play the pods; the packing policy `spread` scatters them in the first place.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.api.fake_nodes import NODES, node, with_nodes
from tests.api.replica import CALM_LEASE
from tests.api.site import Site, Team, team_on
from tests.api.tenant import STAYS, Json, Tenant, runs, template, until
from tests.api.test_simulate import Simulator, gpujob

from gpu_scheduler.api import moved
from gpu_scheduler.core.actions.consolidation import REST_SECONDS
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.times import timestamp

SETTINGS = {**CALM_LEASE, "packing": "spread", "consolidation": "true"}
INDEX = "batch.kubernetes.io/job-completion-index"


Seats = dict[int, tuple[str, str]]
Nodes = Callable[..., list[str]]


@pytest.fixture
def gpus(site: Site) -> Iterator[Nodes]:
    """Adds nodes with so many GPUs of a model that only this test asks for, and names the model."""
    with ExitStack() as stack:

        def add(product: str, **nodes: int) -> list[str]:
            made = (node(name, product, count) for name, count in nodes.items())
            stack.enter_context(with_nodes(site.admin, *made))
            until(lambda: all(ready(site, name) for name in nodes), "the nodes take pods")
            return [product]

        yield add


def ready(site: Site, name: str) -> bool:
    """Whether a new node takes pods: it has reported, and its taint is gone."""
    body = site.admin.get(f"{NODES}/{name}").body
    conditions = {c["type"]: c["status"] for c in body["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not body["spec"].get("taints")


@pytest.fixture
def team(site: Site, gpus: Nodes) -> Iterator[Team]:
    with team_on(site) as make:  # gone before the nodes
        yield make


def seats(tenant: Tenant, job: str) -> Seats:
    """Index -> uid and node of the pods that are on a node to stay."""
    return {
        int(pod["metadata"]["annotations"][INDEX]): (
            pod["metadata"]["uid"],
            pod["spec"]["nodeName"],
        )
        for pod in tenant.pods(job)
        if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
    }


def scatter(tenant: Tenant, models: list[str], pods: int, **spec: object) -> Seats:
    """One job whose pods are each on another node, with two GPUs each; who is where."""
    if pods > 1:  # of nodes that the operator does not know yet it would leave one empty
        tenant.submit("all", gpuModels=models, parallelism=pods, gpu=2, gang=True)
        tenant.wait_placed("all", pods)
        tenant.remove("all")
        until(lambda: not tenant.pods("all"), "the nodes are empty again")
    tenant.submit("part", gpuModels=models, parallelism=pods, retries=0, **{"gpu": 0.5, **spec})
    found = until(lambda: len(s := seats(tenant, "part")) == pods and s, "all parts run")
    assert len({where for _, where in found.values()}) == pods
    return found


def moved_indexes(tenant: Tenant, before: Seats) -> list[int]:
    """Those that run again as another pod; fails unless all run."""
    now = until(lambda: len(s := seats(tenant, "part")) == len(before) and s, "all parts run again")
    return sorted(i for i, (uid, _) in now.items() if uid != before[i][0])


def charged(tenant: Tenant, job: str = "part") -> int:
    return int(tenant.batch_job(job)["status"].get("failed", 0))


def said(tenant: Tenant, job: str, reason: str) -> str:
    """The message of a job's Event."""
    return str(tenant.wait_event(job, reason)["message"])


def marks(tenant: Tenant, job: str = "part") -> dict[int, moved.Mark]:
    return dict(moved.marks(tenant.batch_job(job)["metadata"].get("annotations", {})))


def planned_again(tenant: Tenant, models: list[str]) -> None:
    """Until a job that fits has been placed, and so everything that waits was looked at again."""
    tenant.submit("tick", gpu=0.1, gpuModels=models, template=template(runs(1)))
    tenant.wait_phase("tick", "Succeeded")
    tenant.remove("tick")


def test_a_part_moves_for_two_whole_gpus_and_runs_again(team: Team, gpus: Nodes) -> None:
    lab, models = team(quota=8), gpus("Two-T4", c0=2, c1=2)
    before = scatter(lab, models, 2)
    lab.submit("pair", gpu=2, gpuModels=models)
    lab.wait_placed("pair")
    (index,) = moved_indexes(lab, before)
    uid, was_on = before[index]
    other = "c1" if was_on == "c0" else "c0"
    assert {where for _, where in seats(lab, "part").values()} == {other}
    assert [where for _, where in seats(lab, "pair").values()] == [was_on]
    assert charged(lab) == 0
    told = said(lab, "part", "Preempted")
    assert f"moves from {was_on} and fits on {other}: {lab.name}/pair needs 2 GPUs" in told
    assert said(lab, "pair", "Preempting") == told
    assert marks(lab).keys() == {index} and marks(lab)[index].pod == uid
    until(lambda: "preemptedBy" not in (s := lab.status("part")) and not s["reason"], "it is over")


def test_a_part_moves_for_eight_whole_gpus(team: Team, gpus: Nodes) -> None:
    lab, other, models = team(quota=8), team(quota=1), gpus("Eight-T4", big=8)
    before = scatter(other, models, 1, gpu=0.3)
    gpus("Eight-T4", small=2)
    lab.submit("octet", gpu=8, gpuModels=models)
    lab.wait_placed("octet")
    assert moved_indexes(other, before) == [0]
    assert [where for _, where in seats(other, "part").values()] == ["small"]
    assert charged(other) == 0
    assert f"{lab.name}/octet needs 8 GPUs" in said(other, "part", "Preempted")


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("interactive", {"type": "interactive"}),
        ("whole", {"gpu": 1}),
        ("gang", {"gang": True}),
    ],
)
def test_what_may_not_move_stays(team: Team, gpus: Nodes, name: str, spec: Json) -> None:
    lab, models = team(quota=8), gpus(f"{name}-T4", s0=2, s1=2)
    before = scatter(lab, models, 2, **spec)
    lab.submit("pair", gpu=2, gpuModels=models)
    assert "needs 2 GPUs" in lab.wait_reason("pair", "Fragmented")
    planned_again(lab, models)
    assert seats(lab, "part") == before and not marks(lab)


def test_who_moved_stays_for_an_hour_whoever_leads(site: Site, team: Team, gpus: Nodes) -> None:
    lab, models = team(quota=8), gpus("Hour-T4", h0=2, h1=2)
    before = scatter(lab, models, 2)
    lab.submit("first", gpu=2, gpuModels=models)
    lab.wait_placed("first")
    (index,) = moved_indexes(lab, before)
    after = seats(lab, "part")
    gpus("Hour-T4", h2=1)  # both would fit there, but one of them has moved
    lab.submit("second", gpu=2, gpuModels=models)
    lab.wait_reason("second", "WaitingForGPU")
    site.replica.kill()
    site.restart()
    planned_again(lab, models)
    assert seats(lab, "part") == after
    assert lab.status("second")["reason"] == "WaitingForGPU"
    long_ago = datetime.now(UTC) - timedelta(seconds=REST_SECONDS + 1)
    mark = moved.text(timestamp(long_ago), PodUID(before[index][0]))
    patch = {"metadata": {"annotations": {moved.annotation(index): mark}}}
    assert lab.admin.patch(f"/apis/batch/v1/namespaces/{lab.name}/jobs/part", patch).ok
    lab.wait_placed("second")
    assert moved_indexes(lab, after) == [0, 1]
    assert {where for _, where in seats(lab, "part").values()} == {"h2"}
    assert charged(lab) == 0


def test_an_operator_that_dies_amid_a_move_moves_nobody_else(
    site: Site, team: Team, gpus: Nodes
) -> None:
    lab, models = team(quota=8), gpus("Kill-T4", k0=2, k1=2)
    before = scatter(lab, models, 2, template=template(STAYS))
    lab.submit("pair", gpu=2, gpuModels=models)
    until(lambda: len(seats(lab, "part")) == 1, "one of them is going")
    site.replica.kill()
    site.restart()
    planned_again(lab, models)
    assert len(seats(lab, "part")) == 1, "the next leader has looked, and nobody else has to go"
    lab.let_go("part")
    lab.wait_placed("pair")
    (index,) = moved_indexes(lab, before)
    assert [where for _, where in seats(lab, "pair").values()] == [before[index][1]]
    assert charged(lab) == 0
    assert marks(lab)[index].pod == before[index][0]


def test_nothing_moves_where_it_is_switched_off(site: Site, team: Team, gpus: Nodes) -> None:
    lab, models = team(quota=8), gpus("Off-T4", o0=2, o1=2)
    before = scatter(lab, models, 2)
    with switched_off(site):
        lab.submit("pair", gpu=2, gpuModels=models)
        lab.wait_reason("pair", "Fragmented")
        planned_again(lab, models)
        assert seats(lab, "part") == before and not marks(lab)
    lab.wait_placed("pair")  # whoever leads next has it on, and knows pods that it did not place
    assert len(moved_indexes(lab, before)) == 1


def test_a_simulation_says_what_would_move(
    site: Site, team: Team, gpus: Nodes, tmp_path: Path
) -> None:
    lab, models = team(quota=8), gpus("Sim-T4", m0=2, m1=2)
    before = scatter(lab, models, 2)
    simulate = Simulator(site.running, tmp_path)
    as_if = (
        "--policy",
        "spread",
        "-f",
        simulate.file(gpujob(lab, "pair", gpu=2, gpuModels=models)),
    )
    assert simulate.json(*as_if)["evictions"] == []
    said = simulate.json("--consolidation", *as_if)
    (move,) = said["evictions"]
    part, pair = f"{lab.name}/part", f"{lab.name}/pair"
    assert (move["job"], move["reason"], move["for"]) == (part, "consolidate", pair)
    to = "m1" if move["node"] == "m0" else "m0"
    assert f"moves from {move['node']} and fits on {to}" in move["message"]
    assert {s["job"]: s["node"] for s in said["starts"]} == {pair: move["node"], part: to}
    assert seats(lab, "part") == before


@contextmanager
def switched_off(site: Site) -> Iterator[None]:
    """The same site with an operator that moves nobody."""
    restart_with(site, consolidation="false")
    try:
        yield
    finally:
        restart_with(site, consolidation="true")


def restart_with(site: Site, **settings: str) -> None:
    site.replica.stop()
    site.replica.settings |= settings
    site.restart()
