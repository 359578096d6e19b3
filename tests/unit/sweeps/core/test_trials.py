"""Trial i has the same values wherever and whenever it is asked for."""

import subprocess
import sys
import tracemalloc
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.sweeps.core.builders import GRID, MIXED, listed, search

from gpu_scheduler.api.search import (
    Constant,
    IntRange,
    LogUniform,
    Space,
    Uniform,
    Values,
    canonical,
    text_of,
    values_of,
)
from gpu_scheduler.sweeps.core.trials import NoSuchTrialError, draw, parameters_of

GOLDEN = {
    ("random", 7, 0): (32, 0.4350404731183115, 2, 0.003062444475768216, "adam"),
    ("random", 7, 1): (128, 0.49430621377174266, 6, 0.0032581078227329557, "adam"),
    ("random", 8, 0): (64, 0.06144744744535896, 10, 0.02092814129115666, "adam"),
    ("random", 7, 99_999): (32, 0.26279135189986275, 8, 0.045268073126520536, "adam"),
    ("halton", 7, 0): (64, 0.13473595092663382, 8, 0.0021094620642795694, "adam"),
    ("halton", 7, 1): (64, 0.30140261759330045, 10, 0.007863217544051108, "adam"),
    ("halton", 8, 0): (64, 0.3196344538132021, 6, 1.3616676169130007e-05, "adam"),
    ("halton", 7, 99_999): (32, 0.18048044561183874, 6, 0.00011515864788676098, "adam"),
}


@pytest.mark.parametrize("key", GOLDEN, ids=str)
def test_values_are_those_of_every_earlier_version(key):
    algorithm, seed, trial = key
    found = parameters_of(search(algorithm, seed=seed), trial)
    assert list(found) == ["batch_size", "dropout", "layers", "lr", "opt"]
    assert tuple(found.values()) == GOLDEN[key]


def test_a_grid_goes_through_the_product_of_the_values_in_the_order_of_the_names():
    wanted = [{"batch": b, "lr": lr} for b, lr in product((16, 32, 48, 64), (0.1, 0.01, 0.001))]
    assert [parameters_of(search("grid", GRID), trial) for trial in range(12)] == wanted
    assert len({tuple(each.items()) for each in wanted}) == 12


def test_the_order_in_which_parameters_are_written_changes_nothing():
    turned = Space(dict(reversed(list(MIXED.parameters.items()))))
    for algorithm in ("random", "halton"):
        for trial in range(20):
            a = parameters_of(search(algorithm), trial)
            b = parameters_of(search(algorithm, turned), trial)
            assert list(a.items()) == list(b.items())


def test_other_processes_have_the_same_values_whatever_their_hash_seed():
    script = (
        "from tests.unit.sweeps.core.builders import search;"
        "from gpu_scheduler.sweeps.core.trials import parameters_of;"
        "print([parameters_of(search(a), t) for a in ('random','halton') for t in range(5)])"
    )
    root = Path(__file__).parents[4]
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONPATH": f"{root}:{root / 'operator'}", "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    here = [parameters_of(search(a), t) for a in ("random", "halton") for t in range(5)]
    assert said == {f"{here}\n"}


def test_another_parameter_leaves_random_values_of_the_others_as_they_were():
    more = Space(MIXED.parameters | {"aaa": Uniform(0, 1)})
    before, after = (parameters_of(search("random", s), 3) for s in (MIXED, more))
    assert {name: after[name] for name in before} == before


def test_a_list_is_taken_as_it_is():
    trials = ({"lr": 0.1, "batch": 8}, {"batch": 16, "lr": 0.2})
    assert [parameters_of(listed(*trials), i) for i in (0, 1)] == list(trials)
    assert list(parameters_of(listed(*trials), 0)) == ["batch", "lr"]


@pytest.mark.parametrize(("what", "trial"), [("grid", 12), ("grid", -1), ("random", -1)])
def test_there_is_no_trial_outside_the_search(what, trial):
    with pytest.raises(NoSuchTrialError):
        parameters_of(search(what, GRID), trial)


def test_nobody_knows_the_values_of_an_adaptive_search_beforehand():
    with pytest.raises(NoSuchTrialError):
        parameters_of(search("tpe"), 0)


