"""Topology: a whole gang in one domain."""

import pytest
from tests.unit.builders import A100, ClusterBuilder, pod_shape, projects
from tests.unit.core.gang_builders import ZONE, gang, only_wait

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan, Reason
from gpu_scheduler.core.model.request import Topology
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

T4, K80, P100 = "Tesla-T4", "Tesla-K80", "Tesla-P100-PCIE-16GB"
IN_ONE_ZONE = Topology(ZONE)
THREE = (
    (pod_shape(1000, models=("t4",)), 1),
    (pod_shape(1000, models=("k80",)), 1),
    (pod_shape(1000, models=("p100",)), 1),
)


def zoned(zones: dict[str, list[str]]) -> ClusterBuilder:
    """One node per model in each zone, named '<zone>-<number>'."""
    builder = ClusterBuilder()
    for zone, models in zones.items():
        for n, model in enumerate(models):
            builder.node(f"{zone}-{n}", 1, model, labels={ZONE: zone})
    return builder


def zones_of(cluster: Cluster, result: Plan) -> set[str]:
    labels = {node.name: node.labels for node in cluster.nodes}
    return {labels[place.node].get(ZONE, "") for place in result.assignments}


def test_the_message_names_the_model_that_each_zone_lacks():
    cluster = zoned({"a": [T4, P100], "b": [T4, K80], "c": [K80, P100, P100]}).obj()
    wait = only_wait(
        plan(PlanInput(cluster, projects(), [gang("g", *THREE, topology=IN_ONE_ZONE)]))
    )
    assert wait.reason is Reason.UNSATISFIABLE
    assert wait.message == (
        "no zone can ever hold the gang: zone a has no K80; zone b has no P100; zone c has no T4"
    )


def test_it_starts_when_a_zone_has_all_models():
    cluster = zoned({"a": [T4, P100], "b": [T4, K80, P100]}).obj()
    result = plan(PlanInput(cluster, projects(), [gang("g", *THREE, topology=IN_ONE_ZONE)]))
    assert len(result.assignments) == 3
    assert zones_of(cluster, result) == {"b"}


def test_of_many_zones_the_message_names_a_few():
    cluster = zoned({name: [T4] for name in "abcde"}).obj()
    wait = only_wait(
        plan(PlanInput(cluster, projects(), [gang("g", *THREE[:2], topology=IN_ONE_ZONE)]))
    )
    assert wait.reason is Reason.UNSATISFIABLE
    assert wait.message.startswith("role r1 needs 1 GPU (k80); no GPU is of that model")
    cluster = zoned({name: [T4] for name in "abcde"} | {"z": [K80]}).obj()
    wait = only_wait(
        plan(PlanInput(cluster, projects(), [gang("g", *THREE[:2], topology=IN_ONE_ZONE)]))
    )
    assert wait.message == (
        "no zone can ever hold the gang: zone a has no K80; zone b has no K80; zone c has no K80"
        " and 3 more"
    )


def test_a_zone_that_is_too_small_says_how_many_it_holds():
    cluster = zoned({"a": [T4, T4], "b": [T4]}).obj()
    three = (pod_shape(1000, models=("t4",)), 3)
    wait = only_wait(plan(PlanInput(cluster, projects(), [gang("g", three, topology=IN_ONE_ZONE)])))
    assert wait.message == (
        "no zone can ever hold the gang: zone a holds 2 of the 3 pods that need 1 GPU (t4);"
        " zone b holds 1 of the 3 pods that need 1 GPU (t4)"
    )


def test_enough_gpus_in_two_zones_are_not_enough_in_one():
    cluster = zoned({"a": [A100] * 3, "b": [A100] * 3}).held("a-0/0", 1000).held("b-0/0", 1000)
    wait = only_wait(
        plan(
            PlanInput(
                cluster.obj(), projects(), [gang("g", (pod_shape(1000), 3), topology=IN_ONE_ZONE)]
            )
        )
    )
    assert wait.reason is Reason.WAITING_FOR_GANG
    assert wait.message == "needs 3 GPUs in 3 pods at once; 4 are free, 2 placeable in one zone"


