import pytest

from gpu_scheduler.core.model import fit
from gpu_scheduler.core.model.cluster import NodeInfo, Taint
from gpu_scheduler.core.model.request import NodeFilter, NodeSelectorTerm, Toleration
from gpu_scheduler.core.model.requirement import Requirement, requirement_holds

NODE = NodeInfo("dell-0", labels={"disk": "ssd", "cores": "64", "zone": "", "disks": "1_000"})


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (Requirement("disk", "In", ("hdd", "ssd")), True),
        (Requirement("disk", "In", ("hdd",)), False),
        (Requirement("gone", "In", ("ssd",)), False),
        (Requirement("disk", "NotIn", ("hdd",)), True),
        (Requirement("disk", "NotIn", ("ssd",)), False),
        (Requirement("gone", "NotIn", ("ssd",)), True),
        (Requirement("disk", "Exists"), True),
        (Requirement("zone", "Exists"), True),
        (Requirement("gone", "Exists"), False),
        (Requirement("gone", "DoesNotExist"), True),
        (Requirement("zone", "DoesNotExist"), False),
        (Requirement("cores", "Gt", ("63",)), True),
        (Requirement("cores", "Gt", ("64",)), False),
        (Requirement("cores", "Lt", ("65",)), True),
        (Requirement("cores", "Lt", ("64",)), False),
        (Requirement("gone", "Lt", ("64",)), False),
        (Requirement("cores", "Gt", ("-1",)), True),
        (Requirement("disks", "Gt", ("1",)), False),
        (Requirement("cores", "Lt", ("1_000",)), False),
        (Requirement("cores", "Lt", (" 65",)), False),
        (Requirement("disk", "Gt", ("1",)), False),
        (Requirement("cores", "Gt", ("many",)), False),
        (Requirement("cores", "Gt", ()), False),
        (Requirement("disk", "Like", ("ssd",)), False),
    ],
)
def test_a_requirement_holds_as_kubernetes_says(requirement: Requirement, holds: bool):
    assert requirement_holds(requirement, NODE.labels) is holds


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        (None, True),
        ((), False),
        ((NodeSelectorTerm(),), False),
        ((NodeSelectorTerm(labels=(Requirement("disk", "Exists"),)),), True),
        (
            (
                NodeSelectorTerm(
                    labels=(Requirement("disk", "Exists"), Requirement("gone", "Exists"))
                ),
            ),
            False,
        ),
        ((NodeSelectorTerm(), NodeSelectorTerm(labels=(Requirement("disk", "Exists"),))), True),
        ((NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("dell-0",)),)),), True),
        ((NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("dell-1",)),)),), False),
        ((NodeSelectorTerm(fields=(Requirement("metadata.name", "NotIn", ("dell-0",)),)),), False),
        (
            (
                NodeSelectorTerm(
                    labels=(Requirement("gone", "Exists"),),
                    fields=(Requirement("metadata.name", "In", ("dell-0",)),),
                ),
            ),
            False,
        ),
    ],
)
def test_one_term_of_the_affinity_must_match(
    terms: tuple[NodeSelectorTerm, ...] | None, matches: bool
):
    assert fit.matches(NodeFilter(terms=terms), NODE) is matches


def test_every_label_of_the_selector_must_match():
    assert fit.matches(NodeFilter(selector=(("disk", "ssd"), ("cores", "64"))), NODE)
    assert not fit.matches(NodeFilter(selector=(("disk", "ssd"), ("cores", "32"))), NODE)
    assert not fit.matches(NodeFilter(selector=(("gone", ""),)), NODE)


TAINT = Taint("gpu", "a100", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("gpu", "Equal", "a100", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "a30", "NoSchedule"), False),
        (Toleration("gpu", "", "a100", "NoSchedule"), True),
        (Toleration("gpu", "Exists", "", "NoSchedule"), True),
        (Toleration("other", "Exists", "", "NoSchedule"), False),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoExecute"), False),
        (Toleration("gpu", "Near", "a100"), False),
    ],
)
def test_a_toleration_covers_a_taint_as_kubernetes_says(toleration: Toleration, tolerated: bool):
    node = NodeInfo("dell-0", taints=(TAINT,))
    assert fit.tolerates(toleration, TAINT) is tolerated
    assert fit.matches(NodeFilter(tolerations=(toleration,)), node) is tolerated


@pytest.mark.parametrize(
    ("operator", "bound", "value", "tolerated"),
    [
        ("Gt", "950", "800", False),
        ("Gt", "750", "800", True),
        ("Gt", "800", "800", False),
        ("Lt", "950", "800", True),
        ("Lt", "750", "800", False),
        ("Lt", "0", "-5", True),
        ("Gt", "-9", "-5", True),
        ("Gt", "1", "0800", False),
        ("Gt", "+1", "800", False),
        ("Gt", "much", "800", False),
        ("Gt", "1", "", False),
        ("Lt", "9" * 20, "1", False),  # no number of 64 bits
        ("Lt", "9223372036854775807", "1", True),
        ("Lt", "9223372036854775808", "1", False),
    ],
)
def test_tolerations_compare_numbers_as_kubernetes_says(
    operator: str, bound: str, value: str, tolerated: bool
):
    toleration = Toleration("sla", operator, bound, "NoSchedule")
    assert fit.tolerates(toleration, Taint("sla", value, "NoSchedule")) is tolerated


def test_every_taint_needs_a_toleration():
    node = NodeInfo("dell-0", taints=(TAINT, Taint("team", "b", "NoExecute")))
    where = NodeFilter(tolerations=(Toleration("gpu", "Exists"),))
    assert fit.untolerated(where, node) == Taint("team", "b", "NoExecute")


def test_a_closed_node_still_matches():
    assert fit.matches(NodeFilter(), NodeInfo("dell-0", unschedulable="is cordoned"))
