"""What is gone stays gone."""

from gpu_scheduler.state.jobs.departed import Departed


def test_news_of_what_is_gone_for_good_are_old_whatever_their_version() -> None:
    departed = Departed()
    departed.note("a")
    assert departed.outdates("a", 10**18)
    assert not departed.outdates("b", 1)


def test_what_may_come_back_is_seen_again_in_a_later_version() -> None:
    departed = Departed()
    departed.note("a", 5)
    assert departed.outdates("a", 5)
    assert not departed.outdates("a", 6)


def test_how_many_are_remembered_is_bounded_and_the_oldest_are_forgotten() -> None:
    departed = Departed(most=3)
    for uid in ("a", "b", "c", "a", "d"):
        departed.note(uid)
    assert [uid for uid in "abcd" if departed.outdates(uid, 1)] == ["a", "c", "d"]
