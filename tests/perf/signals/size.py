"""How much is measured: the size that signals are promised for, and a small one to try it."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from tests.perf.settings import GPUS_PER_NODE


@dataclass(frozen=True, slots=True)
class Size:
    """One run.

    Attributes:
        gpus: on fake nodes of 8, an agent on each.
        containers: that run, each of a job of its own; together they hold all GPUs.
        jobs: there at any time; those that do not run wait.
        namespaces: over which they are spread, each with a project inside its quota.
        seconds: of a phase in which cost is measured.
        settle_seconds: between the start of an operator and that; two looks at all work are in it,
            for the first one finds no agent that has answered.
        scrapes: after it, of ``/metrics``, one a little more than each second.
        usage_seconds: of the operator's setting; 0: as the chart has it.
        turns: jobs that end, and that come, in a second.
        order: of phases; A: without signals, B: with them, C: with them while half of the agents
            are silent, slow or talk nonsense. There and back: a cluster that grows older makes
            plans slower by as much as is looked for.
    """

    gpus: int = 1000
    containers: int = 4000
    jobs: int = 10_000
    namespaces: int = 200
    seconds: float = 120.0
    settle_seconds: float = 90.0
    scrapes: int = 30
    usage_seconds: float = 0.0
    turns: float = 2.0
    order: str = "ABCCBA"

    @property
    def nodes(self) -> int:
        """Fake nodes, and agents."""
        return self.gpus // GPUS_PER_NODE

    @property
    def milli(self) -> int:
        """Of a GPU, that each container holds."""
        return 1000 * self.gpus // self.containers

    def part(self, of: float) -> "Size":
        """As many GPUs, containers, jobs and namespaces, times ``of``."""
        nodes = max(1, round(self.nodes * of))
        return replace(
            self,
            gpus=nodes * GPUS_PER_NODE,
            containers=nodes * GPUS_PER_NODE * 1000 // self.milli,
            jobs=round(self.jobs * of),
            namespaces=max(1, round(self.namespaces * of)),
        )

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return asdict(self)


FULL = Size()
SMALL = Size(
    gpus=64,
    containers=256,
    jobs=600,
    namespaces=16,
    seconds=15.0,
    settle_seconds=20.0,
    scrapes=8,
    usage_seconds=5.0,
    turns=1.0,
    order="ABC",
)
