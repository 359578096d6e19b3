"""Nobody's heap of work comes before another's first item."""

from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.limits.turns import Turns

PARTIES = st.sampled_from("abc")


def drain(turns: Turns[str, int]) -> list[tuple[str, int]]:
    taken = []
    while (found := turns.take()) is not None:
        taken.append(found)
    return taken


def test_parties_take_turns_and_each_keeps_its_order() -> None:
    turns: Turns[str, int] = Turns()
    for number in range(4):
        turns.add("greedy", number)
    turns.add("late", 9)
    taken = drain(turns)
    assert taken == [("greedy", 0), ("late", 9), ("greedy", 1), ("greedy", 2), ("greedy", 3)]
    assert not turns and len(turns) == 0


def test_a_party_with_enough_under_way_is_passed_over_until_one_is_done() -> None:
    turns: Turns[str, int] = Turns(1)
    for number in range(2):
        turns.add("greedy", number)
    assert turns.take() == ("greedy", 0)
    turns.add("late", 9)
    assert turns.take() == ("late", 9)
    assert turns.take() is None and len(turns) == 1
    turns.done("greedy")
    assert turns.take() == ("greedy", 1)


@given(st.lists(st.one_of(PARTIES, st.just(None)), max_size=60))
def test_everything_comes_once_and_nobody_waits_longer_than_a_round(
    steps: list[str | None],
) -> None:
    turns: Turns[str, int] = Turns()
    there: dict[str, list[int]] = {}
    passed_over: dict[str, int] = {}
    for number, step in enumerate(steps):
        if step is not None:
            turns.add(step, number)
            there.setdefault(step, []).append(number)
            continue
        found = turns.take()
        assert (found is None) == (not there)
        if found is None:
            continue
        party, item = found
        assert there[party].pop(0) == item
        there = {each: items for each, items in there.items() if items}
        passed_over.pop(party, None)
        for other in there:
            if other != party:
                passed_over[other] = passed_over.get(other, 0) + 1
                assert passed_over[other] < 3
    assert len(turns) == sum(map(len, there.values()))
