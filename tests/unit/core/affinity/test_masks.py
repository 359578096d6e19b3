"""Single rules about other pods, in plans: who goes where, and who waits."""

from collections import Counter
from dataclasses import replace

import pytest
from tests.unit.builders import ClusterBuilder, job, pod_shape, project, projects
from tests.unit.core.affinity.builders import (
    HOST,
    ZONE,
    Standing,
    affinity,
    apart,
    near,
    selector,
    spread,
)

from gpu_scheduler.core.model.affinity import AffinityInfo, AffinityRules, SpreadConstraint
from gpu_scheduler.core.model.cluster import Cluster, Taint
from gpu_scheduler.core.model.decision import DeviceAllocation, Plan
from gpu_scheduler.core.model.request import (
    Gang,
    JobKey,
    NodeFilter,
    PodShape,
    PodUID,
    Project,
    ProjectName,
    WaitingJob,
)
from gpu_scheduler.core.model.running_pods import Roll, RunningPod
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput


def ruled(name: str, who: AffinityInfo, pods: int = 1, what: PodShape | None = None) -> WaitingJob:
    made = job(name, what or pod_shape(1000), pods)
    each = tuple(replace(pod, affinity=who) for pod in made.pods)
    return replace(made, pods=each, ruled=who.rules is not None)


def hosts(count: int, gpus: int = 2, **more: str) -> ClusterBuilder:
    builder = ClusterBuilder()
    for n in range(count):
        builder.node(f"n{n}", gpus, labels={ZONE: f"z{n % 2}", **more})
    return builder


def planned(builder: ClusterBuilder, standing: Standing, *jobs: WaitingJob) -> Plan:
    cluster = builder.obj()
    cluster.placed_pods = standing
    return plan(PlanInput(cluster, projects(), jobs))


def where(result: Plan) -> list[str]:
    return sorted(place.node for place in result.assignments)


@pytest.mark.parametrize("gang", [False, True])
def test_five_pods_that_keep_apart_take_five_hosts_at_once(gang: bool) -> None:
    five = ruled("five", affinity(apart(app="five"), app="five"), 5, pod_shape(500))
    if gang:
        five = replace(five, gang=Gang(5, 5, distinct=False))
    assert where(planned(hosts(5), Standing(), five)) == [f"n{n}" for n in range(5)]


@pytest.mark.parametrize("gang", [False, True])
def test_maximal_skew_one_over_four_hosts_puts_one_on_each(gang: bool) -> None:
    four = ruled("four", affinity(spread(app="four"), app="four"), 4, pod_shape(250))
    if gang:
        four = replace(four, gang=Gang(4, 4, distinct=False))
    assert where(planned(hosts(4), Standing(), four)) == ["n0", "n1", "n2", "n3"]


def test_spread_over_zones_counts_the_pods_that_are_there() -> None:
    standing = Standing().on("n0", affinity(app="x")).on("n0", affinity(app="y"))
    three = ruled("three", affinity(spread(ZONE, app="x"), app="x"), 3)
    assert where(planned(hosts(2), standing, three)) == ["n0", "n1", "n1"]
    alone = ruled("one", affinity(spread(ZONE, app="x"), app="x"))
    assert where(planned(hosts(2), standing, alone)) == ["n1"]


def test_pods_that_end_are_not_counted_for_spread_and_still_are_for_affinity() -> None:
    ending = Standing().on("n0", affinity(app="x"), ending=True)
    level = ruled("level", affinity(spread(app="x"), app="x"), 2, pod_shape(500))
    assert where(planned(hosts(2), ending, level)) == ["n0", "n1"]
    away = ruled("away", affinity(apart(app="x")), 1)
    assert where(planned(hosts(2), ending, away)) == ["n1"]


def only_here(**more: object) -> AffinityInfo:
    constraint = SpreadConstraint(1, HOST, selector(app="x"), **more)  # type: ignore[arg-type]
    return affinity(AffinityRules(spread=(constraint,)), app="x")


def test_nodes_that_the_pod_may_not_use_do_not_count_unless_it_says_so() -> None:
    builder = ClusterBuilder().node("n0", labels={"gpu": "yes"}).node("cpu", 0)
    on_gpus = pod_shape(500, where=NodeFilter(selector=(("gpu", "yes"),)))
    counted = ruled("counted", only_here(), 2, on_gpus)
    assert where(planned(builder, Standing(), counted)) == ["n0", "n0"]
    ignored = ruled("ignored", only_here(by_affinity=False), 2, on_gpus)
    assert where(planned(builder, Standing(), ignored)) == ["n0"]


def test_tainted_nodes_count_unless_the_pod_says_otherwise() -> None:
    taint = (Taint("reserved", "", "NoSchedule"),)
    builder = ClusterBuilder().node("n0").node("n1", taints=taint)
    assert where(planned(builder, Standing(), ruled("a", only_here(), 2, pod_shape(500)))) == ["n0"]
    honours = ruled("b", only_here(by_taints=True), 2, pod_shape(500))
    assert where(planned(builder, Standing(), honours)) == ["n0", "n0"]
    cordoned = ClusterBuilder().node("n0").node("n1", unschedulable="is cordoned").obj()
    cordoned.nodes = [replace(n, tainted=bool(n.unschedulable)) for n in cordoned.nodes]
    assert where(plan(PlanInput(cordoned, projects(), [honours]))) == ["n0", "n0"]


def test_with_fewer_domains_than_wanted_the_least_is_none() -> None:
    standing = Standing().on("n0", affinity(app="x")).on("n1", affinity(app="x"))
    third = ruled("third", affinity(spread(min_domains=3, app="x"), app="x"))
    assert where(planned(hosts(2), standing, third)) == []
    assert (
        len(where(planned(hosts(2), standing, ruled("t", affinity(spread(app="x"), app="x"))))) == 1
    )


