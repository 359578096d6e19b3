"""GPUUsage: what the work in a namespace does with its GPUs; one object, named ``current``.

Beside it one named ``cluster`` in the operator's namespace, which keeps charts over a change of
leader and says nothing else.

Written by the operator, at most once a minute and only when a figure moved. Who may view the
namespace may read it, so a tenant's ``kubectl gpu top jobs``, ``report``, ``advise`` and ``idle``
need nothing else. Percentages are whole numbers; what nobody knows is absent, never 0. The CRD is
generated from these classes.
"""

from typing import Annotated, Literal

from pydantic import Field

from gpu_scheduler.api.advice import MOST, MOST_RULES, Advice, AdviceEvent, Time
from gpu_scheduler.api.job_usage import MOST_ROLES, RoleUsage
from gpu_scheduler.api.model import ApiModel

NAME = "current"
CLUSTER_NAME = "cluster"  # in the operator's namespace: charts of the cluster and its projects
MOST_CHART_CHARS = 900_000
MOST_BYTES = 128 * 1024
POINTS = 60  # of a curve
MOST_WORKLOADS = 1000

Percent = Annotated[int, Field(ge=0, le=100)]
Whole = Annotated[int, Field(ge=0)]


class Busy(ApiModel):
    """Share of time, in percent, in which kernels of the workload ran on its GPUs."""

    now: Percent | None = Field(None, description="Of the last ten seconds.")
    mean: Percent | None = Field(None, description="Since it began.")
    p50: Percent | None = Field(None, description="Half of the time it was at most this.")
    p95: Percent | None = Field(None, description="For 95 % of the time it was at most this.")


class MemoryUse(ApiModel):
    """Device memory, MiB, of all its GPUs together; ``peak`` and ``cap`` of the fullest one."""

    now: Whole | None = Field(None, description="In use.")
    peak: Whole | None = Field(None, description="Most that one container held on one GPU.")
    cap: Whole | None = Field(None, description="What that container may hold there.")


class HostUse(ApiModel):
    """CPU and memory of its nodes, of all its containers with GPUs together."""

    cpu_milli: Whole | None = Field(None, description="Cores in use, thousandths.")
    cpu_limit_milli: Whole | None = Field(None, description="Its limits; absent: one has none.")
    ram_mib: Whole | None = Field(None, description="Memory in use, MiB.")
    ram_limit_mib: Whole | None = Field(None, description="Its limits; absent: one has none.")


class Curve(ApiModel):
    """Its life in at most 60 points, the oldest first; -1 where nobody knows."""

    step_seconds: int = Field(ge=10, description="Between two points.")
    busy_percent: list[int] = Field(max_length=POINTS, description="Mean of each step.")
    memory_mib: list[int] = Field(max_length=POINTS, description="Most in each step, of one GPU.")
    cpu_percent: list[int] | None = Field(
        None,
        max_length=POINTS,
        description="Of one core, as seen once a minute: 250 is two and a half; absent: unknown.",
    )


class SlowestRank(ApiModel):
    """Of pods that do the same and wait for each other: the one that uses its GPUs least."""

    pod: str = Field(max_length=253, description="Its name.")
    mean_percent: Percent = Field(description="Share of time with a kernel, since it began.")
    median_percent: Percent = Field(description="The same of half of the ranks is at most this.")
    ranks: Whole = Field(description="Pods whose use is known.")


class Workload(ApiModel):
    """A GPUJob, or who owns pods that ask for a share by themselves."""

    kind: str = Field(max_length=63, description="GPUJob, Deployment, StatefulSet, Pod …")
    name: str = Field(max_length=253, description="Its name.")
    uid: str | None = Field(None, max_length=36, description="Of a GPUJob.")
    project: str | None = Field(None, max_length=63, description="The GPUProject that is charged.")
    type: Literal["training", "interactive", "service"] = Field(
        "training", description="What it is for, which decides what advice it can get."
    )
    state: Literal["Running", "Ended"] = Field(description="Whether it holds GPUs now.")
    pods: Whole = Field(0, description="Pods that hold GPUs; of one that ended: that held some.")
    gpus: float = Field(0, ge=0, description="GPUs that it holds; of one that ended: held at most.")
    started_at: Time | None = Field(None, description="When it got its first GPU.")
    ended_at: Time | None = Field(None, description="When it gave back the last.")
    gpu_seconds: Whole = Field(0, description="GPUs × seconds that it held.")
    used_gpu_seconds: Whole | None = Field(
        None,
        description="Of these used: time with a kernel, at most the share; absent: not known.",
    )
    busy: Busy = Field(Busy.model_validate({}), description="Use of its GPUs.")
    memory_mib: MemoryUse = Field(MemoryUse.model_validate({}), description="Device memory.")
    host: HostUse = Field(HostUse.model_validate({}), description="CPU and memory beside it.")
    idle_since: Time | None = Field(
        None, description="No kernel of it was seen since then; absent: it is not idle."
    )
    advice: list[Advice] = Field(
        default_factory=list, max_length=MOST, description="What to change; the first matters most."
    )
    advice_since: Time | None = Field(
        None,
        description="When the first of it, or silence after it, began: it stays for an hour.",
    )
    advice_events: list[AdviceEvent] | None = Field(
        None, max_length=MOST_RULES, description="Events of the last day, one a rule."
    )
    curve: Curve | None = Field(None, description="Use over its life.")
    roles: list[RoleUsage] | None = Field(
        None,
        max_length=MOST_ROLES,
        description="Its sums by role, in the order of their names; absent: it has none.",
    )
    slowest_rank: SlowestRank | None = Field(
        None, description="For whom the others wait; absent: it is no gang of several pods."
    )


class GPUUsageStatus(ApiModel):
    """What was seen."""

    observed_at: Time | None = Field(None, description="Of which moment these figures are.")
    gpus: float = Field(0, ge=0, description="GPUs that the namespace holds.")
    workloads: list[Workload] = Field(
        default_factory=list,
        max_length=MOST_WORKLOADS,
        description="Those that run, and those that ended in the last seven days.",
    )
    omitted: Whole = Field(
        0, description="Workloads that are left out, as the object would be too large: the least."
    )
    charts: str | None = Field(
        None,
        max_length=MOST_CHART_CHARS,
        description="Of the object cluster alone: GPUs of the cluster and of projects over an hour "
        "and a week, in a form of the operator's.",
    )
