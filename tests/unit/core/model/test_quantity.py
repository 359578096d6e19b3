from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.core.model.quantity import (
    MOST,
    MOST_CPU_MILLI,
    asked,
    asked_cpu_milli,
    cpu_milli,
    parse,
    whole,
)

UNITS = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("500m", 500),
        ("1.5", 1500),
        ("2", 2000),
        ("100n", 1),
        ("0", 0),
        (".5", 500),
        ("5.", 5000),
        ("1e3", 1_000_000),
        ("1E-3", 1),
        ("0.0001", 1),
        ("2k", 2_000_000),
        ("-1.0005", -1001),
    ],
)
def test_cpu_is_milli_rounded_up(text: str, milli: int) -> None:
    assert cpu_milli(text) == milli


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2Gi", 2 << 30),
        ("128M", 128_000_000),
        ("1.5Ki", 1536),
        ("1e3", 1000),
        ("1T", 10**12),
        ("100m", 1),
        ("110", 110),
        ("0.1Ki", 103),
        (".5k", 500),
        ("-1Gi", -(1 << 30)),
    ],
)
def test_memory_is_bytes_rounded_up(text: str, size: int) -> None:
    assert whole(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "m",
        "1 Gi",
        "1gi",
        "0x10",
        "1e",
        "nan",
        "1,5",
        "--1",
        "1e9999",
        "1\n",
        "20GB",
        "1K",
        "1Gie3",
        "٣",
    ],
)
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse(text)


@given(
    number=st.decimals(min_value=0, max_value=10**9, places=4, allow_nan=False),
    unit=st.sampled_from(sorted(UNITS)),
)
def test_any_number_with_any_unit_is_exact(number: Decimal, unit: str) -> None:
    exact = Fraction(number) * UNITS[unit]
    text = f"{number:f}{unit}"
    assert parse(text) == exact
    assert whole(text) == min(MOST, ceil(exact))
    assert cpu_milli(text) == min(MOST_CPU_MILLI, ceil(exact * 1000))


@given(number=st.integers(0, 10**9), exponent=st.integers(-30, 30), e=st.sampled_from("eE"))
def test_exponents_are_exact(number: int, exponent: int, e: str) -> None:
    assert parse(f"{number}{e}{exponent}") == number * Fraction(10) ** exponent


HUGE = ["10P", "9E", "16Ei", "9223372036854775807", "1e300", "9" * 400]


@pytest.mark.parametrize("text", HUGE)
def test_what_is_beyond_all_measure_saturates_and_its_sums_fit_into_64_bits(text: str) -> None:
    assert (cpu_milli(text), whole(text)) == (MOST_CPU_MILLI, MOST)
    assert (cpu_milli(f"-{text}"), whole(f"-{text}")) == (-MOST_CPU_MILLI, -MOST)
    assert 100_000 * MOST < 1 << 63
    assert MOST_CPU_MILLI << 17 < 1 << 63


@pytest.mark.parametrize("text", ["", "much", "1 Gi", "9" * 5000])
def test_a_pod_that_asks_for_what_cannot_be_read_asks_for_the_most(text: str) -> None:
    assert (asked_cpu_milli(text), asked(text)) == (MOST_CPU_MILLI, MOST)


def test_a_pod_cannot_ask_for_less_than_nothing() -> None:
    assert (asked_cpu_milli("-4"), asked("-1Gi")) == (0, 0)
