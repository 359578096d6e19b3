"""What the leader knows, in one moment: all that pages are made of, before anything is hidden."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from gpu_scheduler.dashboard.others import without_others
from gpu_scheduler.dashboard.rows import (
    AdviceRow,
    CurveRow,
    EarlierRow,
    HealthRow,
    IdleRow,
    JobRow,
    NodeRow,
    Placed,
    ProcessRow,
    ProjectRow,
    QueueRow,
    Ranked,
    RanksRow,
    SlowestRow,
    Step,
    SweepRow,
    Used,
    WorkRef,
)
from gpu_scheduler.dashboard.views import ChartView
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.usage.figures import GpuState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """What is said of one workload alone; see ``views.Job``."""

    facts: tuple[str, ...]
    steps: tuple[Step, ...]
    steps_note: str
    placed: tuple[Placed, ...]
    slowest: SlowestRow | None
    curve: CurveRow | None
    ranks: RanksRow | None
    used: Used | None
    may_suspend: bool
    suspended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepDetail:
    """What is said of one search alone."""

    top: tuple[Ranked, ...]
    errors: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDetail:
    """What is said of one GPU alone; see ``views.DeviceView``."""

    health: HealthRow | None
    processes: tuple[ProcessRow, ...]
    earlier: tuple[EarlierRow, ...]
    earlier_from: float


class Details(Protocol):
    """What is read when one thing is looked at, of this moment and not of the picture's."""

    def job(self, ref: WorkRef) -> JobDetail | None:
        """Of a workload; None: it has just gone."""

    def sweep(self, ref: WorkRef) -> SweepDetail | None:
        """Of a search; None: it has just gone."""

    def device(self, node: str, index: int) -> DeviceDetail | None:
        """Of a GPU; None: it has just gone."""

    def chart(self, project: str, span: str) -> ChartView | None:
        """Of a project, or the cluster (empty); None: nothing is known of it."""


class NoDetails:
    """Nothing is known."""

    def job(self, ref: WorkRef) -> JobDetail | None:
        """None."""
        return None

    def sweep(self, ref: WorkRef) -> SweepDetail | None:
        """None."""
        return None

    def device(self, node: str, index: int) -> DeviceDetail | None:
        """None."""
        return None

    def chart(self, project: str, span: str) -> ChartView | None:
        """None."""
        return None


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One moment; what is asked of it by namespace is worked out once, for all its readers.

    Attributes:
        at: epoch seconds.
        idle_seconds: without a kernel after which work is idle.
        followed: whether agents are asked what GPUs do.
        silent_agents: that did not answer when they were asked last.
        parts: where the GPUs are; adds up to all of them.
        nodes: with all that is on them.
        projects: by name.
        works: GPUJobs, and who owns pods that ask by themselves.
        queue: what waits, in the order in which it is served.
        sweeps: searches, the newest first.
        idle: who holds GPUs and does not use them, most GPU-hours first.
        advice: what to change, most GPUs first.
        details: of single things.
    """

    at: float
    idle_seconds: int
    followed: bool = True
    silent_agents: int = 0
    parts: Mapping[GpuState, float] = field(default_factory=dict)
    nodes: tuple[NodeRow, ...] = ()
    projects: tuple[ProjectRow, ...] = ()
    works: tuple[JobRow, ...] = ()
    queue: tuple[QueueRow, ...] = ()
    sweeps: tuple[SweepRow, ...] = ()
    idle: tuple[IdleRow, ...] = ()
    advice: tuple[AdviceRow, ...] = ()
    details: Details = NoDetails()  # noqa: RUF009 - it never changes

    @property
    def gpus(self) -> float:
        """How many there are."""
        return sum(len(node.devices) for node in self.nodes)

    @cached_property
    def works_in(self) -> Mapping[str, list[tuple[int, JobRow]]]:
        """Those of each namespace, with their places among all."""
        found = defaultdict[str, list[tuple[int, JobRow]]](list)
        for each in enumerate(self.works):
            found[each[1].ref.namespace].append(each)
        return found

    @cached_property
    def queue_in(self) -> Mapping[str, list[tuple[int, QueueRow]]]:
        """The same of what waits."""
        found = defaultdict[str, list[tuple[int, QueueRow]]](list)
        for each in enumerate(self.queue):
            found[each[1].ref.namespace].append(each)
        return found

    @cached_property
    def nodes_of(self) -> Mapping[str, set[int]]:
        """The places of nodes on which work of each namespace holds something."""
        found = defaultdict[str, set[int]](set)
        for place, node in enumerate(self.nodes):
            for device in node.devices:
                for share in device.shares:
                    if share.ref is not None:
                        found[share.ref.namespace].add(place)
        return found

    @cached_property
    def hidden_nodes(self) -> tuple[NodeRow, ...]:
        """All of them, for who has no work on them."""
        nobody = Visible(frozenset())
        return tuple(without_others(node, nobody) for node in self.nodes)
