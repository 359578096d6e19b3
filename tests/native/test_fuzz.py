"""Random programs in one container for a minute; ``make fuzz`` for an hour, with sanitizers."""

from pathlib import Path

import pytest
from tests.native.fuzz import FuzzResult, fuzz

SECONDS = 40  # and ten more until everybody has ended
SECONDS_OF_ONE = 10
PHYSICAL, POOLS_AND_CONTEXTS = 6, 10  # kinds of programs/fuzz.c


def test_random_programs_never_hold_more_than_the_cap_and_leave_nothing(tmp_path: Path) -> None:
    def enough(seen: FuzzResult) -> bool:
        often = seen.samples > 100 and seen.compared > 5
        return often and min(seen.processes.values()) > 5 and seen.most_mib > 300

    seen = fuzz(tmp_path, SECONDS, seed=1, enough=enough)
    assert seen.faults == [], "\n".join(seen.faults)
    assert enough(seen), seen


@pytest.mark.parametrize("kind", [PHYSICAL, POOLS_AND_CONTEXTS])
def test_handles_that_are_used_again_are_charged_anew(tmp_path: Path, kind: int) -> None:
    def enough(seen: FuzzResult) -> bool:
        return seen.compared > 5

    seen = fuzz(tmp_path, SECONDS_OF_ONE, seed=4, kind=kind, compared=1, enough=enough)
    assert seen.faults == [], "\n".join(seen.faults)
    assert enough(seen), seen