def test_a_hundred_thousand_trials_store_nothing():
    wide = search("random", Space({f"p{i}": Uniform(0, 1) for i in range(20)}))
    parameters_of(wide, 0)
    tracemalloc.start()
    for trial in range(0, 100_000, 1000):
        parameters_of(wide, trial)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000  # bytes: one set of parameters at a time


FINITE = st.floats(-1e300, 1e300)
UNIT = st.floats(0, 1, exclude_max=True)


@given(st.tuples(FINITE, FINITE).map(sorted), UNIT)
@settings(max_examples=500)
def test_a_uniform_value_is_never_outside_its_bounds(bounds, u):
    low, high = bounds
    assert low <= draw(Uniform(low, high), u) <= high


@given(st.tuples(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300)).map(sorted), UNIT)
@settings(max_examples=500)
def test_a_logarithmic_value_is_never_outside_its_bounds(bounds, u):
    low, high = bounds
    assert low <= draw(LogUniform(low, high), u) <= high


@given(st.integers(-(2**53), 2**53), st.integers(0, 2**53), st.integers(1, 1000), UNIT)
@settings(max_examples=500)
def test_an_integer_is_a_step_of_its_range(low, width, step, u):
    value = draw(IntRange(low, low + width, step), u)
    assert isinstance(value, int)
    assert low <= value <= low + width
    assert (value - low) % step == 0


@pytest.mark.parametrize("algorithm", ["random", "halton"])
def test_every_value_of_a_choice_and_of_a_range_comes_equally_often(algorithm):
    space = Space({"a": Values(("x", "y", "z")), "b": IntRange(1, 4), "c": Uniform(0, 1)})
    found = [parameters_of(search(algorithm, space), i) for i in range(6000)]
    for name, count in (("a", 3), ("b", 4)):
        values = [each[name] for each in found]
        assert {values.count(v) // (600 // count) for v in set(values)} <= {9, 10}
        assert len(set(values)) == count
    assert 0.48 < sum(float(each["c"]) for each in found) / 6000 < 0.52


def test_each_order_of_magnitude_is_as_likely():
    space = Space({"lr": LogUniform(1e-4, 1)})
    found = [float(parameters_of(search("halton", space), i)["lr"]) for i in range(1000)]
    counts = [sum(10.0**k <= v < 10.0 ** (k + 1) for v in found) for k in range(-4, 0)]
    assert all(245 <= count <= 255 for count in counts)


def test_halton_covers_a_square_more_evenly_than_chance():
    space = Space({"x": Uniform(0, 1), "y": Uniform(0, 1)})

    def empty(algorithm):
        cells = {
            (int(float(p["x"]) * 16), int(float(p["y"]) * 16))
            for p in (parameters_of(search(algorithm, space), i) for i in range(512))
        }
        return 256 - len(cells)

    assert empty("halton") < empty("random") / 2


def test_trials_of_two_seeds_differ():
    for algorithm in ("random", "halton"):
        one, two = (parameters_of(search(algorithm, seed=seed), 5) for seed in (1, 2))
        assert one != two


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (GRID, 12),
        (MIXED, None),
        (Space({}), 1),
        (Space({"a": IntRange(1, 10, 4), "b": Constant(1)}), 3),
    ],
)
def test_the_size_of_a_grid_is_the_product(space, size):
    assert space.grid_size() == size


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-5, "1e-05"), (0.1, "0.1"), (32, "32"), (True, "true"), (False, "false"), ("a b", "a b")],
)
def test_values_have_one_text(value, text):
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (32.0, 32),
        (0.5, 0.5),
        (1e300, 1e300),
        (10**20, 1e20),
        (2**63 - 1, 2**63 - 1),
        (-(2**63) - 1, -(2.0**63)),
        (True, True),
        ("1.0", "1.0"),
    ],
)
def test_a_value_is_what_json_leaves_of_it(value, same):
    assert canonical(value) == same
    assert type(canonical(value)) is type(same)


def test_searched_are_those_that_are_not_constant():
    assert MIXED.searched == ("batch_size", "dropout", "layers", "lr")
    assert values_of({"b": 1, "a": 2}, ("a", "b")) == (2, 1)
