"""What the metrics of operator and agent have in common: a registry, and who they are of.

Everything else is computed when it is scraped, by the one who derives from this.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpu_scheduler import __version__
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.unexpected import counts

Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)


def filled(family: Family, values: Iterable[tuple[Sequence[str], float]]) -> Family:
    """A family with these values, each with its labels."""
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def labelled(
    family: type[Family], name: str, text: str, label: str, values: Iterable[tuple[object, float]]
) -> Family:
    """A family whose values have one label each.

    Args:
        family: counter or gauge.
        name: of the metric.
        text: its help.
        label: its name.
        values: of the label, with the figure.
    """
    return filled(
        family(name, text, labels=[label]), (([str(each)], figure) for each, figure in values)
    )


def unexpected_errors() -> CounterMetricFamily:
    """How often a loop met an exception that nobody foresaw and went on all the same.

    Above 0 there is a defect of ours: the chart's alert fires.
    """
    return labelled(
        CounterMetricFamily,
        "gpusched_unexpected_errors",
        "Exceptions that nobody foresaw; each concerned one object, and its loop went on.",
        "loop",
        sorted(counts.items()),
    )


def wall_clock(clock: Clock) -> Iterable[Metric]:
    """What somebody does to the wall clock of the machine; nothing is decided by it."""
    yield GaugeMetricFamily(
        "gpusched_clock_ahead_seconds",
        "How far the machine's wall clock is ahead of the time that is counted; negative: behind.",
        value=round(clock.ahead_seconds(), 1),
    )
    yield labelled(
        CounterMetricFamily,
        "gpusched_clock_steps",
        "How often the machine's wall clock was set by a second or more, or the machine slept.",
        "direction",
        clock.steps.items(),
    )


class Collector:
    """A registry of its own, whose figures are ``figures`` and those that every program has."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Begin to be asked; ``clock``: of the process."""
        self.clock = clock or Clock()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Names are not checked for collisions at registration."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Everything that is computed when asked for."""
        yield labelled(
            GaugeMetricFamily, "gpusched_build_info", "Version.", "version", [(__version__, 1)]
        )
        yield unexpected_errors()
        yield from wall_clock(self.clock)
        yield from self.figures()

    def figures(self) -> Iterable[Metric]:
        """The program's own."""
        raise NotImplementedError
