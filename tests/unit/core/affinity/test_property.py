"""Random pods, labels, nodes and rules: none is broken, and nobody waits where a node would do."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import ClusterBuilder, job, pod_shape, projects
from tests.unit.core.affinity.builders import HOST, ZONE, Standing
from tests.unit.core.affinity.reference import may

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.affinity import (
    AffinityInfo,
    AffinityRules,
    AffinityTerm,
    PodSelector,
    SpreadConstraint,
)
from gpu_scheduler.core.model.cluster import Cluster, Taint
from gpu_scheduler.core.model.request import Gang, NodeFilter, WaitingJob
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

EXAMPLES = 200
KEYS = st.sampled_from([HOST, ZONE, "rack"])
NAMESPACES = st.sampled_from(["ns", "other"])
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"])).map(
    lambda found: tuple(sorted(found.items()))
)
REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["In", "In", "In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=2, unique=True).map(tuple),
)
SELECTORS = st.builds(
    PodSelector,
    st.sampled_from([("ns",), ("ns",), ("other",), ("ns", "other"), None]),
    st.one_of(st.none(), st.lists(REQUIREMENTS, max_size=2).map(tuple)),
)


# None asks about pods like the one that asks. Made once: half of this test's time was to make them.
ABOUT = st.one_of(st.none(), SELECTORS)
TERMS = st.lists(st.tuples(KEYS, ABOUT), min_size=1, max_size=2)
SPREADS = st.lists(
    st.tuples(st.integers(1, 2), KEYS, ABOUT, st.integers(1, 4), st.booleans()),
    min_size=1,
    max_size=2,
)
RULES = st.sampled_from(["near", "apart", "spread", "all"])
ZONES, RACKS = st.sampled_from(["z0", "z1"]), st.sampled_from(["r0", "r1"])
MILLI = st.sampled_from([0, 500, 1000])


@st.composite
def affinity(draw: st.DrawFn) -> AffinityInfo:
    """A pod; what its rules ask about are often pods like itself."""
    who = AffinityInfo(draw(NAMESPACES), draw(LABELS))
    if not draw(st.integers(0, 2)):
        return who
    alike = tuple(Requirement(key, "In", (value,)) for key, value in who.labels)
    own = PodSelector((who.namespace,), alike)

    def terms() -> tuple[AffinityTerm, ...]:
        return tuple(AffinityTerm(key, about or own) for key, about in draw(TERMS))

    def spread() -> tuple[SpreadConstraint, ...]:
        return tuple(
            SpreadConstraint(skew, key, about or own, *more)
            for skew, key, about, *more in draw(SPREADS)
        )

    rules = draw(RULES)
    return AffinityInfo(
        who.namespace,
        who.labels,
        AffinityRules(
            terms() if rules in ("near", "all") else (),
            terms() if rules in ("apart", "all") else (),
            spread() if rules in ("spread", "all") else (),
        ),
    )


@dataclass
class Scene:
    cluster: Cluster
    standing: Standing
    jobs: list[WaitingJob]


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    builder = ClusterBuilder()
    count = draw(st.integers(1, 5))
    for n in range(count):
        labels = {}
        if draw(st.integers(0, 5)):
            labels[ZONE] = draw(ZONES)
        if draw(st.integers(0, 1)):
            labels["rack"] = draw(RACKS)
        taints = (Taint("t", "", "NoSchedule"),) if not draw(st.integers(0, 4)) else ()
        unschedulable = "is cordoned" if not draw(st.integers(0, 6)) else ""
        builder.node(
            f"n{n}",
            draw(st.integers(0, 2)),
            labels=labels,
            taints=taints,
            unschedulable=unschedulable,
        )
    standing = Standing()
    for _ in range(draw(st.integers(0, 5))):
        node = f"n{draw(st.integers(0, count))}"  # one of them does not exist
        standing.on(node, draw(affinity()), ending=not draw(st.integers(0, 3)))
    jobs = []
    for number in range(draw(st.integers(1, 4))):
        who = draw(affinity())
        where = NodeFilter(selector=((ZONE, "z0"),)) if not draw(st.integers(0, 3)) else None
        what = pod_shape(draw(MILLI), where=where)
        made = job(f"j{number}", what, draw(st.integers(1, 4)), created=number)
        pods = tuple(replace(pod, affinity=who) for pod in made.pods)
        jobs.append(replace(made, pods=pods, ruled=who.rules is not None))
    cluster = builder.obj()
    cluster.nodes = [replace(node, tainted=bool(node.unschedulable)) for node in cluster.nodes]
    cluster.placed_pods = standing
    return Scene(cluster, standing, jobs)


def settle(scene: Scene) -> list[WaitingJob]:
    """Plan until nothing starts any more, watching each placement; what waits then."""
    cluster, standing, jobs = scene.cluster, scene.standing, scene.jobs
    session = PlannerCache()
    while True:
        result = plan(PlanInput(cluster, projects(), jobs), session)
        if not result.assignments:
            return jobs
        waiting = {pod.uid: pod for job in jobs for pod in job.pods}
        for place in result.assignments:
            pod = waiting.pop(place.pod)
            node = next(node for node in cluster.nodes if node.name == place.node)
            assert pod.affinity is not None
            allowed = may(pod.affinity, pod.pod_shape.where, node, cluster.nodes, standing.seats)
            assert allowed, f"{place} breaks {pod.affinity}"
            standing.on(place.node, pod.affinity)
            n = cluster.nodes.index(node)
            cluster.free_pods[n] -= 1
            for allocated in place.devices:
                device = cluster.dev_id.index(allocated.device)
                cluster.free_device(device, -allocated.fraction_milli, -allocated.mib)
        left = [replace(j, pods=tuple(p for p in j.pods if p.uid in waiting)) for j in jobs]
        jobs = [j for j in left if j.pods]


def has_room(cluster: Cluster, n: int, milli: int) -> bool:
    free = cluster.free_milli[cluster.first[n] : cluster.first[n + 1]]
    return not milli or any(each >= milli for each in free)


@pytest.mark.long
@settings(max_examples=EXAMPLES)
@given(scenes())
def test_no_rule_is_broken_and_nobody_waits_where_a_node_would_do(scene: Scene) -> None:
    for waiting in settle(scene):
        for pod in waiting.pods:
            assert pod.affinity is not None
            for n, node in enumerate(scene.cluster.nodes):
                where = pod.pod_shape.where
                if node.unschedulable or node.taints:
                    continue
                if any(node.labels.get(key) != value for key, value in where.selector):
                    continue
                if not has_room(scene.cluster, n, pod.pod_shape.nominal_milli):
                    continue
                seats = scene.standing.seats
                allowed = may(pod.affinity, where, node, scene.cluster.nodes, seats)
                assert not allowed, f"{pod.name} waits although {node.name} would do"


@pytest.mark.long
@settings(max_examples=EXAMPLES)
@given(scenes())
def test_a_gang_breaks_no_rule_and_starts_as_a_whole(scene: Scene) -> None:
    jobs = [
        replace(each, gang=Gang(len(each.pods), len(each.pods), distinct=False))
        for each in scene.jobs
    ]
    left = settle(replace_jobs(scene, jobs))
    sizes = {each.key: len(each.pods) for each in jobs}
    assert all(len(each.pods) == sizes[each.key] for each in left)


def replace_jobs(scene: Scene, jobs: list[WaitingJob]) -> Scene:
    return Scene(scene.cluster, scene.standing, jobs)


@pytest.mark.long
@settings(max_examples=EXAMPLES)
@given(scenes())
def test_a_session_remembers_nothing_wrong(scene: Scene) -> None:
    kept = PlannerCache()
    first = plan(PlanInput(scene.cluster, projects(), scene.jobs), kept)
    again = plan(PlanInput(scene.cluster, projects(), scene.jobs), kept)
    anew = plan(PlanInput(scene.cluster, projects(), scene.jobs))
    assert first.assignments == again.assignments == anew.assignments
