"""What a job is told that waits because of where other pods are: the rule, and numbers."""

from dataclasses import replace

import pytest
from tests.unit.builders import ClusterBuilder, pod_shape
from tests.unit.core.affinity.builders import HOST, Standing, affinity, apart, near, spread
from tests.unit.core.affinity.test_masks import hosts, planned, ruled

from gpu_scheduler.core.model.affinity import AffinityRules
from gpu_scheduler.core.model.decision import Plan, Reason
from gpu_scheduler.core.model.request import Gang, WaitingJob

HALF = pod_shape(500)
S = "kubernetes.io/hostname"


def said(result: Plan) -> str:
    (wait,) = result.waits
    assert wait.reason is Reason.WAITING_FOR_TOPOLOGY
    return wait.message.removeprefix("needs 0.5 of a GPU; ")


def with_app(rules: AffinityRules, pods: int = 1) -> WaitingJob:
    return ruled("x", affinity(rules, app="x"), pods, HALF)


def test_more_pods_that_keep_apart_than_hosts() -> None:
    result = planned(hosts(4), Standing(), with_app(apart(app="x"), 5))
    assert len(result.assignments) == 4
    assert said(result) == (
        f"podAntiAffinity[0]: one such pod per {S}, and all 4 that could hold it have one"
        " (n0, n1, n2 and 1 more); it starts when one of those has ended"
    )


def full_last(count: int = 3) -> ClusterBuilder:
    return hosts(count, 1).held(f"n{count - 1}/0", 1000)


CASES: dict[str, tuple[ClusterBuilder, Standing, AffinityRules, int, str]] = {
    "apart, and the last host is full": (
        full_last(),
        Standing(),
        apart(app="x"),
        3,
        f"podAntiAffinity[0]: one such pod per {S}, and 2 of 3 that could hold it have one"
        " (n0, n1); there is no room on n2",
    ),
    "apart from others": (
        hosts(2),
        Standing().on("n0", affinity(app="db")).on("n1", affinity(app="db")),
        apart(app="db"),
        1,
        f"podAntiAffinity[0]: pods with app=db in namespace ns are on all 2 {S} that could hold it"
        " (n0, n1); it starts when one of those has none any more",
    ),
    "spread, and the last host is full": (
        full_last(),
        Standing(),
        spread(app="x"),
        3,
        f"topologySpreadConstraints[0]: maxSkew 1 over {S}: n0 has 1, the least is 0 on n2, which"
        " has no room",
    ),
    "spread, and one host is cordoned": (
        hosts(1).node("n1", unschedulable="is cordoned"),
        Standing(),
        spread(app="x"),
        2,
        f"topologySpreadConstraints[0]: maxSkew 1 over {S}: n0 has 1, the least is 0 on n1, which"
        " is cordoned",
    ),
    "spread over a node without GPUs": (
        hosts(1).node("cpu", 0),
        Standing(),
        spread(app="x"),
        2,
        f"topologySpreadConstraints[0]: maxSkew 1 over {S}: n0 has 1, the least is 0 on cpu, which"
        " could not hold it (a node selector leaves such nodes out)",
    ),
    "too few domains": (
        hosts(2),
        Standing().on("n0", affinity(app="x")).on("n1", affinity(app="x")),
        spread(min_domains=3, app="x"),
        1,
        f"topologySpreadConstraints[0]: maxSkew 1 over {S}: n0 has 1; only 2 of minDomains 3 are"
        " there, so the least counts as 0",
    ),
    "spread over a label that only others have": (
        hosts(1).node("n1", 0, labels={"rack": "r"}),
        Standing(),
        spread("rack", app="x"),
        1,
        "topologySpreadConstraints[0]: maxSkew 1 over rack: n0 lack that label",
    ),
    "near nobody": (
        hosts(2),
        Standing(),
        near(app="db"),
        1,
        f"podAffinity[0]: no pod with app=db in namespace ns is on a node with {S}",
    ),
    "near others, where all is full": (
        full_last(),
        Standing().on("n2", affinity(app="db")),
        near(app="db"),
        1,
        f"podAffinity[0]: pods with app=db in namespace ns are on n2 of {S}, where there is no"
        " room",
    ),
    "kept away": (
        hosts(2),
        Standing().on("n0", affinity(apart(app="x"))).on("n1", affinity(apart(app="x"))),
        AffinityRules(),
        1,
        f"pods near n0, n1 keep it away by their podAntiAffinity over {S}",
    ),
    "two rules that leave nothing together": (
        hosts(2),
        Standing().on("n0", affinity(app="db")).on("n1", affinity(app="web")),
        replace(near(app="db"), anti_affinity=apart(app="db").anti_affinity),
        1,
        f"podAntiAffinity[0]: pods with app=db in namespace ns are on 1 of 2 {S} that could hold"
        " it (n0); and podAffinity[0]: pods with app=db in namespace ns"
        f" are on n0 of {S}",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rule_and_its_numbers_are_named(case: str) -> None:
    builder, standing, rules, pods, expected = CASES[case]
    result = planned(builder, standing, with_app(rules, pods))
    assert said(result) == expected


def test_a_label_that_no_node_has_can_never_do() -> None:
    result = planned(hosts(2), Standing(), with_app(spread("rack", app="x")))
    assert [(wait.reason, wait.message) for wait in result.waits] == [
        (
            Reason.UNSATISFIABLE,
            "needs 0.5 of a GPU; no node has the label rack, which topologySpreadConstraints[0]"
            " asks for",
        )
    ]


def test_a_gang_is_told_the_rule_that_leaves_it_too_few_hosts() -> None:
    five = replace(
        ruled("x", affinity(apart(app="x"), app="x"), 5, HALF), gang=Gang(5, 5, distinct=False)
    )
    result = planned(hosts(4), Standing(), five)
    assert not result.assignments
    assert said(result).startswith(
        "needs 2.5 GPUs in 5 pods at once; 4 of 5 pods fit; needs 0.5 of a GPU;"
        f" podAntiAffinity[0]: one such pod per {S}, and all 4 that could hold it have one"
    )


def test_selectors_are_cut_short() -> None:
    long = {f"key-{n}": "v" * 60 for n in range(20)}
    message = said(planned(hosts(1), Standing(), with_app(near(**long))))
    assert len(message) < 300 and HOST in message
