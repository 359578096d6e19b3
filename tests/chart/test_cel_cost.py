"""What is found out about expressions of CEL, of small ones."""

import pytest
from tests.chart.cel_cost import Walker
from tests.chart.cel_syntax import parse

CONTAINERS, ENV = "object.spec.containers", "object.spec.containers[].env"
MANY = f"size({CONTAINERS}) > 200 ? ['too many'] : []"
ALL_ENV = (
    f"[{CONTAINERS}.map(c, has(c.env) ? size(c.env) : 0).sum()].filter(n, n > 2000).map(n, 'x')"
)
BOUNDED = f"({MANY}) + {ALL_ENV} != [] || "


def walker(expression: str, **variables: str) -> Walker:
    """After it has gone through the expression twice, as for a policy."""
    made = Walker({}, {name: parse(each) for name, each in variables.items()})
    for _ in range(2):
        made.walked.clear()
        made.cost_of(parse(expression))
    return made


def cost(expression: str) -> float:
    return walker(BOUNDED + expression).counted()


@pytest.mark.parametrize(
    "expression",
    [
        f"{CONTAINERS}.exists(c, has(c.env) && c.env.all(e, e.name != 'x'))",
        f"[{CONTAINERS}].all(all, all.filter(c, c.env.exists(e, true)) == [])",
        "lists.range(variables.all.size()).exists(i, variables.all[i].env.map(e, e.name) != [])",
        "(has(object.x) ? object.x + variables.all : variables.all).exists(c, c.env.all(e, true))",
    ],
)
def test_a_list_is_known_whatever_it_is_called(expression: str) -> None:
    found = walker(expression, all=CONTAINERS)
    assert {CONTAINERS, ENV} <= found.walked
    assert not any(map(found.is_bound, (CONTAINERS, ENV)))


def test_a_bound_is_what_is_refused() -> None:
    found = walker(f"{BOUNDED}{CONTAINERS}.exists(c, c.env.exists(e, true))")
    assert {path: found.least[path] for path in (CONTAINERS, ENV)} == {CONTAINERS: 200, ENV: 2000}
    assert not walker(f"{CONTAINERS}.size() > 0 ? true : false").least


def test_a_list_of_lists_costs_what_all_have_together() -> None:
    inner = cost(f"{CONTAINERS}.exists(c, c.env.exists(e, e.name == 'x'))")
    assert inner < 2 * cost(f"{CONTAINERS}.exists(c, c.env.exists(e, true))")
    assert inner < 60_000


def test_a_walk_in_the_walk_of_another_list_costs_the_product() -> None:
    quadratic = f"{CONTAINERS}.all(c, {CONTAINERS}.exists(d, d.name == c.name))"
    assert cost(quadratic) > 200 * 200 * 5


@pytest.mark.parametrize("wrong", ["a.b(", "a ? b", "[1, 2", "a b", "'x", "a..b.", ") + 1"])
def test_what_is_no_expression_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):
        parse(wrong)
