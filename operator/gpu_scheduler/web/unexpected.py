"""The metric of exceptions that nobody foresaw, for operator and agent alike.

Above 0 there is a defect of ours: the chart's alert fires. Collected by both registries.
"""

from prometheus_client.core import CounterMetricFamily

from gpu_scheduler.kube.unexpected import counts


def unexpected_errors() -> CounterMetricFamily:
    """How often a loop met one and went on all the same."""
    family = CounterMetricFamily(
        "gpusched_unexpected_errors",
        "Exceptions that nobody foresaw; each concerned one object, and its loop went on.",
        labels=["loop"],
    )
    for loop, count in sorted(counts.items()):
        family.add_metric([loop], count)
    return family
