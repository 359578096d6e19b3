"""A life in at most sixty points."""

from gpu_scheduler.api.gpuusage import POINTS, Curve
from gpu_scheduler.runtime.usage.curve import MOST_RANKS, UNKNOWN, LifeCurve, Point, RankCurves


def test_a_long_life_has_points_that_stand_for_longer() -> None:
    curve = LifeCurve()
    for minute in range(24 * 60):
        curve.add(Point(minute * 100 // (24 * 60), minute))
    shown = curve.shown()
    assert shown is not None
    assert shown.step_seconds == 60 * 32  # the least power of two that holds a day
    assert POINTS / 2 <= len(shown.busy_percent) <= POINTS
    assert shown.busy_percent == sorted(shown.busy_percent)
    last = len(shown.busy_percent) * 32 - 1
    assert shown.memory_mib[-1] == last  # the most of each step, up to the last full one


def test_a_peak_of_one_minute_stays_the_peak() -> None:
    curve = LifeCurve()
    for minute in range(1000):
        curve.add(Point(50, 30_000 if minute == 3 else 10_000))
    shown = curve.shown()
    assert shown is not None
    assert max(shown.memory_mib) == 30_000


def test_what_nobody_knew_is_no_zero() -> None:
    curve = LifeCurve()
    for minute in range(POINTS * 2):
        curve.add(Point(UNKNOWN if minute % 2 else 80, UNKNOWN))
    shown = curve.shown()
    assert shown is not None
    assert set(shown.busy_percent) == {80}
    assert set(shown.memory_mib) == {UNKNOWN}


def test_cores_are_a_mean_of_each_step_and_absent_where_they_never_were_known() -> None:
    curve, other = LifeCurve(), LifeCurve()
    for minute in range(POINTS + 1):
        curve.add(Point(50, 10, 800 if minute % 2 else 100))
        other.add(Point(50, 10))
    shown, silent = curve.shown(), other.shown()
    assert shown is not None and shown.cpu_percent is not None
    assert set(shown.cpu_percent) == {450}
    assert silent is not None and silent.cpu_percent is None


def test_what_an_object_of_a_version_before_does_not_tell_is_unknown() -> None:
    curve = LifeCurve.of(Curve(step_seconds=60, busy_percent=[10, 20], memory_mib=[1, 2]))
    curve.add(Point(30, 3, 250))
    shown = curve.shown()
    assert shown is not None
    assert shown.cpu_percent == [UNKNOWN, UNKNOWN, 250]


def test_another_leader_goes_on() -> None:
    one, other = LifeCurve(), LifeCurve()
    for minute in range(64):
        one.add(Point(minute, minute, 2 * minute))
        other.add(Point(minute, minute, 2 * minute))
    other = LifeCurve.of(other.shown())
    for minute in range(64, 200):
        one.add(Point(minute % 100, minute, 900))
        other.add(Point(minute % 100, minute, 900))
    assert one.shown() == other.shown()


def test_each_pod_of_a_gang_has_its_column_also_one_that_came_late_or_was_not_seen() -> None:
    ranks = RankCurves()
    ranks.look({"a-0": 0.5, "a-1": 0.25}, 1000.0)
    ranks.look({"a-0": None, "a-1": 0.75, "a-2": 1.0}, 1060.0)
    ranks.look({}, 0.0)
    assert ranks.began == 940.0
    assert ranks.shown() == {
        "a-0": (50, UNKNOWN, UNKNOWN),
        "a-1": (25, 75, UNKNOWN),
        "a-2": (UNKNOWN, 100, UNKNOWN),
    }


def test_the_curves_of_a_gang_have_sixty_points_and_as_many_pods_as_are_shown() -> None:
    ranks = RankCurves()
    for minute in range(POINTS + 1):
        ranks.look({f"a-{n}": minute % 2 for n in range(MOST_RANKS + 3)}, 60.0 * minute)
    assert ranks.step_seconds == 120 and len(ranks.points) == POINTS // 2
    shown = ranks.shown()
    assert len(shown) == MOST_RANKS and set(shown["a-0"]) == {50}