def test_the_zone_with_the_least_left_is_chosen_then_the_first_name():
    roomy = zoned({"a": [A100] * 4, "b": [A100] * 3, "c": [A100] * 3}).obj()
    pair = gang("g", (pod_shape(1000), 2), topology=IN_ONE_ZONE)
    assert zones_of(roomy, plan(PlanInput(roomy, projects(), [pair]))) == {"b"}


def test_nodes_without_the_label_are_out_when_it_is_required():
    cluster = ClusterBuilder().node("x", 4).node("y", 2, labels={ZONE: "a"}).obj()
    pair = gang("g", (pod_shape(1000), 2), topology=IN_ONE_ZONE)
    assert {p.node for p in plan(PlanInput(cluster, projects(), [pair])).assignments} == {"y"}


def test_a_zone_is_preferred_and_given_up_where_none_fits():
    preferred = Topology(ZONE, required=False)
    pair = gang("g", (pod_shape(1000), 2), topology=preferred)
    apart = zoned({"a": [A100], "b": [A100]}).obj()
    assert zones_of(apart, plan(PlanInput(apart, projects(), [pair]))) == {"a", "b"}
    mixed = zoned({"a": [A100], "b": [A100], "c": [A100, A100]}).obj()
    assert zones_of(mixed, plan(PlanInput(mixed, projects(), [pair]))) == {"c"}
    bare = ClusterBuilder().node("x", 2).obj()
    assert len(plan(PlanInput(bare, projects(), [pair])).assignments) == 2


def test_members_that_run_fix_the_zone():
    cluster = zoned({"a": [A100], "b": [A100] * 3}).obj()
    late = gang("g", (pod_shape(1000), 1), topology=IN_ONE_ZONE, nodes=["b-2"], devices=["b-2/0"])
    (place,) = plan(PlanInput(cluster, projects(), [late])).assignments
    assert place.node in ("b-0", "b-1")


def test_a_gang_whose_zone_is_full_waits_for_it():
    cluster = zoned({"a": [A100] * 2, "b": [A100]}).held("b-0/0", 1000).obj()
    late = gang("g", (pod_shape(1000), 1), topology=IN_ONE_ZONE, nodes=["b-0"], distinct=False)
    assert only_wait(plan(PlanInput(cluster, projects(), [late]))).reason is Reason.WAITING_FOR_GANG


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("topology.kubernetes.io/zones", "; labels that look alike: topology.kubernetes.io/zone"),
        ("failure-domain/zone", "; labels that look alike: topology.kubernetes.io/zone"),
        ("rack", ""),
    ],
)
def test_a_key_that_no_node_bears_is_named_with_those_that_look_alike(key: str, meant: str):
    cluster = zoned({"a": [A100] * 2}).obj()
    wait = only_wait(
        plan(
            PlanInput(
                cluster, projects(), [gang("g", (pod_shape(1000), 2), topology=Topology(key))]
            )
        )
    )
    assert wait.reason is Reason.UNSATISFIABLE
    assert wait.message == f"no node has the label {key}, which the topology asks for{meant}"


def test_a_domain_per_node_keeps_a_gang_on_one_node():
    cluster = ClusterBuilder().node("a", 2).node("b", 4).node("c", 8).obj()
    host = Topology("kubernetes.io/hostname")
    result = plan(PlanInput(cluster, projects(), [gang("g", (pod_shape(1000), 4), topology=host)]))
    assert {place.node for place in result.assignments} == {"b"}


def test_many_domains_that_are_too_full_do_not_hide_one_that_fits():
    builder = ClusterBuilder()
    for n in range(100):
        builder.node(f"n{n:03}", 4)
        for device in range(4):
            builder.held(f"n{n:03}/{device}", 250)
    host = Topology("kubernetes.io/hostname")
    cluster = builder.node("z", 4).obj()
    result = plan(PlanInput(cluster, projects(), [gang("g", (pod_shape(1000), 2), topology=host)]))
    assert {place.node for place in result.assignments} == {"z"}
