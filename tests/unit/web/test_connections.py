"""Whoever holds most gives way; nobody keeps others out by holding connections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.web.connections import Connections, FullError, HeldConnection


def hold(connections: Connections, *sources: str) -> list[HeldConnection]:
    held = [HeldConnection(source) for source in sources]
    for each in held:
        connections.add(each)
    return held


def test_while_there_is_room_nobody_gives_way() -> None:
    connections = Connections(4, 2)
    hold(connections, "a", "a", "b")
    assert connections.in_the_way("b") is None


def test_of_a_source_that_has_enough_the_oldest_idle_one_gives_way() -> None:
    connections = Connections(10, 2)
    first, second = hold(connections, "a", "a")
    assert connections.in_the_way("a") is first
    first.busy = True
    assert connections.in_the_way("a") is second


def test_when_all_are_taken_the_source_with_most_gives_way_to_another() -> None:
    connections = Connections(4, 4)
    hold(connections, "b")
    first, *_ = hold(connections, "a", "a", "a")
    assert connections.in_the_way("c") is first
    assert connections.in_the_way("b") is first
    assert connections.in_the_way("a") is first


def test_one_that_holds_no_more_than_the_newcomer_keeps_what_is_being_answered() -> None:
    connections = Connections(2, 2)
    for each in hold(connections, "a", "b"):
        each.busy = True
    for source in ("a", "b", "c"):
        with pytest.raises(FullError):
            connections.in_the_way(source)


def test_one_that_holds_more_loses_even_what_is_being_answered() -> None:
    connections = Connections(2, 2)
    first, second = hold(connections, "a", "a")
    first.busy = second.busy = True
    assert connections.in_the_way("b") is first
    with pytest.raises(FullError):
        connections.in_the_way("a")


STEP = st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(0, 40))


@given(st.lists(STEP, max_size=150))
def test_bounds_hold_and_a_source_with_few_always_gets_in(
    steps: list[tuple[str, bool, int]],
) -> None:
    connections = Connections(8, 5)
    there: list[HeldConnection] = []
    for source, busy, closed in steps:
        mine = sum(held.source == source for held in there)
        try:
            victim = connections.in_the_way(source)
        except FullError:
            assert mine > 0, "four sources share eight: who has none gets in"
            continue
        if victim is not None:
            connections.remove(victim)
            connections.remove(victim)
            there.remove(victim)
            assert victim.source == source or mine < 5
        held = HeldConnection(source, busy)
        connections.add(held)
        there.append(held)
        assert len(connections) == len(there) <= 8
        assert all(sum(h.source == s for h in there) <= 5 for s in "abcd")
        if closed < len(there) and closed % 3 == 0:
            connections.remove(there.pop(closed))
