"""Gangs whose members accept several models, in projects whose quota names models."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from tests.unit.builders import A30, A100, ClusterBuilder, job, pod_shape, projects
from tests.unit.core.fairness.test_budget import (
    ANYWHERE,
    ON_A100,
    QUOTAS,
    MixedPlay,
    check_history,
    mixed,
    team,
)
from tests.unit.core.gang_builders import gang, only_wait
from tests.unit.core.properties.play import Pod
from tests.unit.core.properties.test_gang_play import check_whole, members
from tests.unit.parts import in_parts

from gpu_scheduler.core.model.decision import Plan, Reason
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

ON_A30 = pod_shape(1000, models=("a30",))
EITHER = pod_shape(1000, models=("a100", "a30"))
HALF = pod_shape(500, models=("a100", "a30"))


def models(result: Plan) -> Counter[str]:
    """How many pods were placed on each model."""
    return Counter("a100" if place.node.startswith("a") else "a30" for place in result.assignments)


@pytest.mark.parametrize(
    ("quota", "where"),
    [
        ({"a100": 1000, "a30": 1000}, {"a100": 1, "a30": 1}),
        ({"a100": 0}, {"a30": 2}),
        ({"a30": 0}, {"a100": 2}),
        ({"a100": 2000, "a30": 0}, {"a100": 2}),
    ],
)
def test_a_gang_starts_on_the_models_of_which_something_is_left(
    quota: dict[str, int], where: dict[str, int]
):
    result = plan(
        PlanInput(mixed().obj(), projects(team(weight=0, **quota)), [gang("g", (EITHER, 2))])
    )
    assert models(result) == where


def test_who_has_no_choice_gets_the_model_that_others_could_do_without():
    result = plan(
        PlanInput(
            mixed().obj(),
            projects(team(weight=0, a100=1000, a30=1000)),
            [gang("g", (EITHER, 1), (ON_A100, 1))],
        )
    )
    assert models(result) == {"a100": 1, "a30": 1}
    places = {place.pod: place.node[0] for place in result.assignments}
    assert places == {"g-0": "b", "g-1": "a"}


def test_large_members_leave_to_small_ones_what_these_need():
    """The pair is tried first and must not use up the A100s of the one that has no choice."""
    builder = ClusterBuilder().node("a0", 3, A100).node("b0", 2, A30)
    pair = pod_shape(1000, count=2, models=("a100", "a30"))
    result = plan(
        PlanInput(
            builder.obj(),
            projects(team(weight=0, a100=2000, a30=2000)),
            [gang("g", (pair, 1), (ON_A100, 1))],
        )
    )
    assert models(result) == {"a100": 1, "a30": 1}


def test_with_a_weight_a_gang_borrows_beyond_its_quota_of_a_model():
    held = mixed().held("b0/0", 1000).held("b1/0", 1000)
    result = plan(PlanInput(held.obj(), projects(team(a100=1000)), [gang("g", (EITHER, 2))]))
    assert models(result) == {"a100": 2}


def test_what_all_its_models_together_can_never_give_is_said_at_once():
    teams = projects(team(weight=0, a100=1000, a30=0))
    wait = only_wait(plan(PlanInput(mixed().obj(), teams, [gang("g", (EITHER, 2))])))
    assert wait.reason is Reason.EXCEEDS_QUOTA
    assert wait.message == (
        "needs 2 GPUs; project team-a can never hold more than its quota 1 of a100 and 0 of a30"
        " (weight 0: it never borrows)"
    )


def test_a_gang_that_waits_for_the_quota_of_its_models_says_so():
    teams = projects(team(weight=0, a100=2000, a30=0))
    held = mixed().held("a0/0", 500, "team-a").obj()
    wait = only_wait(plan(PlanInput(held, teams, [gang("g", (HALF, 4), distinct=False)])))
    assert wait.reason is Reason.WAITING_FOR_QUOTA
    assert wait.message.startswith(
        "needs 2 GPUs; project team-a holds 0.5 of its quota 2 of a100 and 0 of its quota 0 of a30"
        " (weight 0: it never borrows)"
    )


def test_a_gang_that_fits_only_where_its_quota_is_used_up_names_that_model():
    """One A30 is free of the two that the quota allows, and both A100s, which it does not."""
    teams = projects(team(weight=0, a100=0, a30=2000))
    held = mixed().held("b0/0", 1000).obj()
    wait = only_wait(plan(PlanInput(held, teams, [gang("g", (EITHER, 2))])))
    assert wait.reason is Reason.WAITING_FOR_QUOTA
    assert "project team-a holds 0 of its quota 0 of a100 (weight 0" in wait.message


def test_a_gang_that_waits_for_its_quota_of_a_model_keeps_no_borrower_away():
    held = mixed().held("a0/0", 1000, "team-a").obj()
    teams = projects(team(weight=0, a100=1000, a30=0), team("team-b", 0))
    jobs = [gang("g", (ON_A100, 1)), job("lone", ON_A100, project="team-b", created=9.0)]
    assert [place.job for place in plan(PlanInput(held, teams, jobs)).assignments] == ["ns/lone"]


MEMBERS = st.lists(st.sampled_from([ON_A100, ON_A30, EITHER]), min_size=1, max_size=4)


def starts(pod_shapes: list[PodShape], free: Counter[str], left: dict[str, int]) -> bool:
    """Whether some way to give each member a model stays within devices and quota."""
    options = [[m for m in ("a100", "a30") if m in each.models] for each in pod_shapes]
    return any(
        all(count <= min(free[m], left.get(m, 9000) // 1000) for m, count in Counter(way).items())
        for way in product(*options)
    )


@pytest.mark.long
@in_parts(2, examples=2000)
@given(
    MEMBERS, st.dictionaries(st.sampled_from(["a100", "a30"]), QUOTAS), st.sets(st.integers(0, 3))
)
def test_a_gang_starts_if_any_choice_of_models_lets_it(
    pod_shapes: list[PodShape], quota: dict[str, int], taken: set[int]
):
    builder, names = mixed(), ("a0/0", "a1/0", "b0/0", "b1/0")
    for device in taken:
        builder.held(names[device], 1000)
    free = Counter("a100" if d < 2 else "a30" for d in range(4) if d not in taken)
    result = plan(
        PlanInput(
            builder.obj(),
            projects(team(milli=9000, weight=0, **quota)),
            [gang("g", *((each, 1) for each in pod_shapes))],
        )
    )
    assert bool(result.assignments) == starts(pod_shapes, free, quota)
    for model, count in models(result).items():
        assert count * 1000 <= quota.get(model, 9000)


POD_KINDS = (ON_A100, ANYWHERE, ON_A30, EITHER, EITHER, HALF)
MODEL_QUOTAS = st.dictionaries(st.sampled_from(["a100", "a30"]), QUOTAS, max_size=2)
WEIGHT, PROJECT = st.sampled_from([1, 1, 2, 0]), st.sampled_from("abc")
KINDS = st.lists(st.sampled_from(POD_KINDS), min_size=1, max_size=3)


class Whole(MixedPlay):
    """Checks besides that gangs stay whole."""

    def carry_out(self, result: Plan) -> None:
        check_whole(self, result)
        super().carry_out(result)


@st.composite
def plays(draw: st.DrawFn) -> tuple[MixedPlay, list[Pod]]:
    """Three projects, some of which name models; gangs that fill the cluster, and later ones."""
    teams = []
    for name in "abc":
        named = draw(MODEL_QUOTAS)
        weight = draw(WEIGHT)
        teams.append(team(name, draw(QUOTAS), weight=weight, **named))
    waves: dict[str, list[Pod]] = {"old": [], "new": []}
    for wave, pods in waves.items():
        for i in range(draw(st.integers(1, 4))):
            pod_shapes = draw(KINDS)
            about = {
                "project": draw(PROJECT),
                "created": 500.0 * (wave == "new") + i,
            }
            pods += members(f"{wave}{i}", *pod_shapes, **about)
    scene = Whole((1, 1, 1, 1), projects(*teams), reserve_after_seconds=1e9)
    scene.wait(*waves["old"])
    return scene, waves["new"]


# Without shrinking: an example is a whole history, and to make one smaller takes minutes.
@pytest.mark.long
@in_parts(4, examples=2000, phases=(Phase.explicit, Phase.generate))
@given(plays())
def test_quotas_of_models_over_whole_histories_of_gangs(drawn: tuple[MixedPlay, list[Pod]]):
    check_history(*drawn)
