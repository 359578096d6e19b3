"""What a context takes on a device, learnt from pods that may lie."""

from gpu_scheduler.agent.trueup import LEAST_MIB, MOST_MIB, PODS, ContextCosts
from gpu_scheduler.core.model.units import MIB


def learnt(*figures_mib: float) -> int | None:
    costs = ContextCosts()
    for number, mib in enumerate(figures_mib):
        costs.note("GPU-a", f"pod-{number}", int(mib * MIB))
    return costs.mib().get("GPU-a")


def test_nothing_is_known_before_a_process_was_seen_with_a_context() -> None:
    assert learnt() is None
    assert learnt(0, 0) is None


def test_the_figure_is_rounded_up_so_that_it_seldom_changes() -> None:
    assert learnt(289) == learnt(304) == 304
    assert learnt(304.5) == 320


def test_it_is_the_median_of_the_pods_and_not_of_their_processes() -> None:
    assert learnt(300, 4000, 310) == 320
    costs = ContextCosts()
    costs.note("GPU-a", "honest", 300 * MIB)
    costs.note("GPU-a", "other", 310 * MIB)
    for _ in range(100):
        costs.note("GPU-a", "liar", 1)
    assert costs.mib() == {"GPU-a": 304}


def test_no_pod_can_make_it_more_than_it_would_be_without_or_nothing() -> None:
    assert learnt(1 << 30) == MOST_MIB
    assert learnt(1 / MIB) == LEAST_MIB


def test_the_last_pods_count() -> None:
    assert learnt(*[500] * PODS, *[300] * (PODS // 2 + 1)) == 304


def test_devices_are_apart() -> None:
    costs = ContextCosts()
    costs.note("GPU-a", "pod", 300 * MIB)
    costs.note("GPU-b", "pod", 400 * MIB)
    assert costs.mib() == {"GPU-a": 304, "GPU-b": 400}
