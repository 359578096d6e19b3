"""Metrics of the dashboard's server: how often the API server was asked, and open pages."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpu_scheduler.web.collector import filled


class DashboardFigures(Protocol):
    """Of the dashboard that is served."""

    def reviews(self) -> Mapping[tuple[str, str], int]:
        """Of whom the API server was asked, by kind (token, access) and result."""
        ...

    def open_streams(self) -> int:
        """Pages that are open and live."""
        ...


def figures(dashboard: DashboardFigures) -> Iterator[Metric]:
    """All of them."""
    family = CounterMetricFamily(
        "gpusched_dashboard_reviews",
        "TokenReviews (token) and SubjectAccessReviews (access) that the dashboard asked for.",
        labels=["kind", "result"],
    )
    yield filled(family, sorted(dashboard.reviews().items()))
    yield GaugeMetricFamily(
        "gpusched_dashboard_streams",
        "Live pages of the dashboard that are open.",
        value=float(dashboard.open_streams()),
    )
