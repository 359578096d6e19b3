"""Random programs in one container for a minute; ``make fuzz`` for an hour, with sanitizers."""

from pathlib import Path

from tests.native.fuzz import fuzz

SECONDS = 50  # and ten more until everybody has ended


def test_random_programs_never_hold_more_than_the_cap_and_leave_nothing(tmp_path: Path) -> None:
    seen = fuzz(tmp_path, SECONDS, seed=1)
    assert seen.faults == [], "\n".join(seen.faults)
    assert seen.samples > 100
    assert min(seen.processes.values()) > 5, seen
    assert seen.most_mib > 300, seen
