from decimal import Decimal
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.core.quantity import cpu_milli, parse, whole

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
        ("1E", 10**18),
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
    assert whole(text) == ceil(exact)
    assert cpu_milli(text) == ceil(exact * 1000)


@given(number=st.integers(0, 10**9), exponent=st.integers(-30, 30), e=st.sampled_from("eE"))
def test_exponents_are_exact(number: int, exponent: int, e: str) -> None:
    assert parse(f"{number}{e}{exponent}") == number * Fraction(10) ** exponent
