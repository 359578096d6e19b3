"""A node takes no more pods than it may have, also where a place on it was kept for one."""

import pytest
from tests.unit.state.builders import half, make_job, make_pod
from tests.unit.state.queue.test_prospective import KEY, accepted

from gpu_scheduler.core.model.cluster import NodeInfo
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.resources import NOTHING
from gpu_scheduler.state.nodes.ledger import Charge, Ledger

MOST = 110  # pods of a node of ``builders``


@pytest.mark.parametrize(("others", "fits"), [(MOST - 1, True), (MOST, False)])
def test_a_pod_that_comes_has_its_place_only_where_the_node_may_have_one_more(
    others: int, fits: bool
) -> None:
    state = accepted()
    (job,) = state.waiting_jobs()
    state.decisions.assume(Assignment(KEY, job.pods[0].uid, "a", half("0")))
    state.job_changed(make_job())
    for i in range(others):  # others placed them meanwhile
        state.pod_changed(make_pod(f"other-{i}", path="other", job=None, node="a", cpu="1m"))
    state.pod_changed(make_pod("job-0"))
    (nominated,) = state.decisions.nominated.of(KEY)
    place = state.decisions.take_place(nominated, PodUID("uid-job-0"))
    assert (place is not None) == fits
    assert state.snapshot().free_pods == [0]


def test_the_last_pod_of_a_node_has_room_and_the_next_one_has_none() -> None:
    ledger = Ledger()
    ledger.set_node(NodeInfo("a", pods=2), ())
    for i, has_room in enumerate((True, True, False)):
        assert ledger.has_room("a", NOTHING, ()) == has_room
        ledger.charge_pod(PodUID(f"pod-{i}"), Charge("a", "team-a", NOTHING))
