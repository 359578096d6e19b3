"""Memory as Kubernetes writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.api.quantity import bytes_from_quantity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1048576", 1 << 20),
        ("20Gi", 20 << 30),
        ("1.5Gi", 3 << 29),
        ("1Ki", 1024),
        ("1k", 1000),
        ("1e9", 10**9),
        ("1E3", 1000),
        ("1E", 10**18),
        ("2Ei", 2 << 60),
        ("1500m", 2),
        (".5k", 500),
        ("-1Gi", -(1 << 30)),
    ],
)
def test_bytes(text, expected):
    assert bytes_from_quantity(text) == expected


@pytest.mark.parametrize(
    "text", ["", "Gi", "20GB", "1 Gi", "1ki", "1K", "1Gie3", "1e", "1e9999", "٣"]
)
def test_what_is_no_quantity(text):
    with pytest.raises(ValueError, match="not a quantity"):
        bytes_from_quantity(text)


@given(st.integers(0, 10**12))
def test_plain_numbers_are_bytes(number):
    assert bytes_from_quantity(str(number)) == number
