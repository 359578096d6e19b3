"""Hostile values, and objects spoiled with them: what no API server's validation rules out.

A spoiled object is a good one in which a few places hold something else: another type, nothing,
too much, another object's name. Strategies of whole kinds are in modules of their own beside this
one; all of them draw JSON, which the code under test decodes itself.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

Obj = dict[str, Any]

LONG = "x" * 5_000

texts = st.sampled_from(
    [
        "",
        " ",
        "a",
        "0",
        "-1",
        "null",
        "true",
        "../..",
        "\u0000",
        "\u202eevil",
        "\U0001f4a3",
        "e\u0301",
        "{",
        "[]",
        '{"v":1}',
        "a,b,,c",
        "team-a",
        "good-0",
        "2026-02-30T25:61:61Z",
        "9999-12-31T23:59:59Z",
        LONG,
    ]
)

integers = st.sampled_from(
    [0, 1, -1, 2, 999, 1000, 1001, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1]
)

# What resource.Quantity takes, and with it the API server; also in places where nobody checks.
quantities = st.sampled_from(
    [
        "0",
        "1",
        "1m",
        "0.1",
        "-1",
        "-5Gi",
        "1Ki",
        "1Mi",
        "128Gi",
        "1e3",
        "1E3",
        "9223372036854775807",
        "9223372036854775808",
        "9E",
        "10P",
        "8Ei",
        "1e30",
        "1e-30",
        "100n",
        "1u",
        "0.0000001",
        "99999999999999999999999999999999",
    ]
)

no_quantities = st.sampled_from(["", "NaN", "inf", "1 Gi", "0x10", "\u0661", "1.", ".", "--1"])

anything = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.sampled_from([0.5, -0.0, 1e40, 1e300, 1e-300]),
    texts,
    quantities,
    no_quantities,
    st.sampled_from([[], {}, [None], [{}], {"": ""}, {"a": {"a": {"a": []}}}, [1, "a", None]]),
)

Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place in a JSON value, the value itself left out."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inside:
        yield (*at, key)
        if isinstance(each, dict | list):
            yield from places(each, (*at, key))


def put(value: Any, at: Place, new: Any) -> None:
    """Put ``new`` at a place of a JSON value; a place that is no more is left alone."""
    for key in at[:-1]:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(value, dict) or (
        isinstance(value, list) and isinstance(at[-1], int) and at[-1] < len(value)
    ):
        value[at[-1]] = new


# What an API server itself sets, and never wrongly: without it an object has no place in a watch.
_KEPT = {
    ("metadata",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("metadata", "uid"),
    ("metadata", "resourceVersion"),
}


@st.composite
def spoiled(
    draw: st.DrawFn,
    good: Obj,
    keep: Callable[[Place], bool] = lambda at: False,
    values: st.SearchStrategy[Any] = anything,
) -> Obj:
    """``good`` with one to three places spoiled, none of them one that ``keep`` names."""
    found = [at for at in places(good) if at not in _KEPT and not keep(at)]
    bad = copy.deepcopy(good)
    for at in draw(st.lists(st.sampled_from(found), min_size=1, max_size=3)):
        how = draw(st.sampled_from(["value", "value", "absent", "twice"]))
        if how == "absent":
            _remove(bad, at)
        elif how == "twice":
            _repeat(bad, at)
        else:
            put(bad, at, draw(values))
    return bad


def _remove(value: Any, at: Place) -> None:
    for key in at[:-1]:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(value, dict) and isinstance(at[-1], str):
        value.pop(at[-1], None)


def _repeat(value: Any, at: Place) -> None:
    """A list with everything in it twice; what is no list stays."""
    for key in at:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(value, list):
        value.extend(copy.deepcopy(value))