def test_the_first_of_a_group_may_go_anywhere_and_the_others_follow() -> None:
    together = ruled("group", affinity(near(ZONE, app="group"), app="group"), 4)
    nodes = where(planned(hosts(4), Standing(), together))
    assert len(nodes) == 4 and len({int(node[1:]) % 2 for node in nodes}) == 1


def test_a_gang_that_comes_before_those_it_wants_to_be_near_starts_in_the_next_plan() -> None:
    gang = replace(ruled("gang", affinity(near(app="db")), 2, pod_shape(500)), gang=Gang(2, 2))
    db = replace(ruled("db", affinity(app="db"), 1, pod_shape(500)), created=1.0)
    result = planned(hosts(2), Standing(), gang, db)
    assert [place.job for place in result.assignments] == [db.key]
    assert [wait.job for wait in result.waits] == [gang.key]


def test_who_wants_others_goes_where_they_are_or_waits() -> None:
    wants = ruled("wants", affinity(near(app="db")))
    assert where(planned(hosts(3), Standing(), wants)) == []
    standing = Standing().on("n2", affinity(app="db"))
    assert where(planned(hosts(3), standing, wants)) == ["n2"]
    elsewhere = Standing().on("n2", affinity(namespace="other", app="db"))
    assert where(planned(hosts(3), elsewhere, wants)) == []


def test_a_pod_that_is_there_keeps_others_away_though_they_have_no_rules() -> None:
    standing = Standing().on("n0", affinity(apart(app="noisy"), app="quiet"))
    noisy = ruled("noisy", affinity(app="noisy"), 3, pod_shape(500))
    assert "n0" not in where(planned(hosts(2), standing, noisy))
    assert where(planned(hosts(1), standing, ruled("calm", affinity(app="calm")))) == ["n0"]


def test_pods_of_one_plan_keep_each_other_away() -> None:
    first = ruled("first", affinity(apart(app="second")), 1, pod_shape(500))
    second = replace(ruled("second", affinity(app="second"), 1, pod_shape(500)), created=1.0)
    assert where(planned(hosts(2), Standing(), first, second)) == ["n0", "n1"]
    assert len(where(planned(hosts(1), Standing(), first, second))) == 1


def test_pods_with_no_rules_and_no_rules_about_them_cost_no_mask() -> None:
    builder = hosts(2)
    builder.obj().placed_pods = Standing()
    result = plan(PlanInput(builder.obj(), projects(), [job("plain", pod_shape(500), 4)]))
    assert Counter(where(result)) == {"n0": 4}


def test_who_can_go_nowhere_keeps_no_nodes_from_borrowers() -> None:
    cluster = hosts(2).obj()
    standing = Standing().on("n0", affinity(app="x")).on("n1", affinity(app="x"))
    cluster.placed_pods = standing
    stuck = ruled("stuck", affinity(apart(app="x"), app="x"))
    borrower = replace(job("borrower", pod_shape(1000), 4), project=ProjectName("poor"))
    teams = projects() | {
        ProjectName("poor"): replace(
            projects()[ProjectName("team-a")], name=ProjectName("poor"), quota_milli=0
        )
    }
    result = plan(PlanInput(cluster, teams, [stuck, borrower]))
    assert len(result.assignments) == 4


def with_a_borrower() -> dict[ProjectName, Project]:
    return projects(project(), project("poor", 0))


def borrowed(cluster: Cluster, node: str, who: AffinityInfo, standing: Standing) -> Roll:
    """All GPUs of all nodes are borrowed; the pod on ``node`` is `who`."""
    found = []
    for n, info in enumerate(cluster.nodes):
        uid = PodUID(f"on-{info.name}")
        standing.on(info.name, who if info.name == node else affinity(), uid=uid)
        devices = []
        for d in range(cluster.first[n], cluster.first[n + 1]):
            cluster.free_milli[d] = cluster.free_mib[d] = 0
            devices.append(DeviceAllocation(0, cluster.dev_id[d], 1000, cluster.dev_usable_mib[d]))
        name = ProjectName("poor")
        cluster.allocated_milli[name] = cluster.allocated_milli.get(name, 0) + 1000 * len(devices)
        found.append(
            RunningPod(uid, uid, JobKey(f"ns/{uid}"), name, info.name, tuple(devices), 0, 0, 0)
        )
    return Roll(found)


def test_nobody_is_evicted_where_the_rules_forbid_the_pod_or_would_without_its_victim() -> None:
    teams = with_a_borrower()
    for rules, allowed in ((apart(app="x"), {"n1"}), (near(app="x"), set())):
        cluster, standing = hosts(2, gpus=1).obj(), Standing()
        roll = borrowed(cluster, "n0", affinity(app="x"), standing)
        cluster.placed_pods = standing
        result = plan(
            PlanInput(cluster, teams, [ruled("mine", affinity(rules))], running_pods=roll)
        )
        assert {reservation.node for reservation in result.reservations} == allowed
        assert {evict.pod for evict in result.evicts} == {f"on-{node}" for node in allowed}


def test_pods_that_keep_apart_are_not_promised_the_same_node() -> None:
    teams = with_a_borrower()
    cluster, standing = hosts(2, gpus=2).obj(), Standing()
    roll = borrowed(cluster, "n0", affinity(), standing)
    cluster.placed_pods = standing
    three = ruled("mine", affinity(apart(app="m"), app="m"), 3)
    result = plan(PlanInput(cluster, teams, [three], running_pods=roll))
    assert sorted(reservation.node for reservation in result.reservations) == ["n0", "n1"]
    assert len(result.evicts) == 2
