"""When a reader is expected."""

from gpu_scheduler.web.foreseen import LEAST_SECONDS, MOST_SECONDS, READERS, Foreseen


def test_one_who_reads_regularly_is_expected_after_as_long_again() -> None:
    foreseen = Foreseen()
    foreseen.read("prometheus", 100.0)
    assert foreseen.next(100.0) is None
    foreseen.read("prometheus", 130.0)
    assert foreseen.next(130.0) == 160.0
    assert foreseen.next(160.0) is None, "it did not come"


def test_two_who_read_in_turn_are_both_expected() -> None:
    foreseen = Foreseen()
    for now, reader in ((100.0, "a"), (111.0, "b"), (130.0, "a"), (141.0, "b")):
        foreseen.read(reader, now)
    assert foreseen.next(141.0) == 160.0
    assert foreseen.next(160.0) == 171.0


def test_one_who_reads_too_often_or_too_seldom_is_not_expected() -> None:
    for gap in (LEAST_SECONDS / 2, MOST_SECONDS + 1):
        foreseen = Foreseen()
        foreseen.read("a", 100.0)
        foreseen.read("a", 100.0 + gap)
        assert foreseen.next(100.0 + gap) is None


def test_strangers_do_not_grow_it() -> None:
    foreseen = Foreseen()
    for now in range(10 * READERS):
        foreseen.read(f"stranger-{now}", float(now))
    foreseen.read("stranger-0", 10.0 * READERS)
    assert foreseen.next(10.0 * READERS) is None, "the first of them is forgotten"
