"""So often a second for long, more for a while, and a bounded memory of who did."""

from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.limits.rate_limiter import RateLimiter


def test_a_rest_gives_the_burst_back_and_no_more() -> None:
    allowances: RateLimiter[str] = RateLimiter(per_second=10, burst=3)
    assert [allowances.spend("a", 0) for _ in range(4)] == [True] * 3 + [False]
    assert allowances.is_spent("a", 0) and not allowances.is_spent("b", 0)
    assert [allowances.spend("a", 0.2) for _ in range(3)] == [True] * 2 + [False]
    assert [allowances.spend("a", 60) for _ in range(4)] == [True] * 3 + [False]


def test_who_has_rested_is_forgotten_and_who_has_not_is_remembered() -> None:
    allowances: RateLimiter[str] = RateLimiter(per_second=1, burst=2, forget_above=4)
    for name in ("rested", "too"):
        allowances.spend(name, 0)
    assert allowances.spend("spent", 100) and allowances.spend("spent", 100)
    allowances.spend("d", 100)
    allowances.spend("e", 100)
    assert len(allowances) == 3
    assert allowances.is_spent("spent", 100)


@given(st.lists(st.integers(0, 200), max_size=400))
def test_a_flood_of_parties_is_not_remembered_in_full(parties: list[int]) -> None:
    allowances: RateLimiter[int] = RateLimiter(per_second=1, burst=1, forget_above=10)
    for party in parties:
        allowances.spend(party, 0.0)
        assert len(allowances) <= 10


@given(st.lists(st.floats(0, 5), max_size=200))
def test_nobody_gets_more_than_rate_and_burst(pauses: list[float]) -> None:
    allowances: RateLimiter[str] = RateLimiter(per_second=2, burst=5)
    now, spent = 0.0, 0
    for pause in pauses:
        now += pause
        spent += allowances.spend("a", now)
        assert spent <= 5 + 2 * now + 1e-6
