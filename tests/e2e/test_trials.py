"""hpo1 in real containers: a GPU per trial, four trials, two at a time."""

from tests.api.pod_watch import PodWatch
from tests.api.tenant import Tenant
from tests.e2e.gpu_jobs import UNTIL_TOLD, container, end_in_turn, template

from cluster import Running


def test_four_trials_run_two_at_a_time(operated: Running, tenant: Tenant) -> None:
    with PodWatch(operated, tenant.name) as watch:
        tenant.submit(
            "hpo1",
            gpu=1,
            parallelism=2,
            completions=4,
            template=template(container(f"{UNTIL_TOLD}; exec quickstart 0")),
        )
        status = end_in_turn(operated, tenant, "hpo1", at_once=2)
    assert status["pods"]["succeeded"] == 4
    assert watch.peak.pods == 2 and watch.peak.gpu_milli == 2000
    assert max(watch.peak.milli.values()) == 1000
    assert watch.peak.placements == 4, "no trial was run twice"
