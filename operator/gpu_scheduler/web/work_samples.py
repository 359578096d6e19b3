"""Samples of workloads, one for each of which a figure is known, that can write themselves.

prometheus_client takes ten microseconds for a sample, and there are nine for each of thousands of
workloads: what their labels say is put together once for all of them. The lines are the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from prometheus_client.core import Metric, Sample
from prometheus_client.utils import floatToGoString

from gpu_scheduler.usage.figures import WorkUse

LABELS = "gpujob", "namespace", "project"  # in the order in which they are written
_MILLION = 1_000_000  # from here on Go writes exponents
Figure = Callable[[WorkUse], float | None]


class LabelledWork:
    """Workloads, and what their labels say."""

    def __init__(self, work: Sequence[WorkUse]) -> None:
        """``work`` must not change afterwards."""
        self.work = work

    @cached_property
    def texts(self) -> list[str]:
        """Of each, without braces."""
        return [
            f'gpujob="{_escaped(each.name)}",namespace="{_escaped(each.namespace)}",'
            f'project="{_escaped(each.project)}"'
            for each in self.work
        ]


@dataclass(frozen=True, slots=True)
class WorkSamples:
    """In the place of a list of samples.

    Attributes:
        name: of the metric.
        of: which workloads.
        figure: of each; None: it has none.
        typed: whether the type of work is a label too.
    """

    name: str
    of: LabelledWork
    figure: Figure
    typed: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names."""
        return (*LABELS, "type") if self.typed else LABELS

    def __iter__(self) -> Iterator[Sample]:
        """As prometheus_client wants them."""
        for each in self.of.work:
            value = self.figure(each)
            if value is not None:
                values = (each.name, each.namespace, each.project, each.type)
                yield Sample(self.name, dict(zip(self.labels, values, strict=False)), value)

    def text(self) -> str:
        """Their lines in the format of Prometheus."""
        name, figure, typed = self.name, self.figure, self.typed
        lines = []
        for each, labels in zip(self.of.work, self.of.texts, strict=True):
            value = figure(each)
            if value is None:
                continue
            if typed:
                labels = f'{labels},type="{_escaped(each.type)}"'
            number = float(value)
            said = repr(number) if 0 <= number < _MILLION else _as_go(number)
            lines.append(f"{name}{{{labels}}} {said}\n")
        return "".join(lines)


def samples_of_work(metric: Metric) -> WorkSamples | None:
    """Those of a metric; None: they are a list."""
    samples: object = metric.samples
    return samples if isinstance(samples, WorkSamples) else None


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _as_go(number: float) -> str:
    said: str = floatToGoString(number)  # type: ignore[no-untyped-call]
    return said
