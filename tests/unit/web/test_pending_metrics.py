"""What waits, told in figures that an alert can be made of."""

from typing import Any

from tests.unit.runtime.fake_client import FakeClient
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.state.builders import CREATED, gpujob_body, half, make_job, make_node, make_pod

from gpu_scheduler.runtime.common.pending import Pending, pending
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.sweeps.runtime.sweeping import Sweeping
from gpu_scheduler.web import cluster_metrics
from gpu_scheduler.web.metrics import OperatorMetrics
from gpu_scheduler.web.pending_metrics import figures

TENANT = ("team-a", "team-a")


def operator(quota: float, held: int = 500, **spec: Any) -> Operator:
    """One GPU of which ``held`` milli are taken, and a GPUJob with a pod that waits for half."""
    client: Any = FakeClient()
    made = Operator(
        client, OperatorSettings(identity="me"), OperatorMetrics(client), "me", Sweeping
    )
    made.informers.custom_resources.project(project_body(quota=quota))
    made.informers.custom_resources.gpujob(gpujob_body(status={"phase": "Running"}, **spec))
    made.state.nodes.changed(make_node("a", 1))
    made.state.job_changed(make_job(parallelism=2))
    made.state.pod_changed(make_pod(node="a", devices=half("0", held), phase="Running"))
    made.state.pod_changed(make_pod("job-1", index=1))
    return made


async def look(made: Operator) -> Pending:
    made.planning.cycle()
    return await pending(made.state, made.common.plan)


async def test_what_waits_is_counted_by_reason_project_and_type() -> None:
    found = await look(operator(quota=4, held=750))
    assert found.jobs == {("WaitingForGPU", "team-a", "training"): 1}
    assert found.milli == {"team-a": 500}
    assert found.least_milli == 500


async def test_work_waits_inside_its_quota_where_that_has_room_for_it() -> None:
    assert (await look(operator(quota=1.25, held=750))).since == {TENANT: epoch_seconds(CREATED)}


async def test_work_above_its_quota_does_not() -> None:
    found = await look(operator(quota=1.2, held=750))
    assert (found.since, found.milli) == ({}, {"team-a": 500})


async def test_what_can_never_start_asks_for_nothing() -> None:
    found = await look(operator(quota=4, held=750, gpuModels=["H100"]))
    assert found.jobs == {("Unsatisfiable", "team-a", "training"): 1}
    assert (found.milli, found.since, found.least_milli) == ({}, {}, 0)


async def test_what_its_owner_has_to_mend_is_counted_too() -> None:
    made = operator(quota=4)
    wrong = gpujob_body("wrong", uid="w", gpu="a lot", status={"phase": "Pending"})
    made.informers.custom_resources.gpujob(wrong)
    found = await look(made)
    assert found.jobs == {("Invalid", "team-a", ""): 1}
    assert found.milli == {}


def test_how_long_is_told_in_seconds() -> None:
    families = {f.name: f for f in figures(Pending(since={TENANT: 1000.0}), 2800.0)}
    (sample,) = families["gpusched_pending_inside_quota_seconds"].samples
    assert sample.labels == {"namespace": "team-a", "project": "team-a"}
    assert sample.value == 1800


def fragmented(made: Operator, piece_milli: int) -> float:
    families = cluster_metrics.nodes(made.state, made.state.snapshot(), piece_milli)
    (sample,) = next(f for f in families if f.name == "gpusched_fragmented_gpus").samples
    return float(sample.value)


def test_a_gpu_is_fragmented_where_the_smallest_share_that_waits_does_not_fit() -> None:
    made = operator(quota=4, held=750)
    assert [fragmented(made, piece) for piece in (250, 251)] == [0, 1]
    assert fragmented(operator(quota=4, held=1000), 500) == 0


def test_where_no_share_waits_less_than_half_a_gpu_is_a_piece() -> None:
    assert Pending().piece_milli == 500
    assert Pending(least_milli=100).piece_milli == 100


def test_a_node_that_takes_no_pods_has_no_pieces() -> None:
    made = operator(quota=4, held=750)
    made.state.nodes.changed(make_node("a", 1, cordoned=True))
    assert fragmented(made, 500) == 0
