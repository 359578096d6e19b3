"""The answers of the dashboard's server: one schema, of which the front end's types are made.

``make dashboard-types`` writes them. Times are seconds since the epoch; ratios 0 to 1; memory MiB;
None is "nobody knows", never 0. A reader works out ages from ``at``, which each view carries: its
own clock may be wrong.
"""

from gpu_scheduler.dashboard.rows import (
    AdviceRow,
    BesideRow,
    CurveRow,
    DeviceRow,
    EarlierRow,
    HealthRow,
    IdleRow,
    JobRow,
    Lead,
    NodeRow,
    PartRow,
    Placed,
    ProcessRow,
    ProjectRow,
    QueueRow,
    Ranked,
    RanksRow,
    ReasonRow,
    SlowestRow,
    Step,
    SweepRow,
    Used,
    View,
)


class OverviewView(View, frozen=True, kw_only=True):
    """The first page. ``parts`` add up to ``gpus``."""

    at: float
    lead: Lead
    gpus: float
    nodes: int
    idle_seconds: int
    followed: bool  # whether agents are asked what GPUs do; otherwise use is unknown everywhere
    silent_agents: int
    parts: tuple[PartRow, ...]
    projects: tuple[ProjectRow, ...]
    reasons: tuple[ReasonRow, ...]
    idle: tuple[IdleRow, ...]  # the first few, most GPU-hours first
    idle_count: int
    advice: tuple[AdviceRow, ...]  # the first few
    advice_count: int


class GpusView(View, frozen=True, kw_only=True):
    """All nodes."""

    at: float
    lead: Lead
    idle_seconds: int
    followed: bool
    nodes: tuple[NodeRow, ...]


class DeviceView(View, frozen=True, kw_only=True):
    """One GPU.

    Attributes:
        node: that it is in, with no other.
        health: None: no agent has told it.
        processes: on it, of all that the reader may see, with most memory first.
        earlier: who held it before, of the same, who gave it back last first.
        earlier_from: since when that is known: as long as this leader lives.
    """

    at: float
    lead: Lead
    idle_seconds: int
    followed: bool
    node: NodeRow
    device: DeviceRow
    health: HealthRow | None
    processes: tuple[ProcessRow, ...]
    earlier: tuple[EarlierRow, ...]
    earlier_from: float


class QueueView(View, frozen=True, kw_only=True):
    """Those asked for, in the order in which they are served; ``total``: that match."""

    at: float
    lead: Lead
    reasons: tuple[ReasonRow, ...]
    projects: tuple[str, ...]
    total: int
    offset: int
    rows: tuple[QueueRow, ...]


class JobsView(View, frozen=True, kw_only=True):
    """Those asked for; ``phases``: how many of all that the reader may see."""

    at: float
    lead: Lead
    phases: dict[str, int]
    projects: tuple[str, ...]
    total: int
    offset: int
    rows: tuple[JobRow, ...]


class JobView(View, frozen=True, kw_only=True):
    """The page of one workload.

    Attributes:
        facts: short words about it: what it asks for, its priority, its image.
        steps: the oldest first; ``steps_note``: what is not known any more of it.
        slowest: None: it is no gang of several pods, or nobody knows what they do.
        ranks: of a gang of several pods.
        commands: lines of kubectl for it, by what they do.
        may_suspend: whether it can be suspended at all: a GPUJob that has not ended.
    """

    at: float
    lead: Lead
    row: JobRow
    facts: tuple[str, ...]
    steps: tuple[Step, ...]
    steps_note: str
    placed: tuple[Placed, ...]
    slowest: SlowestRow | None
    beside: tuple[BesideRow, ...]
    advice: tuple[AdviceRow, ...]
    curve: CurveRow | None
    ranks: RanksRow | None
    used: Used | None
    commands: dict[str, str]
    may_suspend: bool
    suspended: bool


class ProjectsView(View, frozen=True, kw_only=True):
    """All projects."""

    at: float
    lead: Lead
    rows: tuple[ProjectRow, ...]


class ProjectView(View, frozen=True, kw_only=True):
    """The page of one project: its row, and what the reader may see of its work."""

    at: float
    lead: Lead
    row: ProjectRow
    reasons: tuple[ReasonRow, ...]
    holding: tuple[JobRow, ...]
    waiting: tuple[QueueRow, ...]


class SweepsView(View, frozen=True, kw_only=True):
    """All searches."""

    at: float
    lead: Lead
    total: int
    offset: int
    rows: tuple[SweepRow, ...]


class SweepView(View, frozen=True, kw_only=True):
    """The page of one search: the best ten, and what failed last."""

    at: float
    lead: Lead
    row: SweepRow
    top: tuple[Ranked, ...]
    errors: tuple[Step, ...]
    command: str


class ChartView(View, frozen=True, kw_only=True):
    """GPUs over time, of the cluster or of one project.

    Attributes:
        start: of the first step.
        step_seconds: of each.
        gpus: in all (a project: its quota); so are the others, one figure a step.
        note: what is missing in it, and why; empty: nothing.
    """

    at: float
    start: float
    step_seconds: int
    gpus: tuple[float | None, ...]
    held: tuple[float | None, ...]
    busy: tuple[float | None, ...]
    idle: tuple[float | None, ...]
    waiting: tuple[float | None, ...]
    borrowed: tuple[float | None, ...]
    note: str = ""


class Me(View, frozen=True, kw_only=True):
    """Who asks.

    Attributes:
        user: as the API server calls them.
        all: whether all namespaces may be seen.
        namespaces: those that may be; empty where ``all``.
        actions: whether jobs may be suspended and resumed from here, where the user may.
        version: of the operator.
    """

    user: str
    all: bool
    namespaces: tuple[str, ...]
    actions: bool
    version: str


class WhatIfQuestion(View, frozen=True, kw_only=True):
    """A question: one of a manifest, nodes like one there is, or another quota of a project."""

    manifest: str = ""
    like_node: str = ""
    nodes: int = 0
    project: str = ""
    quota: float | None = None


class WhatIfRow(View, frozen=True, kw_only=True):
    """What would become of one that waits, or of what was pasted."""

    name: str
    result: str  # 'starts now', or the reason why it goes on waiting
    message: str
    pods: int


class WhatIfAnswer(View, frozen=True, kw_only=True):
    """What would be."""

    lead: Lead
    rows: tuple[WhatIfRow, ...]
    omitted: int


class ProblemView(View, frozen=True, kw_only=True):
    """Why there is no answer, and the way out."""

    error: str


VIEWS: tuple[type[View], ...] = (
    OverviewView, GpusView, DeviceView, QueueView, JobsView, JobView, ProjectsView, ProjectView,
    SweepsView, SweepView, ChartView, Me, WhatIfQuestion, WhatIfAnswer, ProblemView,
)  # fmt: skip
"""All that the front end reads or sends."""
