"""Nobody is evicted twice for what can never start: ADR 0064.

``PLANS_IN_VAIN`` says how many plans there are at least, of whole histories, and ``PLANS_SEED``
which; ``make in-vain`` plays 3,000.
"""

import asyncio
import os
from collections import Counter

import pytest
from tests.unit.generated.in_vain import KINDS, NOTHING_THERE, InVain
from tests.unit.parts import EXPLORE_SEED
from tests.unit.runtime.virtual_loop import VirtualLoop

PLANS = int(os.environ.get("PLANS_IN_VAIN", "60"))
SEED = int(os.environ.get("PLANS_SEED", "1")) if EXPLORE_SEED is None else EXPLORE_SEED
PARTS = 2


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_nobody_is_evicted_twice_for_what_never_starts(part: int) -> None:
    evicted: Counter[str] = Counter()
    plans, seed = 0, 1000 * SEED + part
    while plans < PLANS / PARTS:
        case = InVain(seed)
        try:
            with asyncio.Runner(loop_factory=VirtualLoop) as runner:
                runner.run(case.play())
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        evicted += case.evicted
        plans, seed = plans + case.plans, seed + PARTS
    print(f"{plans} plans, evicted for: {dict(evicted)}")  # noqa: T201
    assert not evicted.keys() & {*NOTHING_THERE}
    if plans > 1000:
        assert evicted["sound"] > 0
        assert len(evicted.keys() & {*KINDS}) >= 6, "kinds for which somebody was evicted once"
