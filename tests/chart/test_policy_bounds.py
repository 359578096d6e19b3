"""Whatever an object contains, the API server pays for what our policies ask (docs/adr/0059)."""

import pytest
from tests.chart.cel_syntax import Call, Literal, Made, Node, Select
from tests.chart.policies import Policy, bound, policies, walkers

from gpu_scheduler.jobs import share_size

MOST_OF_ONE = 1_000_000  # units for an expression: PerCallLimit of k8s.io/apiserver/pkg/apis/cel
MOST_OF_ALL = 10_000_000  # for the variables, validations and messages of a policy
LEFT_TO_THE_OPERATOR = {"sweeps"}  # which judges the same, and more


@pytest.fixture(params=sorted(policies()))
def policy(request: pytest.FixtureRequest) -> Policy:
    return policies()[request.param]


def test_what_is_walked_is_bounded(policy: Policy) -> None:
    for walker in walkers(policy.name):
        unbound = [path for path in sorted(walker.walked) if not walker.is_bound(path)]
        assert not unbound, f"{walker.facts}: nothing says how long these may be: {unbound}"


def test_no_list_makes_it_cost_too_much(policy: Policy) -> None:
    for walker in walkers(policy.name):
        total = 0.0
        for where, expression in policy.expressions.items():
            walker.cost_of(expression)
            cost = walker.counted()
            assert cost < MOST_OF_ONE, f"{walker.facts}: {where}: {cost:,.0f}"
            total += cost if where in policy.rest else 0
        assert total < MOST_OF_ALL, walker.facts


def test_a_text_is_no_way_past_one_that_fails_open(policy: Policy) -> None:
    if not policy.fails_open or policy.name in LEFT_TO_THE_OPERATOR:
        return
    for walker in walkers(policy.name):
        for where, condition in policy.conditions.items():
            cost = walker.cost_of(condition)
            assert cost < MOST_OF_ONE, f"{walker.facts}: {where}: {cost:,.0f}"
        # An expression that costs too much ends there; the others go on while anything is left.
        spent = sum(min(walker.cost_of(each), MOST_OF_ONE) for each in policy.rest.values())
        assert spent < MOST_OF_ALL, f"{walker.facts}: {spent:,.0f}"


def test_three_policies_fail_open() -> None:
    fail_open = {name for name, each in policies().items() if each.fails_open}
    assert fail_open == {"claims", "endings", "sweeps"}


def test_the_function_and_the_policy_take_pods_of_one_size() -> None:
    lists = {f"object.{path}": most for path, most in share_size.LISTS.items()}
    for path, most in share_size.IN_CONTAINERS.items():
        lists |= {f"object.spec.{kind}[].{path}": most for kind in ("containers", "initContainers")}
    paths = "object.spec.containers[].volumeMounts[].mountPath"
    words = "object.metadata.annotations[]"
    lists |= {paths: share_size.MOST_OF_PATHS, words: share_size.MOST_OF_A_WORD}
    for policy in ("shares", "share-requests"):
        assert {path: bound(policy, path) for path in lists} == lists
        (node,) = (each for name, each in policies()[policy].variables.items() if name == "tooMuch")
        assert literals(node) >= {
            word.removeprefix("gpu-scheduler.io/") for word in share_size.WORDS
        }


def literals(node: Node) -> set[str]:
    """All texts in an expression."""
    match node:
        case Literal(value=str(text)):
            return {text}
        case Call(arguments=parts) | Made(parts=parts):
            return set().union(*map(literals, parts)) if parts else set()
        case Select(of=of):
            return literals(of)
        case _:
            return set()
