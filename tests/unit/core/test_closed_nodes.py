"""What is free on nodes that take no pods is nobody's to share."""

import pytest
from tests.unit.builders import ClusterBuilder, pod_shape, project
from tests.unit.core.actions.test_preemption import evicted, full
from tests.unit.core.properties.play import Pod

from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput


@pytest.mark.parametrize(("unschedulable", "gives"), [("is cordoned", ["v1"]), ("", [])])
def test_who_borrows_gives_back_where_the_rest_of_the_gpus_is_closed(
    unschedulable: str, gives: list[str]
) -> None:
    play = full(2, project("a", 0), project("b", 0))
    builder = ClusterBuilder().node("n0", 2).held("n0/0", 1000, "b").held("n0/1", 1000, "b")
    builder.node("n1", 2, unschedulable=unschedulable)
    play.wait(Pod("w", "a", pod_shape(1000)))
    result = plan(
        PlanInput(builder.obj(), play.projects, play.jobs(), running_pods=play.roll(), now=1000.0)
    )
    assert evicted(result) == gives
