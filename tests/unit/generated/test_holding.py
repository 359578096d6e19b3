"""What is counted as held: caches that the collector no longer lists, structs that it never did."""

import gc

from tests.unit.generated.holding import held_bytes

from gpu_scheduler.core.products import words
from gpu_scheduler.kube.objects import Container


def test_what_a_cache_holds_is_counted_also_once_it_is_frozen() -> None:
    before = held_bytes([])
    gc.freeze()
    try:
        words("x" * 100)
        assert held_bytes([]) >= before + 2 * 100
    finally:
        gc.unfreeze()


def test_what_a_struct_holds_is_counted() -> None:
    assert held_bytes([Container(args=("x" * 1000,))]) - held_bytes([]) > 1000
