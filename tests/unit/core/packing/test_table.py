"""The table of scores against a scan of all nodes by definition, for each policy."""

from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import A30, A100, ClusterBuilder, pod_shape
from tests.unit.core.packing import definitions
from tests.unit.core.packing.workloads import PODS, pods, target_workloads

from gpu_scheduler.core.model.arrays import Ints
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.devices import NodeAllocation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import PodShape, ProjectName
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.packing.policy import (
    BUCKET_MILLI,
    OPENING_MILLI,
    SCALE,
    UNIT,
    WEIGHT,
    Packing,
    ScoringInput,
    sigmoid_points,
)
from gpu_scheduler.core.packing.scarcity import scarcity_milli
from gpu_scheduler.core.packing.table import ScoreTable
from gpu_scheduler.core.packing.target_workload import TargetWorkload, target_workload_of

TEAM = ProjectName("team-a")


def cluster() -> Cluster:
    builder = ClusterBuilder().node("none", 0, cpu_milli=8000)
    for i in range(3):
        has = {"rdma/hca": 3, "hugepages-2Mi": i << 30} if i else {}
        labels = {"zone": "abc"[i]}
        builder.node(f"a100-{i}", 4, A100, labels=labels, cpu_milli=24_000, scalars=has)
    builder.node("a30-0", 1, A30, cpu_milli=9000).node("mixed", models=[A100, A30], pods=5)
    builder.node("forged", 2, A100).held("forged/0", 100)
    cluster = builder.obj()
    cluster.free_device(len(cluster.dev_id) - 2, 0, -9000)  # a request in MiB
    return cluster


