"""A gang of pods that ask for memory: what each may cost leaves enough for those after it."""

from tests.unit.builders import A30, ClusterBuilder, pod_shape, project, projects
from tests.unit.core.gang_builders import gang

from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

MIB = pod_shape(mib=12_000)  # 297 milli of an A100, which holds more, about 500 of an A30


def test_the_first_member_leaves_the_others_what_they_cost_at_least():
    nodes = ClusterBuilder().node("small", 1, A30).node("large", 2)
    alone = plan(
        PlanInput(nodes.obj(), projects(project(quota_milli=700, weight=0)), [gang("g", (MIB, 1))])
    )
    assert [place.node for place in alone.assignments] == ["small"]  # the cheapest that will do
    result = plan(
        PlanInput(nodes.obj(), projects(project(quota_milli=700, weight=0)), [gang("g", (MIB, 2))])
    )
    assert [place.node for place in result.assignments] == ["large", "large"]
