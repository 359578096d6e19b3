"""Charts go on over leaders, and a gap is a gap."""

from random import Random

import numpy as np
import pytest

from gpu_scheduler.runtime.usage.charting.chart import (
    CLUSTER,
    MOST_BYTES,
    SERIES,
    BadChartsError,
    Chart,
    Charts,
)

NOW = 1_800_000_000.0


def test_a_step_is_the_mean_of_its_looks() -> None:
    chart = Chart()
    for number in range(60):
        chart.add(NOW + 10 * number, {"held": 4.0, "busy": float(number % 2)})
    start, week = chart.coarse.window(NOW + 599, 2)
    assert start == NOW - 600
    assert week[SERIES.index("busy")].tolist()[1] == pytest.approx(0.5)
    assert np.isnan(week[:, 0]).all() and np.isnan(week[SERIES.index("idle"), 1])


def test_what_nobody_saw_is_a_gap_and_a_clock_set_back_changes_nothing() -> None:
    chart = Chart()
    chart.add(NOW, {"held": 1.0})
    chart.add(NOW + 50, {"held": 2.0})
    chart.add(NOW - 3600, {"held": 9.0})
    _, hour = chart.fine.window(NOW + 50, 6)
    assert hour[SERIES.index("held")].tolist() == pytest.approx(
        [1, np.nan, np.nan, np.nan, np.nan, 2], nan_ok=True
    )
    _, later = chart.fine.window(NOW + 7200, 360)
    assert np.isnan(later).all()  # too old to be the last hour


def test_since_when_a_project_borrows() -> None:
    chart = Chart()
    for number in range(3 * 360):
        borrowed = 0.0 if number in (100, 101) else 1.5
        chart.add(NOW + 10 * number, {"borrowed": borrowed})
    until = NOW + 10 * (3 * 360 - 1)
    since = chart.since("borrowed", until)
    assert since is not None
    assert abs(since - (NOW + 1020)) <= 600 or since < NOW + 1020 + 600
    assert chart.since("idle", until) is None
    chart.add(until + 10, {"borrowed": 0.0})
    chart.add(until + 20, {"borrowed": 0.0})
    assert chart.since("borrowed", until + 20) is None


def test_another_leader_goes_on_where_one_ended() -> None:
    whole, first = Charts(), Charts()
    random, second = Random(1), None
    for number in range(2000):
        at = NOW + 10 * number
        held = 100 * random.random()
        figures = {CLUSTER: {"held": held, "busy": held / 2}, "vision": {"held": 1.0}}
        whole.add(at, figures)
        if number == 1003:
            second = Charts.loads(first.dumps())
        (second or first).add(at, figures)
    assert second is not None and second.by_name.keys() == {CLUSTER, "vision"}
    for name, chart in whole.by_name.items():
        for ring, other in zip(chart.rings, second.by_name[name].rings, strict=True):
            assert other.last == ring.last
            np.testing.assert_allclose(other.values, ring.values, atol=0.01)


def test_what_is_too_much_for_an_object_goes_hour_by_hour() -> None:
    charts, random = Charts(), np.random.default_rng(1)
    for number in range(60):
        chart = charts.by_name[str(number) if number else CLUSTER] = Chart()
        for ring in chart.rings:
            ring.values[:] = random.integers(0, 100_000, ring.values.shape) / 100
            ring.last = 10_000_000
    body = charts.dumps()
    assert len(body) <= MOST_BYTES
    assert CLUSTER in Charts.loads(body).by_name


@pytest.mark.parametrize("body", [b"", b"x", b"x\x9c" * 9])
def test_what_is_none_of_ours_is_refused(body: bytes) -> None:
    with pytest.raises(BadChartsError):
        Charts.loads(body)
