from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_scheduler.core.model.assign import (
    FEW_STEPS,
    SearchBudget,
    Slot,
    SlotChoice,
    assign,
    charge,
    share,
)
from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import cap_mib


def slots(*free_milli: int, usable: int = 1000) -> list[Slot]:
    return [Slot(f, cap_mib(f, usable), usable) for f in free_milli]


def asks(*milli: int, count: int = 1) -> list[DeviceRequest]:
    return [DeviceRequest(i, count, m) for i, m in enumerate(milli)]


def possible(requests: list[DeviceRequest], free: list[Slot]) -> bool:
    """Whether any assignment exists, by trying all."""
    if not requests:
        return True
    first, rest = requests[0], requests[1:]
    for chosen in combinations(range(len(free)), first.count):
        after = list(free)
        for position in chosen:
            milli, mib = share(first, after[position].usable_mib)
            slot = after[position]
            after[position] = Slot(slot.free_milli - milli, slot.free_mib - mib, slot.usable_mib)
        if min(min(s.free_milli, s.free_mib) for s in after) >= 0 and possible(rest, after):
            return True
    return False


def check(requests: list[DeviceRequest], free: list[Slot], found: SlotChoice) -> None:
    """The assignment gives each request its devices, different ones, within what is free."""
    for number, request in enumerate(requests):
        mine = [position for n, position in found if n == number]
        assert len(mine) == len(set(mine)) == request.count
    for position, slot in enumerate(free):
        shares = [share(requests[n], slot.usable_mib) for n, p in found if p == position]
        assert sum(milli for milli, _ in shares) <= slot.free_milli
        assert sum(mib for _, mib in shares) <= slot.free_mib


amounts = st.one_of(
    st.tuples(st.sampled_from([100, 200, 300, 400, 500, 600, 700, 1000]), st.just(0)),
    st.tuples(st.just(0), st.sampled_from([100, 333, 500, 900, 2000])),
)
requests_ = st.lists(
    st.builds(lambda a, n: DeviceRequest(0, n, a[0], a[1]), amounts, st.integers(1, 3)),
    min_size=1,
    max_size=5,
)
slots_ = st.lists(
    st.builds(
        lambda f, usable: Slot(f, cap_mib(f, usable), usable),
        st.integers(0, 10).map(lambda n: n * 100),
        st.sampled_from([400, 1000, 2001]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=400, deadline=None)
@given(requests_, slots_)
@example(asks(600, 400, 500, 500), slots(1000, 1000))
@example(asks(400, 300, 300, 400, 600), slots(1000, 1000))
def test_an_assignment_is_found_exactly_when_one_exists(
    requests: list[DeviceRequest], free: list[Slot]
):
    found = assign(requests, free)
    assert (found is not None) == possible(requests, free)
    if found is not None:
        check(requests, free, found)


def test_what_greed_would_lose_is_found():
    free = slots(1000, 1000)
    requests = asks(400, 400, 300, 300, 600)
    assert sum(r.milli for r in requests) == 2000
    found = assign(requests, free)
    assert found is not None
    check(requests, free, found)


def test_containers_share_a_device_when_that_leaves_least():
    assert assign(asks(500, 200), slots(1000, 700)) == ((0, 1), (1, 1))


def test_the_devices_of_one_request_differ():
    assert assign(asks(300, count=2), slots(1000)) is None
    assert assign(asks(300, count=2), slots(1000, 300)) == ((0, 0), (0, 1))


def test_a_hopeless_case_with_many_equal_parts_ends_soon():
    assert assign(asks(*[510] * 16), slots(*[1000] * 15)) is None
    assert assign(asks(*[340] * 16), slots(*[1000] * 8)) is not None


# Exact fills of five devices. Without remembering hopeless states each needs over 30,000 steps.
TIGHT = [
    (200, 250, 250, 300, 150, 150, 150, 250, 300, 300)
    + (200, 200, 300, 250, 300, 350, 100, 350, 200, 450),
    (300, 150, 350, 200, 400, 200, 300, 100, 150, 300, 150)
    + (250, 150, 250, 300, 450, 300, 150, 250, 200, 100),
]


@pytest.mark.parametrize("parts", TIGHT)
def test_a_tight_fill_is_found_within_the_bound(parts: tuple[int, ...]):
    free = slots(*[1000] * 5)
    requests = asks(*parts)
    found = assign(requests, free)
    assert found is not None
    check(requests, free, found)


def test_devices_that_look_alike_are_tried_once():
    # Only with all six of the first request on the roomy devices do the 18 others find a place.
    requests = [DeviceRequest(0, 6, 600), DeviceRequest(1, 18, 300)]
    free = slots(*[700] * 12, *[900] * 6)
    found = assign(requests, free)
    assert found is not None
    check(requests, free, found)


def test_a_budget_bounds_the_searches_of_many_nodes_together():
    budget = SearchBudget(steps=1000)
    hopeless = [DeviceRequest(i, 1, 340 + 2 * i) for i in range(16)]
    for _ in range(5):
        assert assign(hopeless, slots(*range(990, 997)), budget) is None
    assert -5 * FEW_STEPS - 5 <= budget.steps <= 0


def test_a_request_in_mib_takes_the_share_of_the_device_it_lands_on():
    assert share(DeviceRequest(0, 1, 0, mib=1024), 4096) == (0, 1024)
    assert charge(DeviceRequest(0, 1, 0, mib=1024), 4096) == 250
    assert share(DeviceRequest(0, 1, 0, mib=1025), 4096) == (0, 1025)
    assert charge(DeviceRequest(0, 1, 0, mib=1025), 4096) == 251
    assert share(DeviceRequest(0, 1, 0, mib=4097), 4096)[0] > 1000
