import pytest
from tests.unit.builders import ClusterBuilder, project

from gpu_scheduler.core.fairness.budget import Budget
from gpu_scheduler.core.fairness.flavors import FlavorUsage
from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.snapshot import Snapshot


@pytest.mark.parametrize(
    ("limit", "weight", "allocated", "inside", "above"),
    [
        (4000, 1, 0, 2500, 4000),
        (4000, 1, 1800, 700, 2200),
        (4000, 1, 3000, 0, 1000),
        (4000, 1, 4500, 0, 0),
        (4000, 0, 1800, 700, 700),
        (2000, 1, 1800, 200, 200),
        (2000, 0, 0, 2000, 2000),
    ],
)
def test_room_inside_and_above_a_quota_of_two_and_a_half(
    limit: int, weight: int, allocated: int, inside: int, above: int
):
    team = project(quota_milli=2500, limit_milli=limit, weight=weight)
    snapshot = Snapshot(ClusterBuilder().allocated(team.name, allocated).obj())
    flavors = FlavorUsage(snapshot, {team.name: team})
    assert Budget(snapshot, flavors, borrowing=False).room_milli(team) == inside
    assert Budget(snapshot, flavors, borrowing=True).room_milli(team) == above


def test_without_a_limit_only_the_quota_of_a_project_without_weight_binds():
    assert quota.ceiling_milli(project(quota_milli=100)) == quota.UNBOUNDED
    assert quota.ceiling_milli(project(quota_milli=100, weight=0)) == 100
