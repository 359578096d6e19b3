"""Samples of work write the lines that prometheus_client would, whatever they are called."""

from random import Random

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from gpu_scheduler.usage.figures import ClusterUse, WorkUse
from gpu_scheduler.web.exposition import Exposition
from gpu_scheduler.web.usage_metrics import figures

_NAMES = ("train", "deployment/api", 'with "quotes"', "back\\slash", "two\nlines", "ü", "")
_NUMBERS = (None, 0.0, 1, 0.1, 1e-7, 999_999.9, 1_000_000, 1.5e12, 123_456_789.25, float("inf"))


class Once(Collector):
    def __init__(self, use: ClusterUse) -> None:
        self._use = use

    def collect(self) -> list[Metric]:
        return list(figures(self._use))


async def test_the_text_is_that_of_the_library() -> None:
    random = Random(3)

    def number() -> float | None:
        return random.choice(_NUMBERS)

    work = [
        WorkUse(
            namespace=random.choice(_NAMES),
            name=random.choice(_NAMES),
            project=random.choice(_NAMES),
            gpus=number() or 0.0,
            busy=number(),
            requested_gpus=number(),
            memory_mib=number(),
            memory_limit_mib=number(),
            cpu_cores=number(),
            idle_seconds=random.choice((None, 0, 7_200, 5_000_000)),
        )
        for _ in range(300)
    ]
    registry = CollectorRegistry()
    registry.register(Once(ClusterUse(work=work)))
    assert await Exposition(registry).text() == generate_latest(registry)
