"""Water-filling: what each project should hold."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import project, projects
from tests.unit.parts import in_parts

from gpu_scheduler.core.fairness.fairshare import FairShareDemand, fair_shares, water_fill
from gpu_scheduler.core.model.quota import ceiling_milli
from gpu_scheduler.core.model.request import Project, ProjectName

A, B, C = (ProjectName(name) for name in "abc")


def shares(capacity: int, *those: tuple[Project, int]) -> dict[str, int]:
    pod_request = {team.name: milli for team, milli in those}
    return dict(fair_shares(capacity, projects(*(team for team, _ in those)), pod_request))


def test_the_surplus_goes_by_weight():
    found = shares(
        8000,
        (project("a", 0, weight=2), 9000),
        (project("b", 0), 9000),
        (project("c", 0), 9000),
    )
    assert found == {"a": 4000, "b": 2000, "c": 2000}


def test_a_guarantee_comes_before_the_surplus():
    found = shares(8000, (project("a", 5000), 9000), (project("b", 0), 9000))
    assert found == {"a": 6500, "b": 1500}


def test_who_asks_for_less_leaves_the_rest_to_others():
    found = shares(8000, (project("a", 4000), 500), (project("b", 0), 9000), (project("c", 0), 600))
    assert found == {"a": 500, "b": 6900, "c": 600}


def test_a_limit_caps_the_share_and_without_a_weight_the_quota_does():
    found = shares(
        8000,
        (project("a", 1000, 3000), 9000),
        (project("b", 1000, weight=0), 9000),
        (project("c", 0), 9000),
    )
    assert found == {"a": 3000, "b": 1000, "c": 4000}


def test_guarantees_above_what_there_is_shrink_in_proportion():
    found = shares(6000, (project("a", 8000), 9000), (project("b", 4000), 9000))
    assert found == {"a": 4000, "b": 2000}


def test_nobody_is_cut_to_whole_gpus_and_the_largest_remainder_gets_the_last_milli():
    found = shares(8000, *((project(name, 0), 9000) for name in "abc"))
    assert found == {"a": 2667, "b": 2667, "c": 2666}
    found = shares(10, (project("a", 0, weight=5), 99), (project("b", 0, weight=7), 99))
    assert found == {"a": 4, "b": 6}  # 4.17 and 5.83


def test_weights_of_zero_everywhere_leave_the_surplus_to_nobody():
    found = shares(8000, (project("a", 1000, weight=0), 9000), (project("b", 0, weight=0), 9000))
    assert found == {"a": 1000, "b": 0}


@pytest.mark.parametrize("capacity", [0, -5])
def test_nothing_can_be_shared_where_there_is_nothing(capacity: int):
    assert shares(capacity, (project("a", 1000), 500)) == {"a": 0}


TEAMS = st.lists(
    st.tuples(
        st.integers(0, 9000),
        st.none() | st.integers(0, 12_000),
        st.integers(0, 5),
        st.integers(0, 20_000),
    ),
    max_size=6,
)


@pytest.mark.long
@in_parts(2, examples=2000)
@given(st.integers(0, 30_000), TEAMS)
def test_shares_sum_to_what_there_is_or_to_what_is_asked_for(
    capacity: int, teams: list[tuple[int, int | None, int, int]]
):
    known = projects(project("z", 0), *(project(f"p{i}", *t[:3]) for i, t in enumerate(teams)))
    pod_request = {ProjectName(f"p{i}"): t[3] for i, t in enumerate(teams)}
    found = fair_shares(capacity, known, pod_request)
    asked = {n: min(pod_request.get(n, 0), ceiling_milli(p)) for n, p in known.items()}
    assert sum(found.values()) == min(capacity, sum(asked.values()))
    guaranteed = {n: min(asked[n], p.quota_milli) for n, p in known.items()}
    for name in known:
        assert 0 <= found[name] <= asked[name]
        if sum(guaranteed.values()) <= capacity:
            assert found[name] >= guaranteed[name]


@pytest.mark.long
@in_parts(2, examples=2000)
@given(
    st.integers(0, 10_000), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5000)), max_size=6)
)
def test_nobody_gets_more_per_weight_than_another_who_still_wants(
    amount: int, asks: list[tuple[int, int]]
):
    known = {ProjectName(str(i)): FairShareDemand(*ask) for i, ask in enumerate(asks)}
    found = water_fill(amount, known)
    for name, ask in known.items():
        if not ask.weight or found[name] == ask.most:
            continue
        for other, theirs in known.items():
            if theirs.weight:  # a milli apart by rounding
                level = Fraction(found[name] + 1, ask.weight)
                assert Fraction(max(0, found[other] - 1), theirs.weight) <= level


def test_a_thousand_projects_share_to_the_last_milli():
    teams = [(project(f"p{i:04}", 10, weight=i % 3), 5000) for i in range(1000)]
    found = shares(1_000_000, *teams)
    assert sum(found.values()) == 1_000_000
    assert {found[f"p{i:04}"] for i in range(0, 1000, 3)} == {10}  # without a weight: the quota
    # 990,000 milli above the quotas, by weights 1 and 2 of 333 projects each.
    assert {found[f"p{i:04}"] - 10 for i in range(1, 1000, 3)} <= {990, 991}
    assert {found[f"p{i:04}"] - 10 for i in range(2, 1000, 3)} <= {1981, 1982}
