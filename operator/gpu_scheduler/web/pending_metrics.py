"""Metrics of what waits."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.runtime.common.pending import Pending
from gpu_scheduler.web.collector import filled, labelled


def figures(found: Pending, now: float) -> Iterator[Metric]:
    """As metrics; ``now``: epoch seconds."""
    family = GaugeMetricFamily(
        "gpusched_pending_jobs",
        "Waiting GPUJobs, pods that ask by themselves, and gangs of such; those that cannot "
        "start as they are included.",
        labels=["reason", "project", "type"],
    )
    yield filled(family, sorted(found.jobs.items()))
    yield labelled(
        GaugeMetricFamily,
        "gpusched_project_pending_gpus",
        "Asked for by what waits and can start; sizes in MiB are not counted.",
        "project",
        ((name, milli / DEVICE_MILLI) for name, milli in sorted(found.milli.items())),
    )
    inside = GaugeMetricFamily(
        "gpusched_pending_inside_quota_seconds",
        "For how long work of a namespace waits that its project's free quota has room for.",
        labels=["namespace", "project"],
    )
    yield filled(
        inside, ((each, max(0.0, now - since)) for each, since in sorted(found.since.items()))
    )
