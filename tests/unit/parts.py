"""Many generated examples in parts: each is a test of its own, so that workers can share them.

Examples are the same in every run, for each part draws them from a seed of its own. With
``EXPLORE_SEED`` in the environment they are others, as many for each number that it may be.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import seed, settings

EXPLORE_SEED = int(os.environ["EXPLORE_SEED"]) if os.environ.get("EXPLORE_SEED") else None


def in_parts(
    parts: int, examples: int, *, first_seed: int = 0, **options: Any
) -> Callable[[Callable[[], None]], Callable[[int], None]]:
    """Split a test with ``@given`` into so many parts, which have so many examples together.

    Args:
        first_seed: other examples for another number.
        options: further settings of hypothesis.
    """
    chosen = settings(max_examples=max(1, -(-examples // parts)), **options)
    start = 1000 * (first_seed if EXPLORE_SEED is None else EXPLORE_SEED)

    def split(test: Callable[[], None]) -> Callable[[int], None]:
        whole = chosen(test)

        def play(part: int) -> None:
            seed(start + part)(whole)()

        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(play, name, getattr(test, name))
        # The mark that plugins of hypothesis know its tests by: ``play`` itself is none.
        return pytest.mark.hypothesis(pytest.mark.parametrize("part", range(parts))(play))

    return split
