"""Pods per second until bound and writes per pod: paired runs of all variants.

A round runs every variant once, one after the other on the same control plane, and the order turns
from round to round; figures are compared within a round, so that a machine that slows down hits
all of them. Before each measured Job, or Deployment, goes a small one, and nothing runs any more
when it starts.
"""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from tests.perf import writes
from tests.perf.bound import BoundWatch
from tests.perf.install import pids, say
from tests.perf.procfs import cpu_by_name
from tests.perf.schedulers import Variant, scheduler_of
from tests.perf.settings import Sizes
from tests.perf.workload import clear

from cluster import Running
from gpu_scheduler.kube.client import Client

_BOUND_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One measured Job, or Deployment.

    Attributes:
        variant: which one.
        round: from 0.
        pods: how many.
        seconds: from the request that creates the job until its last pod is bound.
        created_seconds: until the last pod was created.
        began: when, for the audit log.
        ended: when nothing was written any more.
        writes: counted writes by verb and resource, until nothing was written any more.
        left_out: the writes that are not counted.
        cpu_seconds: CPU of each process until the last pod was bound.
    """

    variant: str
    round: int
    pods: int
    seconds: float
    created_seconds: float
    began: datetime
    ended: datetime
    writes: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)

    @property
    def pods_per_second(self) -> float:
        """The rate over the whole Job."""
        return self.pods / self.seconds

    @property
    def writes_per_pod(self) -> float:
        """Everything that was counted, status and events of the job included."""
        return sum(self.writes.values()) / self.pods

    def to_json(self) -> dict[str, object]:
        """All figures."""
        per_pod = {kind: n / self.pods for kind, n in writes.by_kind(self.writes).items()}
        return {
            **asdict(self),
            "began": self.began.isoformat(),
            "ended": self.ended.isoformat(),
            "pods_per_second": self.pods_per_second,
            "writes_per_pod": self.writes_per_pod,
            "writes_per_pod_by_kind": per_pod,
        }


class Bench:
    """A cluster with a harness's own eyes and hands on it."""

    def __init__(self, running: Running, client: Client, watch: BoundWatch, sizes: Sizes) -> None:
        """``watch`` runs already."""
        self.running, self.client, self.watch, self.sizes = running, client, watch, sizes
        self._number = 0

    async def rounds(self, variants: Sequence[Variant], count: int) -> AsyncIterator[MeasuredRun]:
        """Runs of all variants, ``count`` times; the order turns."""
        for number in range(count):
            turn = number % len(variants)
            for variant in (*variants[turn:], *variants[:turn]):
                run = await self.run(variant, number)
                say(
                    f"  round {number + 1}/{count} {variant.name:10} "
                    f"{run.pods_per_second:6.1f} pods/s {run.writes_per_pod:5.2f} writes/pod"
                )
                yield run

    async def run(self, variant: Variant, number: int) -> MeasuredRun:
        """One measured Job or Deployment, warmed up, and cleared away."""
        async with scheduler_of(self.running, variant, self.sizes.nodes):
            warm_up = await self._bind_all(variant, self.sizes.warm_up_pods)
            await clear(self.client, self.watch, [warm_up[0]])
            before = await writes.settled(self.client)
            started_at = datetime.now(UTC)
            cpu_before = cpu_by_name(pids(self.running))
            name, began, created, bound = await self._bind_all(variant, self.sizes.pods)
            cpu = cpu_by_name(pids(self.running))
            written = await writes.settled(self.client)
            ended_at = datetime.now(UTC)
            written.subtract(before)
            await clear(self.client, self.watch, [name])
        kept = writes.counted(written)
        return MeasuredRun(
            variant=variant.name,
            round=number,
            pods=self.sizes.pods,
            seconds=bound - began,
            created_seconds=created - began,
            began=started_at,
            ended=ended_at,
            writes=dict(kept),
            left_out={key: n for key, n in written.items() if n > 0 and key not in kept},
            cpu_seconds={k: round(v - cpu_before.get(k, 0.0), 2) for k, v in cpu.items()},
        )

    async def _bind_all(self, variant: Variant, pods: int) -> tuple[str, float, float, float]:
        """Name of the job; when it was created, its last pod was created, and was bound."""
        name = self.next_name(variant)
        path, body = variant.job(name, pods)
        began = time.monotonic()
        await self.client.create(path, body)
        bound = await self.watch.until_bound(name, pods, _BOUND_SECONDS)
        return name, began, max(self.watch.created[name].values()), max(bound.values())

    def next_name(self, variant: Variant) -> str:
        """A name that no job had before."""
        self._number += 1
        return f"{variant.name}-{self._number}"
