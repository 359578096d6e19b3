"""Guarantees of a model: who is inside them, who borrows, who gives back, and what is said."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import A30, A100, ClusterBuilder, job, pod_shape, project, projects
from tests.unit.core.properties.play import Play, Pod
from tests.unit.parts import in_parts

from gpu_scheduler.core.fairness.fairshare import model_shares
from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model import quota
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan, Reason
from gpu_scheduler.core.model.request import Project, ProjectName
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

ON_A100 = pod_shape(1000, models=("a100",))
ANYWHERE = pod_shape(1000)


def team(name: str = "team-a", milli: int = 4000, *, weight: int = 1, **models: int) -> Project:
    """A project with a quota of any GPU, and of models."""
    return replace(project(name, milli, weight=weight), quota_by_model=models)


def mixed() -> ClusterBuilder:
    """Two A100s and two A30s, node by node."""
    builder = ClusterBuilder().node("a0", 1, A100).node("a1", 1, A100)
    return builder.node("b0", 1, A30).node("b1", 1, A30)


def nodes(result: Plan) -> list[str]:
    return sorted(place.node for place in result.assignments)


def test_without_a_weight_the_quota_of_a_model_is_all_that_a_project_gets_of_it():
    result = plan(
        PlanInput(mixed().obj(), projects(team(weight=0, a100=1000)), [job("j", ON_A100, 2)])
    )
    assert len(result.assignments) == 1
    (wait,) = result.waits
    assert wait.reason is Reason.WAITING_FOR_QUOTA
    assert wait.message == (
        "needs 1 GPU (a100); project team-a holds 1 of its quota 1 of a100 (weight 0: it never"
        " borrows)"
    )


def test_what_a_model_can_never_give_is_said_at_once():
    result = plan(PlanInput(mixed().obj(), projects(team(weight=0, a100=500)), [job("j", ON_A100)]))
    assert result.waits[0].reason is Reason.EXCEEDS_QUOTA
    assert result.waits[0].message == (
        "needs 1 GPU (a100); project team-a can never hold more than its quota 0.5 of a100 (weight"
        " 0: it never borrows)"
    )


def test_what_none_of_several_models_can_ever_give_is_said_at_once():
    builder = ClusterBuilder().node("a", 2, A100).node("b", 2, A30)
    pair = job("j", pod_shape(1000, count=2))
    result = plan(PlanInput(builder.obj(), projects(team(weight=0, a100=1000, a30=500)), [pair]))
    assert result.waits[0].reason is Reason.EXCEEDS_QUOTA
    assert result.waits[0].message == (
        "needs 2 GPUs; project team-a can never hold more than its quota 1 of a100 or 0.5 of a30"
        " (weight 0: it never borrows)"
    )
    assert result.shares_milli == {"team-a": 0}


def test_of_several_models_all_that_are_used_up_are_named():
    builder = mixed().held("a0/0", 1000, "team-a").held("b0/0", 1000, "team-a")
    only = projects(team(weight=0, a100=1000, a30=1000))
    result = plan(PlanInput(builder.obj(), only, [job("j", ANYWHERE)]))
    assert result.waits[0].message == (
        "needs 1 GPU; project team-a holds 1 of its quota 1 of a100 and 1 of its quota 1 of a30"
        " (weight 0: it never borrows)"
    )


def test_on_a_node_with_several_models_the_one_that_is_left_is_taken():
    builder = ClusterBuilder().node("x", models=[A100, A30, A100, A30])
    builder.held("x/0", 1000, "team-a").held("x/2", 500)  # the best fit is an A100
    result = plan(
        PlanInput(
            builder.obj(), projects(team(weight=0, a100=1000, a30=500)), [job("j", pod_shape(500))]
        )
    )
    assert [allocated.device for place in result.assignments for allocated in place.devices] == [
        "x/1"
    ]


def test_on_a_node_with_several_models_the_one_that_a_limit_allows_is_taken():
    builder = ClusterBuilder().node("x", models=[A30, A100])
    ten_gib = job("j", pod_shape(mib=10_240))  # 0.426 of an A30, 0.254 of an A100
    result = plan(PlanInput(builder.obj(), projects(project(limit_milli=300)), [ten_gib]))
    assert [allocated.device for place in result.assignments for allocated in place.devices] == [
        "x/1"
    ]


def test_who_never_borrows_is_not_told_that_others_keep_it_from_borrowing():
    builder = mixed().held("a0/0", 1000, "team-a").held("b0/0", 1000).held("b1/0", 1000)
    only = projects(team(weight=0, a100=1000, a30=1000))
    result = plan(PlanInput(builder.obj(), only, [job("j", ANYWHERE)]))  # an A100 is free, no A30
    assert result.waits[0].reason is Reason.WAITING_FOR_QUOTA
    assert result.waits[0].message == (
        "needs 1 GPU; project team-a holds 1 of its quota 1 of a100 (weight 0: it never borrows)"
    )


def test_pods_that_may_run_anywhere_take_the_models_that_are_left():
    result = plan(
        PlanInput(mixed().obj(), projects(team(weight=0, a100=1000)), [job("j", ANYWHERE, 4)])
    )
    assert len([node for node in nodes(result) if node.startswith("a")]) == 1
    assert [node for node in nodes(result) if node.startswith("b")] == ["b0", "b1"]


def test_what_was_held_before_counts():
    builder = mixed().held("a0/0", 1000, "team-a")
    result = plan(
        PlanInput(builder.obj(), projects(team(weight=0, a100=1000)), [job("j", ON_A100)])
    )
    assert result.assignments == ()


def test_with_a_weight_a_project_borrows_beyond_its_quota_of_a_model():
    result = plan(PlanInput(mixed().obj(), projects(team(a100=1000)), [job("j", ON_A100, 2)]))
    assert nodes(result) == ["a0", "a1"]


def test_nobody_borrows_a_model_that_another_project_is_promised():
    teams = projects(team(a100=0), team("team-b", a100=2000))
    jobs = [job("j", ON_A100, 2), job("k", ON_A100, 2, project="team-b", created=9.0)]
    result = plan(PlanInput(mixed().obj(), teams, jobs))
    assert {place.job for place in result.assignments} == {"ns/k"}
    assert "holds 0 of its quota 0 of a100" not in result.waits[0].message  # nothing is free
    held = mixed().held("a0/0", 1000, "other")
    result = plan(PlanInput(held.obj(), teams, jobs))
    assert [place.job for place in result.assignments] == ["ns/k"]


def test_a_model_counts_for_the_longest_name_that_fits():
    builder = ClusterBuilder().node("a", 1, A100).node("b", 1, "NVIDIA-A100-SXM4-80GB")
    both = Project(
        ProjectName("team-a"), 4000, weight=0, quota_by_model={"a100": 0, "a100-sxm4-80gb": 1000}
    )
    result = plan(PlanInput(builder.obj(), projects(both), [job("j", ON_A100, 2)]))
    assert nodes(result) == ["b"]


def play(*teams: Project) -> "MixedPlay":
    made = MixedPlay((1, 1, 1, 1), projects(*teams), session=SESSION)
    made.reserve_after_seconds = 1e9
    return made


MIXED, SESSION = mixed().obj(), PlannerCache()


class MixedPlay(Play):
    """A play on two A100s (a0, a1) and two A30s (b0, b1)."""

    def fill(self, pod: Pod, device: str) -> None:
        """Put a running pod on the whole of a device."""
        at = MIXED.dev_id.index(device)
        self.place(pod, device)
        known, running_pod = self.running[pod.uid]
        devices = tuple(
            replace(allocated, mib=MIXED.dev_usable_mib[at]) for allocated in running_pod.devices
        )
        self.running[pod.uid] = known, replace(running_pod, devices=devices)

    def cluster(self) -> Cluster:
        c = MIXED.copy()
        c.held_by_model = {}
        names = [node.name for node in c.nodes]
        for _, running_pod in self.running.values():
            for allocated in running_pod.devices:
                d = c.dev_id.index(allocated.device)
                c.free_device(d, -allocated.fraction_milli, -allocated.mib)
                key = running_pod.project, c.dev_model[d]
                c.held_by_model[key] = c.held_by_model.get(key, 0) + allocated.milli
            c.free_pods[names.index(running_pod.node)] -= 1
            name = running_pod.project
            c.allocated_milli[name] = c.allocated_milli.get(name, 0) + running_pod.milli
        assert min(c.free_milli) >= 0
        return c

    def held(self, name: str, model: str) -> int:
        """Milli-GPU that a project holds of a model and that do not go."""
        return sum(
            allocated.milli
            for uid, (_, running_pod) in self.running.items()
            if running_pod.project == name and uid not in self.going
            for allocated in running_pod.devices
            if allocated.device.startswith("a" if model == "a100" else "b")
        )


def test_a_model_that_is_promised_is_taken_back_from_who_holds_more_of_it():
    scene = play(team("a", 2000, a100=2000), team("b", 4000, a100=0))
    for number, device in enumerate(("a0/0", "a1/0")):
        scene.fill(Pod(f"old{number}", "b", ON_A100), device)
    scene.wait(Pod("new", "a", ON_A100, created=5.0))
    result = scene.plan()
    assert [evict.job for evict in result.evicts] == ["ns/old1"] or len(result.evicts) == 1
    assert result.evicts[0].message.endswith(
        "its quota is a guarantee: project a holds 0 GPUs of a100, its quota of them is 2, project"
        " b holds 2 GPUs of a100, its quota of them is 0"
    )


def test_a_project_inside_its_quota_of_any_gpu_gives_nothing_if_it_names_no_model():
    scene = play(team("a", 2000, a100=2000), team("b", 4000))
    for number, device in enumerate(("a0/0", "a1/0")):
        scene.fill(Pod(f"old{number}", "b", ON_A100), device)
    scene.wait(Pod("new", "a", ON_A100, created=5.0))
    assert scene.plan().evicts == ()


def test_what_is_inside_the_quota_of_a_model_is_not_taken_for_pods_that_may_run_anywhere():
    """b holds two A100s that it is promised, and two A30s that it borrows."""
    scene = play(team("a", 2000), team("b", 2000, a100=2000))
    for number, device in enumerate(("b0/0", "b1/0", "a0/0", "a1/0")):  # the A100s came last
        scene.now = 1000.0 + number
        scene.fill(Pod(f"old{number}", "b", ANYWHERE), device)
    scene.wait(*(Pod(f"new{n}", "a", ANYWHERE, created=5.0) for n in range(2)))
    assert sorted(evict.job for evict in scene.plan().evicts) == ["ns/old0", "ns/old1"]


POD_KINDS = (
    ON_A100,
    ON_A100,
    ANYWHERE,
    pod_shape(1000, models=("a30",)),
    pod_shape(500, models=("a100",)),
)
QUOTAS = st.sampled_from([0, 500, 1000, 2000])
MODEL_QUOTAS = st.dictionaries(st.sampled_from(["a100", "a30"]), QUOTAS, max_size=2)
WEIGHT, PROJECT = st.sampled_from([1, 1, 2, 0]), st.sampled_from("abc")
KIND = st.sampled_from(POD_KINDS)


@st.composite
def plays(draw: st.DrawFn) -> tuple[MixedPlay, list[Pod]]:
    """Three projects, some of which name models; jobs that fill the cluster, and later ones."""
    teams = []
    for name in "abc":
        models = draw(MODEL_QUOTAS)
        weight = draw(WEIGHT)
        teams.append(team(name, draw(QUOTAS), weight=weight, **models))
    waves = []
    for wave, created in (("old", 0.0), ("new", 500.0)):
        waves.append(
            [
                Pod(
                    f"{wave}{i}",
                    draw(PROJECT),
                    draw(KIND),
                    created=created + i,
                )
                for i in range(draw(st.integers(1, 6)))
            ]
        )
    return play(*teams).wait(*waves[0]), waves[1]


@pytest.mark.long
@in_parts(4, examples=2000)
@given(plays())
def test_quotas_of_models_over_whole_histories(drawn: tuple[MixedPlay, list[Pod]]):
    check_history(*drawn)


def check_history(scene: MixedPlay, later: list[Pod]) -> None:
    """Without a weight never above them; inside them never reclaimed; no plan undoes another."""
    for cycle in range(8):
        if cycle == 3:
            scene.wait(*later)
        before = {(n, m): scene.held(n, m) for n in "abc" for m in ("a100", "a30")}
        result = scene.plan()
        beneficiaries = {evict.beneficiary for evict in result.evicts}
        victims = {evict.job for evict in result.evicts}
        assert not beneficiaries & victims
        scene.carry_out(result)
        for name, held in scene.projects.items():
            for model, promised in held.quota_by_model.items():
                now, then = scene.held(name, model), before[name, model]
                if held.weight == 0:
                    assert now <= max(promised, then)
                assert now >= min(promised, then), "taken from inside the quota of a model"
        if cycle > 3 and at_rest(scene, result):
            break  # it would be the same again
        scene.tick()
    quiet = [scene.plan() for _ in range(2)]
    assert quiet[0] == quiet[1]
    # Demand stands still: whoever had to go for others is not brought back at their cost.
    for _ in range(6):
        result = scene.plan()
        if at_rest(scene, result):
            return
        scene.carry_out(result)
        scene.tick()
    assert scene.plan().evicts == (), "plans undo each other for ever"


def at_rest(scene: MixedPlay, result: Plan) -> bool:
    """Whether nothing changes any more: nobody ends by itself here."""
    return not (result.assignments or result.evicts or scene.going)


ASKS = st.lists(
    st.tuples(
        st.integers(0, 9000),  # quota of any GPU
        st.none() | st.integers(0, 9000),  # of the model
        st.integers(0, 4),  # weight
        st.integers(0, 20_000),  # demand
    ),
    max_size=6,
)


@pytest.mark.long
@in_parts(2, examples=2000)
@given(st.integers(0, 30_000), ASKS)
def test_shares_of_a_model_sum_to_what_there_is_and_keep_what_is_promised(
    capacity: int, asks: list[tuple[int, int | None, int, int]]
):
    known, pod_request = {}, {}
    for i, (any_gpu, named, weight, wanted) in enumerate(asks):
        name = ProjectName(f"p{i}")
        models = {} if named is None else {"a100": named}
        known[name] = Project(name, any_gpu, None, weight, models)
        pod_request[name] = wanted
    found = model_shares("a100", capacity, known, pod_request)
    asked = {}
    for name, each in known.items():
        most = quota.ceiling_milli(each)
        if each.weight == 0 and "a100" in each.quota_by_model:
            most = min(most, each.quota_by_model["a100"])
        asked[name] = min(pod_request[name], most)
        assert 0 <= found[name] <= asked[name]
    assert sum(found.values()) == min(capacity, sum(asked.values()))
    promised = {n: min(asked[n], p.quota_by_model.get("a100", 0)) for n, p in known.items()}
    if sum(promised.values()) <= capacity:
        assert all(found[name] >= promised[name] for name in known)
