"""The cases of the Dell clusters: what the product promises first."""

from collections import Counter

import pytest
from tests.unit.builders import ClusterBuilder, dell_saas, dell_selfhosted, job, pod_shape, projects

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Assignment, Plan, Reason
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput


def on_saas(*jobs: WaitingJob) -> Plan:
    return plan(PlanInput(dell_saas().obj(), projects(), jobs))


def devices(place: Assignment) -> list[str]:
    return [allocated.device for allocated in place.devices]


def by_device(result: Plan) -> Counter[str]:
    held: Counter[str] = Counter()
    for place in result.assignments:
        for allocated in place.devices:
            held[allocated.device] += allocated.milli
    return held


def test_a_half_and_three_tenths_share_one_gpu():
    result = on_saas(
        job("frac05", pod_shape(500), interactive=True), job("frac03", pod_shape(300), created=1)
    )
    assert by_device(result) == {"dell-0/0": 800}
    assert [g.mib for p in result.assignments for g in p.devices] == [20224, 12134]


@pytest.mark.parametrize("cpu_milli", [0, 2000, 64_000])
@pytest.mark.parametrize("shares", [(500, 300), (300, 500)])
def test_they_share_one_gpu_on_a_single_node_however_few_cores_it_has(
    cpu_milli: int, shares: tuple[int, int]
):
    cluster = ClusterBuilder().node("a", 2, cpu_milli=cpu_milli).obj()
    session = PlannerCache()
    for number, share in enumerate(shares):
        waiting = [job(f"frac-{number}", pod_shape(share, cpu_milli=0))]
        (place,) = plan(PlanInput(cluster, projects(), waiting), session).assignments
        assert devices(place) == ["a/0"]
        cluster = ClusterBuilder().node("a", 2, cpu_milli=cpu_milli).held("a/0", share).obj()


def test_a_further_three_tenths_goes_elsewhere_and_two_tenths_fits_beside():
    result = on_saas(
        job("frac05", pod_shape(500), created=0),
        job("frac03", pod_shape(300), created=1),
        job("again03", pod_shape(300), created=2),
        job("frac02", pod_shape(200), created=3),
    )
    assert by_device(result) == {"dell-0/0": 1000, "dell-0/1": 300}


def test_eight_eighths_fill_one_gpu_and_the_ninth_goes_elsewhere():
    result = on_saas(job("eighths", pod_shape(125), pods=9))
    assert by_device(result) == {"dell-0/0": 1000, "dell-0/1": 125}


def test_hpo1_gets_two_fully_free_gpus_of_one_node_per_pod():
    result = on_saas(
        job("frac05", pod_shape(500), created=0), job("hpo1", pod_shape(1000, count=2), 2)
    )
    trials = [p for p in result.assignments if p.job == "ns/hpo1"]
    assert [devices(p) for p in trials] == [["dell-1/0", "dell-1/1"], ["dell-2/0", "dell-2/1"]]
    assert all(g.milli == 1000 and g.mib == 40448 for p in trials for g in p.devices)


def test_a_whole_gpu_takes_a_fully_free_device_beside_a_shared_one():
    cluster = dell_saas().held("dell-2/0", 300).obj()
    result = plan(PlanInput(cluster, projects(), [job("qf-a2", pod_shape(1000))]))
    assert devices(result.assignments[0]) == ["dell-2/1"]


def test_a_named_model_goes_where_that_model_is():
    result = plan(
        PlanInput(
            dell_selfhosted().obj(), projects(), [job("a30", pod_shape(500, models=("a30",)))]
        )
    )
    assert result.assignments[0].node == "dell-3"


def test_what_does_not_fit_waits_with_a_reason():
    result = on_saas(job("big", pod_shape(1000, count=2), pods=5))
    assert len(result.assignments) == 4
    assert [(w.job, w.reason, w.position) for w in result.waits] == [
        ("ns/big", Reason.WAITING_FOR_GPU, 1)
    ]
