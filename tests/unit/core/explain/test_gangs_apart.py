"""What a gang is told whose members may not share a GPU, where that alone is in their way."""

from dataclasses import replace

from tests.unit.builders import ClusterBuilder, pod_shape, project, projects
from tests.unit.core.gang_builders import gang, only_wait

from gpu_scheduler.core.explain.group_words import APART
from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

SMALL = pod_shape(50)


def waits(builder: ClusterBuilder, waiting: WaitingJob) -> Wait:
    return only_wait(plan(PlanInput(builder.obj(), projects(project()), [waiting])))


def test_a_gang_that_could_never_stand_apart_is_told_the_rule_and_the_way_out():
    found = waits(ClusterBuilder().node("n", gpus=2), gang("g", (SMALL, 3)))
    assert found.reason is Reason.UNSATISFIABLE
    assert found.message == (
        "the gang can never start: the cluster holds 2 of the 3 pods that need 0.05 of a GPU;"
        f" {APART}"
    )
    assert "spec.distinctGPUs: false" in APART
    assert 'gpu-scheduler.io/distinct-gpus: "false"' in APART


def test_so_is_one_that_could_in_another_domain_or_later():
    builder = ClusterBuilder().node("n", gpus=3).held("n/0", 960)
    found = waits(builder, gang("g", (SMALL, 3)))
    assert found.reason is Reason.WAITING_FOR_GANG
    assert found.message.endswith(f"placeable; {APART}")


def test_a_gang_that_would_not_fit_together_either_is_told_nothing_of_it():
    builder = ClusterBuilder().node("n", gpus=3)
    builder = builder.held("n/0", 920).held("n/1", 1000).held("n/2", 960)
    assert APART in waits(builder, gang("g", (SMALL, 1), (pod_shape(30), 2))).message
    assert APART not in waits(builder, gang("g", (SMALL, 3))).message
    for what in (pod_shape(900), pod_shape(1000)):
        waiting = gang("g", (what, 3))
        assert APART not in waits(ClusterBuilder().node("n", gpus=2), waiting).message


def test_a_gang_that_may_share_is_told_nothing_of_it():
    waiting = gang("g", (pod_shape(900), 3), distinct=False)
    assert APART not in waits(ClusterBuilder().node("n", gpus=2), waiting).message


def test_members_that_run_keep_the_others_away():
    builder = ClusterBuilder().node("n", gpus=1)
    (device,) = builder.obj().dev_id
    builder = builder.held(device, 50)
    waiting = gang("g", (SMALL, 1), missing=1, nodes=("n",), devices=(device,))
    assert waiting.gang is not None
    waiting = replace(waiting, gang=replace(waiting.gang, size=2))
    found = waits(builder, waiting)
    assert found.message.endswith(APART)
