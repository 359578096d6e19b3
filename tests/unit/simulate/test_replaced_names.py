"""A dump with other names gives the same plan, up to the names."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.unit.builders import ClusterBuilder, job, pod_shape, projects
from tests.unit.core.golden.history import History
from tests.unit.runtime.test_dump import middle

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.request import NodeFilter, NodeSelectorTerm
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.runtime.dump import dump_of, read, written
from gpu_scheduler.simulate.replaced_names import replaced


def decisions(result: Plan) -> list[object]:
    """All that a plan says, without names."""
    return [
        [[(g.container, g.milli, g.mib) for g in place.devices] for place in result.assignments],
        [(wait.reason, wait.position) for wait in result.waits],
        [(evict.reason, evict.whole_job) for evict in result.evicts],
        [(hold.reason, hold.start) for hold in result.reservations],
        [*result.shares_milli.values()],
        result.again_at,
        [*result.memory.nominal_since.values()],
    ]


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60, 80))
def test_the_plan_is_the_same_up_to_the_names(seed: int) -> None:
    history = middle(seed)
    dump = read(history.dumped)
    other = replaced(dump)
    before, after = plan(dump.to_input()), plan(other.to_input())
    assert decisions(before) == decisions(after)
    nodes = [node.name for node in dump.given.cluster.nodes]
    place = {name: n for n, name in enumerate(node.name for node in other.given.cluster.nodes)}
    assert [nodes[place[p.node]] for p in after.assignments] == [p.node for p in before.assignments]


def test_no_name_is_left() -> None:
    history: History = middle(12)
    dump = read(history.dumped)
    given = dump.given
    secret = {node.name for node in given.cluster.nodes} | {*given.projects, "ns"}
    secret |= {text for job in given.jobs for text in (job.key, *(p.name for p in job.pods))}
    secret |= {each.uid for each in dump.running_pods} | {"z0", "z1"}
    text = b"".join(written(replaced(dump)))
    assert not secret & set(strings(json.loads(text)))
    assert b"".join(written(read(text))) == text


def test_values_that_are_compared_as_numbers_keep_their_value_and_all_their_order() -> None:
    builder = ClusterBuilder()
    for name, size in (("a", "9"), ("b", "10"), ("c", "1a"), ("d", "200")):
        builder.node(name, labels={"size": size})
    above = NodeSelectorTerm(labels=(Requirement("size", "Gt", ("9",)),))
    where = NodeFilter(terms=(above,))
    given = PlanInput(
        builder.obj(), projects(), [job("j", pod_shape(1000, count=2, where=where), 3)]
    )
    dump = dump_of(replace(given, now=5.0), PlannerCache().workload)
    before, after = plan(dump.to_input()), plan(replaced(dump).to_input())
    assert len(before.assignments) == 2
    assert decisions(before) == decisions(after)
    labels = [node.labels["size"] for node in replaced(dump).given.cluster.nodes]
    assert labels[:2] + labels[3:] == ["9", "10", "200"]
    assert "10" < labels[2] < "200"


def test_kinds_of_resources_keep_their_names_and_count() -> None:
    hca = {"rdma/hca": 2}
    cluster = ClusterBuilder().node("eth", 2).node("ib", 2, scalars=hca).obj()
    jobs = [job(f"j{n}", pod_shape(500, scalars={"rdma/hca": 1})) for n in range(3)]
    dump = dump_of(PlanInput(cluster, projects(), jobs), PlannerCache().workload)
    other = replaced(read(b"".join(written(dump)))).to_input()
    result = plan(other)
    assert decisions(result) == decisions(plan(dump.to_input()))
    assert (len(result.assignments), other.cluster.nodes[1].scalars) == (2, (("rdma/hca", 2),))
