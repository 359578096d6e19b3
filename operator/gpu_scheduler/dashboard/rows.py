"""What the pages of the dashboard are put together from: rows, boxes, sentences.

Times are seconds since the epoch; ratios 0 to 1; memory MiB; None is "nobody knows", never 0.
"""

from typing import Literal

import msgspec

State = Literal[
    "busy", "part-unused", "idle", "unknown", "neighbours", "free-in-pieces", "free", "closed"
]
Phase = Literal["Pending", "Running", "Suspended", "Succeeded", "Failed"]


class View(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """What all have in common: camel case, and every field is there."""


class LeadPiece(View, frozen=True, kw_only=True):
    """A part of a sentence; ``to``: the page with the rows behind it, empty: plain text."""

    text: str
    to: str = ""


class Lead(View, frozen=True, kw_only=True):
    """What opens a page: what is going on, and paler what comes next or would help."""

    first: tuple[LeadPiece, ...]
    then: tuple[LeadPiece, ...] = ()


class WorkRef(View, frozen=True, kw_only=True):
    """A workload: a GPUJob, or who owns pods that ask by themselves (Deployment, Pod, ...)."""

    namespace: str
    kind: str
    name: str


class PartRow(View, frozen=True, kw_only=True):
    """GPUs in one state; ``note``: which, in a few words, such as 'dell-5 is cordoned'."""

    state: State
    gpus: float
    note: str = ""


class ProjectRow(View, frozen=True, kw_only=True):
    """A project, in GPUs.

    Attributes:
        quota: guaranteed.
        limit: the most it may hold; None: no limit.
        fair_share: what it is due.
        held: now.
        borrowed: of these above the quota.
        borrowed_since: since when without a break, as far as this leader knows.
        busy: of what is held; None: not known.
        idle: of what is held, past the threshold.
        pending: asked for by what waits and can start as it is.
        waiting: workloads that wait.
        running: workloads that hold GPUs.
        namespaces: that are charged to it.
        problem: what is wrong with the object; empty: nothing.
    """

    name: str
    quota: float
    limit: float | None
    fair_share: float
    held: float
    borrowed: float
    borrowed_since: float | None
    busy: float | None
    idle: float
    pending: float
    waiting: int
    running: int
    namespaces: tuple[str, ...]
    problem: str = ""


class ReasonRow(View, frozen=True, kw_only=True):
    """Why some wait.

    Attributes:
        reason: the word of their status.
        jobs: how many.
        gpus: that they ask for.
        since: since when the one waits that waits longest.
        message: what that one is told.
        first: that one; None where the reader may not see it.
    """

    reason: str
    jobs: int
    gpus: float
    since: float
    message: str
    first: WorkRef | None


class IdleRow(View, frozen=True, kw_only=True):
    """Who holds GPUs and does not use them; ``gpu_hours``: since then; ``command``: gives back."""

    ref: WorkRef
    project: str
    type: str
    gpus: float
    idle_since: float
    gpu_hours: float
    command: str


class AdviceRow(View, frozen=True, kw_only=True):
    """What to change about a workload."""

    ref: WorkRef
    project: str
    rule: str
    since: float | None
    message: str
    command: str


class ShareRow(View, frozen=True, kw_only=True):
    """A part of a device that somebody holds.

    Attributes:
        ref: whose; None: of somebody whom the reader may not see, all of them in one.
        pod: its name.
        gpus: of the device.
        busy: share of the device's time with a kernel of its own.
        memory_mib: that it holds there.
        cap_mib: that it may hold there.
        idle_since: its last kernel, where that is longer ago than the threshold.
    """

    ref: WorkRef | None
    project: str
    pod: str
    gpus: float
    busy: float | None
    memory_mib: float | None
    cap_mib: int | None
    idle_since: float | None


class DeviceRow(View, frozen=True, kw_only=True):
    """A GPU; ``problem``: why it takes nobody, empty: it does; ``celsius``: how hot it is."""

    index: int
    uuid: str
    model: str
    memory_mib: int
    problem: str
    free: float
    busy: float | None
    memory_used_mib: float | None
    celsius: float | None
    shares: tuple[ShareRow, ...]


class XidRow(View, frozen=True, kw_only=True):
    """An error event of the driver, by its number, and how often since the agent's start."""

    code: int
    times: int


class HealthRow(View, frozen=True, kw_only=True):
    """How a GPU is, as its driver says.

    Attributes:
        watts: that it takes; and so on, see ``DeviceHealth``: what tells what all that is on it
            does, is not known to who may not see all of that.
        slowed: why it runs below its clocks, in words.
        xids: what the driver reported.
        uncorrected_ecc: errors of its memory since the last reset.
    """

    watts: float | None
    slowed: tuple[str, ...] | None
    nvlink_mib_a_second: float | None
    xids: tuple[XidRow, ...] | None
    uncorrected_ecc: int | None
    remapped_after_corrected: int | None
    remapped_after_uncorrected: int | None
    remap_failed: bool


class ProcessRow(View, frozen=True, kw_only=True):
    """A process on a GPU; ``pid``: the node's; ``ref``: whose."""

    pid: int
    ref: WorkRef
    pod: str
    container: str
    memory_mib: float | None
    busy: float | None


class EarlierRow(View, frozen=True, kw_only=True):
    """Who held a GPU before.

    Attributes:
        gpus: that one of its pods held of it at most.
        pods: of its pods gave it back.
        since: when the first of them got it.
        until: when the last of them gave it back.
    """

    ref: WorkRef
    gpus: float
    pods: int
    since: float
    until: float


class NodeRow(View, frozen=True, kw_only=True):
    """A node with GPUs.

    Attributes:
        closed: why it takes no new pods, such as 'cordoned'; empty: it does.
        labels: of its topology: zone, rack and the like, by the label's last part.
        agent: how its agent is: 'ok', 'silent' (renews its Lease no more), 'none'.
    """

    name: str
    model: str
    memory_mib: int
    closed: str
    agent: Literal["ok", "silent", "none"]
    labels: dict[str, str]
    free: float
    cpu_free: float
    cpu_total: float
    devices: tuple[DeviceRow, ...]


class QueueRow(View, frozen=True, kw_only=True):
    """Who waits.

    Attributes:
        position: 1 = next of its project; 0: not known.
        each: GPUs of one pod, as text, such as '0.5' or '8 GiB'.
        pods: that wait.
        gpus: that they ask for in all.
        mends: whether it waits for its owner or an administrator to change something.
    """

    ref: WorkRef
    project: str
    type: str
    priority: str
    position: int
    each: str
    pods: int
    gpus: float
    reason: str
    message: str
    since: float
    mends: bool


class JobRow(View, frozen=True, kw_only=True):
    """A workload in the list.

    Attributes:
        asked: GPUs of all its pods at once; held: now.
        pods: running, succeeded and in all.
        advice: the rule of its headline; empty: none.
    """

    ref: WorkRef
    project: str
    type: str
    phase: Phase
    reason: str
    message: str
    asked: float
    held: float
    running: int
    succeeded: int
    pods: int
    node: str
    created: float
    ended: float | None
    busy: float | None
    memory_mib: float | None
    idle_since: float | None
    advice: str
    sweep: bool


class Step(View, frozen=True, kw_only=True):
    """A moment of a job's life; ``kind``: submitted, waits, placed, runs, suspended, ended."""

    at: float
    kind: str
    words: str
    detail: str = ""


class Placed(View, frozen=True, kw_only=True):
    """A pod that holds GPUs; ``busy`` and so on of its own processes."""

    pod: str
    role: str
    node: str
    devices: tuple[int, ...]
    gpus: float
    started: float | None
    busy: float | None
    memory_mib: float | None
    cap_mib: int | None
    cpu_cores: float | None
    cpu_limit: float | None
    ram_mib: float | None
    ram_limit_mib: float | None


class SlowestRow(View, frozen=True, kw_only=True):
    """For which of its pods the others wait, that use their GPUs more; see ``SlowestRank``."""

    pod: str
    mean: float
    median: float


class BesideRow(View, frozen=True, kw_only=True):
    """A device that a job is on, with all that is on it."""

    node: str
    device: DeviceRow


class CurveRow(View, frozen=True, kw_only=True):
    """Over a life: a point each ``step_seconds``, the first at ``start``; ratios, MiB, cores.

    ``cpu_cores`` is empty where nothing was ever known of it; ``cpu_limit`` of what runs now.
    """

    start: float
    step_seconds: int
    busy: tuple[float | None, ...]
    memory_mib: tuple[float | None, ...]
    cpu_cores: tuple[float | None, ...]
    cpu_limit: float | None


class RankRow(View, frozen=True, kw_only=True):
    """A pod of a gang, with its use at each point."""

    pod: str
    busy: tuple[float | None, ...]


class RanksRow(View, frozen=True, kw_only=True):
    """Over time, as far as this leader saw it: a point each ``step_seconds``, from ``start`` on."""

    start: float
    step_seconds: int
    pods: tuple[RankRow, ...]


class Used(View, frozen=True, kw_only=True):
    """What a job did with its GPUs so far, or did."""

    gpu_hours: float
    used_gpu_hours: float | None
    idle_gpu_hours: float | None
    mean: float | None
    p50: float | None
    p95: float | None
    peak_mib: int | None
    cap_mib: int | None


class Ranked(View, frozen=True, kw_only=True):
    """A trial that succeeded."""

    trial: int
    value: float
    parameters: dict[str, str]


class SweepRow(View, frozen=True, kw_only=True):
    """A search; ``trials`` by state: waiting, running, succeeded, pruned, failed."""

    ref: WorkRef
    project: str
    phase: Phase
    objective: str
    goal: str
    trials: int
    counts: dict[str, int]
    best: Ranked | None
    message: str
    created: float
