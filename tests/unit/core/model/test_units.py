from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.core.model.units import cap_mib, gpu_from_milli, milli_for_mib, milli_from_gpu


@pytest.mark.parametrize(
    ("gpu", "milli"),
    [(0.5, 500), ("0.125", 125), (2, 2000), (Decimal("0.001"), 1), (0.1 + 0.2 - 0.2, None)],
)
def test_gpus_become_milli_without_floats(gpu: float | str | Decimal, milli: int | None):
    if milli is None:
        with pytest.raises(ValueError, match="three decimals"):
            milli_from_gpu(gpu)
    else:
        assert milli_from_gpu(gpu) == milli


def test_what_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="'half' is not a number"):
        milli_from_gpu("half")


@pytest.mark.parametrize(("milli", "text"), [(1800, "1.8"), (0, "0"), (1000, "1"), (-250, "-0.25")])
def test_milli_are_written_without_trailing_zeros(milli: int, text: str):
    assert gpu_from_milli(milli) == text


@given(st.lists(st.integers(1, 1000), max_size=20), st.integers(1, 200_000))
def test_caps_of_shares_within_a_device_never_sum_above_its_memory(shares: list[int], usable: int):
    taken: list[int] = []
    for milli in shares:
        if sum(taken) + milli <= 1000:
            taken.append(milli)
    assert sum(cap_mib(m, usable) for m in taken) <= usable


@given(st.integers(1, 200_000), st.data())
def test_the_share_for_an_amount_of_memory_is_the_smallest_that_holds_it(
    usable: int, data: st.DataObject
):
    mib = data.draw(st.integers(1, usable))
    milli = milli_for_mib(mib, usable)
    assert milli * usable >= mib * 1000 > (milli - 1) * usable
    assert 1 <= milli <= 1000
