"""The fixtures' cases on four servers of two A100s: who lands where."""

from collections.abc import Iterator

import pytest
from tests.api.pod_watch import PodWatch
from tests.api.tenant import Tenant, held, template, until

from cluster import Running
from gpu_scheduler.api.allocation import Allocation


@pytest.fixture
def tenant(tenant: Tenant) -> Iterator[Tenant]:
    """One whose GPUs are free again for the planner, too: the next test counts on an empty node."""
    yield tenant
    tenant.empty()
    until(lambda: held(tenant) == 0, "the operator has seen its pods go")


def device(allocation: Allocation) -> tuple[str, str]:
    (allocated,) = allocation.devices
    return allocation.node, allocated.device


def place(tenant: Tenant, name: str, gpu: float) -> Allocation:
    tenant.submit(name, gpu=gpu)
    (allocation,) = tenant.wait_placed(name)
    return allocation


def test_half_and_three_tenths_share_a_device_and_the_next_ones_fill_the_gaps(
    tenant: Tenant,
) -> None:
    half, third = place(tenant, "frac05", 0.5), place(tenant, "frac03", 0.3)
    assert device(half) == device(third)
    assert half.devices[0].milli + third.devices[0].milli == 800
    assert half.devices[0].mib == 20480 and third.devices[0].mib == 12288
    elsewhere = place(tenant, "more03", 0.3)
    assert device(elsewhere) != device(half)
    beside = place(tenant, "frac02", 0.2)
    assert device(beside) == device(half)


def test_eight_eighths_fill_one_device_and_the_ninth_goes_elsewhere(tenant: Tenant) -> None:
    eighths = [place(tenant, f"eighth-{i}", 0.125) for i in range(8)]
    assert len({device(a) for a in eighths}) == 1
    assert sum(a.devices[0].milli for a in eighths) == 1000
    assert device(place(tenant, "ninth", 0.125)) != device(eighths[0])


def test_a_whole_gpu_is_a_device_of_its_own(tenant: Tenant) -> None:
    half = place(tenant, "frac05", 0.5)
    whole = place(tenant, "qf-a2", 1)
    assert device(whole) != device(half)
    assert (whole.devices[0].milli, whole.devices[0].mib) == (1000, 40960)


def test_hpo1_runs_four_trials_two_at_a_time(tenant: Tenant, scheduled: Running) -> None:
    with PodWatch(scheduled, tenant.name) as watch:
        tenant.submit("hpo1", gpu=2, parallelism=2, completions=4, template=template())
        tenant.wait_placed("hpo1", 2)  # of two that end by themselves one may be over before
        status = tenant.finish("hpo1")
    assert status["pods"] == {"pending": 0, "running": 0, "succeeded": 4, "failed": 0}
    assert watch.peak.pods == 2
    assert watch.peak.gpu_milli == 4000
    assert tenant.batch_job("hpo1")["status"]["completedIndexes"] == "0-3"
    assert {c["type"] for c in status["conditions"] if c["status"] == "True"} >= {"Complete"}