class Scan:
    """The best node by looking at all of them."""

    def __init__(self, snapshot: Snapshot, packing: Packing, workload: TargetWorkload) -> None:
        self._snapshot, self._packing, self._workload = snapshot, packing, workload
        self._scarce = scarcity_milli(workload, snapshot).tolist()
        self._most_cpu = max(node.cpu_milli for node in snapshot.cluster.nodes)

    def best(self, pod_request: PodRequest) -> tuple[int, int] | None:
        """The node and what is left on the devices."""
        ranked = [
            (*self._rank(pod_request, node, taken, left), node, left)
            for node in pod_request.usable
            for taken, left in self._placements(pod_request, node)
        ]
        return min(ranked)[-2:] if ranked else None

    def _placements(self, pod_request: PodRequest, node: int) -> list[tuple[dict[int, int], int]]:
        shares_first = self._packing.policy.shares_first
        return definitions.placements(pod_request, node, self._snapshot, shares_first=shares_first)

    def _rank(
        self, pod_request: PodRequest, node: int, taken: dict[int, int], left: int
    ) -> tuple[int, int, int, int]:
        snapshot, pod_kind_ = self._snapshot, pod_request.pod_shape
        before = definitions.state_of(snapshot, node)
        after = definitions.without(before, taken, pod_kind_.cpu_milli)
        size = sum(before.kind[o].rank for o in taken) // max(1, len(taken))
        size = size if pod_request.chooser.by_size else 0
        if self._packing is Packing.FRAGMENTATION:
            growth = definitions.cost(after, self._workload) - definitions.cost(
                before, self._workload
            )
            least = min(self._scarce[n] for n in pod_request.could)
            scarcer = self._scarce[node] - least
            opens = len(after.in_use) > len(before.in_use)
            part = opens or sum(taken.values()) % 1000 > 0
            pays = part if scarcer else opens
            paid = growth + (scarcer + OPENING_MILLI * pays) * UNIT
            return size, paid // (BUCKET_MILLI * UNIT) if taken else 0, left, after.total
        if self._packing is Packing.FGD:
            growth = definitions.fragmentation(after, self._workload)
            growth -= definitions.fragmentation(before, self._workload)
            return size, int(sigmoid_points(np.array([growth]))[0]), 0, 0  # then the order of nodes
        if self._packing is Packing.BEST_FIT:
            score = after.cpu * SCALE // self._most_cpu + after.total * SCALE // 4000
            return size, score, left, after.total
        if self._packing is Packing.SPREAD:
            room, most = after.cpu, self._most_cpu
            if taken:
                room, most = after.total, 1000 * len(after.free)
            return size, -(room * SCALE // most), -left, -after.total
        return (size, *self._as_the_policy_says(before.total, after, left, takes=bool(taken)))

    def _as_the_policy_says(
        self, total: int, after: definitions.State, left: int, *, takes: bool
    ) -> tuple[int, int, int]:
        """Of a policy that has no definition here: one placement by itself, and its ties."""
        policy = self._packing.policy

        def growth(copies_percent: int) -> Ints:
            raise AssertionError("a policy that weighs needs a definition here")

        alone = ScoringInput(
            cpu=np.array([after.cpu]),
            total=total,
            taken=total - after.total,
            takes_gpu=int(takes),
            node_gpu=1000 * len(after.free),
            most_gpu=4000,
            most_cpu=self._most_cpu,
            paid=None,
            growth=growth,
        )
        sign = 0 if policy.ties_by_order else -1 if policy.emptiest else 1
        return int(policy.bucket(alone)[0]), sign * left, sign * after.total


@pytest.mark.parametrize("packing", list(Packing))
@settings(deadline=None, max_examples=40)
@given(steps=pods(), workload=target_workloads())
def test_the_table_names_the_node_and_the_device_that_a_scan_would(
    packing: Packing, steps: list[PodShape | None], workload: TargetWorkload
):
    snapshot = Snapshot(cluster())
    pod_requests = {each: PodRequest(each, snapshot) for each in PODS}
    table, scan = ScoreTable(snapshot, packing, workload), Scan(snapshot, packing, workload)
    for step in steps:
        if step is None:
            snapshot.rollback(snapshot.mark() // 2)
            continue
        found = table.best(pod_requests[step])
        expected = scan.best(pod_requests[step])
        assert (found and (found[0], found[1].left_milli)) == expected
        if found is not None:
            snapshot.take(found[0], step, found[1].picks, TEAM)


POD = st.sampled_from([pod for pod in PODS if not pod.where.selector])


@pytest.mark.long
@settings(deadline=None, max_examples=100)
@given(steps=st.lists(POD, max_size=60), workload=target_workloads(), seed=st.integers(0, 9))
def test_looking_ahead_changes_nothing_on_nodes_that_all_differ(
    steps: list[PodShape], workload: TargetWorkload, seed: int
):
    def places(look_from: int) -> list[tuple[int, NodeAllocation] | None]:
        snapshot = Snapshot(differing(12, Random(seed)))
        pod_requests = {each: PodRequest(each, snapshot) for each in steps}
        table, found = ScoreTable(snapshot, Packing.FRAGMENTATION, workload), []
        with patch("gpu_scheduler.core.packing.table._LOOK_FROM", look_from):
            for step in steps:
                found.append(table.best(pod_requests[step]))
                if found[-1] is not None:
                    snapshot.take(found[-1][0], step, found[-1][1].picks, TEAM)
        return found

    assert places(-(1 << 40)) == places(1 << 40)


def differing(nodes: int, random: Random) -> Cluster:
    """Nodes of which no two have the same devices free and the same CPU."""
    builder = ClusterBuilder()
    for n in range(nodes):
        builder.node(f"n{n}", random.choice([2, 4]), cpu_milli=random.randrange(4000, 64_000))
    state = builder.obj()
    for device, usable in enumerate(state.dev_usable_mib):
        free = random.choice([0, 1000, 500, random.randrange(1000)])
        state.free_milli[device], state.free_mib[device] = free, free * usable // 1000
    return state


def best(
    builder: ClusterBuilder, pod: PodShape, packing: Packing, workload: TargetWorkload
) -> tuple[str, str]:
    snapshot = Snapshot(builder.obj())
    found = ScoreTable(snapshot, packing, workload).best(PodRequest(pod, snapshot))
    assert found is not None
    devices = [snapshot.cluster.dev_id[pick[1]] for pick in found[1].picks]
    return snapshot.cluster.nodes[found[0]].name, ",".join(devices)


def test_a_fraction_goes_where_it_leaves_the_least_that_others_cannot_use():
    builder = ClusterBuilder().node("a").held("a/0", 300).held("a/1", 600)
    workload = target_workload_of({pod_shape(700): 1})
    # Best fit would break up a/0, the last device that serves the typical pod.
    assert best(builder, pod_shape(300), Packing.FRAGMENTATION, workload) == ("a", "a/1")
    workload = target_workload_of({pod_shape(400): 1})
    assert best(builder, pod_shape(300), Packing.FRAGMENTATION, workload) == ("a", "a/0")


def test_spreading_takes_the_emptiest_node_and_device():
    builder = ClusterBuilder().node("a").node("b").held("a/0", 100).held("b/0", 50)
    workload = target_workload_of({pod_shape(500): 1})
    assert best(builder, pod_shape(300), Packing.SPREAD, workload) == ("b", "b/1")
    assert best(builder, pod_shape(300), Packing.BEST_FIT, workload) == ("a", "a/0")


def test_a_model_that_others_must_have_is_left_alone():
    builder = ClusterBuilder().node("a30", 2, A30).node("a100", 2).node("spare", 2)
    workload = target_workload_of({pod_shape(1000, models=("a30",)): 5, pod_shape(1000): 5})
    assert best(builder, pod_shape(1000), Packing.FRAGMENTATION, workload)[0] == "a100"
    assert (
        best(builder, pod_shape(1000, models=("a30",)), Packing.FRAGMENTATION, workload)[0] == "a30"
    )


def test_the_only_node_for_rare_large_pods_is_left_alone():
    builder = ClusterBuilder().node("large", 8).node("small", 8, cpu_milli=64_000)
    large = pod_shape(1000, count=8, cpu_milli=120_000)
    workload = target_workload_of({pod_shape(1000, cpu_milli=1000): 99, large: 1})
    assert best(builder, pod_shape(1000), Packing.FRAGMENTATION, workload)[0] == "small"
    assert (
        best(builder, pod_shape(1000), Packing.FGD, workload)[0] == "large"
    )  # too rare to be typical


def test_between_nodes_of_equal_points_fgd_takes_the_first_and_the_default_the_fullest():
    builder = ClusterBuilder().node("empty", 4).node("fuller", 4).held("fuller/0", 1000)
    workload = target_workload_of({pod_shape(1000): 1})
    assert best(builder, pod_shape(1000), Packing.FGD, workload)[0] == "empty"
    assert best(builder, pod_shape(1000), Packing.FRAGMENTATION, workload)[0] == "fuller"


def test_the_sigmoid_of_the_published_program_makes_whole_points():
    growth = np.array([-2000, -41, 0, 39, 41, 2000]) * WEIGHT
    assert sigmoid_points(growth).tolist() == [12, 49, 50, 51, 52, 89]


@settings(deadline=None)
@given(st.integers(0, 3), st.booleans())
def test_barred_nodes_are_passed_over(number: int, all_of_them: bool):
    snapshot = Snapshot(ClusterBuilder().node("a").node("b").node("c").node("d").obj())
    table = ScoreTable(snapshot, Packing.FRAGMENTATION, target_workload_of({pod_shape(500): 1}))
    barred = np.array([all_of_them or n <= number for n in range(4)])
    found = table.best(PodRequest(pod_shape(500), snapshot), barred)
    assert (found and found[0]) == (None if barred.all() else number + 1)


def test_a_device_with_less_than_nothing_free_is_scored_as_one_with_nothing():
    snapshot = Snapshot(ClusterBuilder().node("full", 2).node("overfull", 2).obj())
    usable_mib = snapshot.cluster.dev_usable_mib[0]
    snapshot.block(0, ((0, 0, 1000, usable_mib),))
    snapshot.block(1, ((0, 2, 1500, usable_mib * 3 // 2),))
    table = ScoreTable(snapshot, Packing.FRAGMENTATION, target_workload_of({pod_shape(500): 1}))
    found = table.best(PodRequest(pod_shape(500), snapshot))
    assert found and found[0] == 0  # the first of equals
