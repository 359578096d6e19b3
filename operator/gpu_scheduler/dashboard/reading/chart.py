"""A chart of those that are kept."""

from collections.abc import Mapping

import numpy as np

from gpu_scheduler.dashboard.views import ChartView
from gpu_scheduler.runtime.usage.charting.chart import SERIES, Charts

# Whether the fine one, and how many of its steps.
_POINTS: Mapping[str, tuple[bool, int]] = {
    "1h": (True, 360),
    "24h": (False, 144),
    "7d": (False, 1008),
}


def chart_of(charts: Charts, project: str, span: str, now: float) -> ChartView | None:
    """Of a project, or of the cluster (empty); None: nothing is known. ``now``: epoch seconds."""
    kept = charts.by_name.get(project)
    if kept is None:
        return None
    fine, points = _POINTS[span]
    ring = kept.fine if fine else kept.coarse
    start, values = ring.window(now, points)
    series = {
        name: tuple(None if np.isnan(each) else round(float(each), 2) for each in values[row])
        for row, name in enumerate(SERIES)
    }
    known = np.flatnonzero(~np.isnan(values[SERIES.index("held")]))
    note = "" if len(known) and known[0] == 0 else "Nothing is known of the time before."
    return ChartView(at=now, start=start, step_seconds=ring.seconds, note=note, **series)
