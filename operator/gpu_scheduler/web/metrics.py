"""Prometheus metrics of the operator (prefix ``gpusched_``, base units).

Gauges about the cluster are computed when they are asked for, at most once a second
(``exposition``), from the state that is there anyway; nothing is counted twice. Those that take a
pass over all that waits or holds GPUs are looked at before (``look``), in pieces. Histograms are
fed as ``runtime.common.observations.Observations``.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import accumulate

from prometheus_client import Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.core.model.decision import EvictReason
from gpu_scheduler.core.steps import STEPS
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.kube.watches import Watches
from gpu_scheduler.runtime.binding.gang_guard import CAUSES
from gpu_scheduler.runtime.common.pending import Pending
from gpu_scheduler.runtime.event_reasons import EVICTION_CAUSES
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.runtime.reports.token_reviews import RESULTS
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.state.pods.pod import Stage
from gpu_scheduler.usage.figures import ClusterUse
from gpu_scheduler.web import (
    cluster_metrics,
    dashboard_metrics,
    pending_metrics,
    sweep_metrics,
    usage_metrics,
)
from gpu_scheduler.web.collector import Collector, filled, labelled
from gpu_scheduler.web.dashboard_metrics import DashboardFigures
from gpu_scheduler.web.gc_pauses import GcPauses

_CYCLE_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_STEP_BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_REASON_SECONDS = 2.0
_WORK_BUCKETS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)
_STALL_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class OperatorMetrics(Collector):
    """One process' metrics. ``operator`` is set once this replica leads.

    ``use`` as well, where what GPUs do is followed: looks at it now. ``dashboard`` where that is
    served.
    """

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        """Metrics of this client and process and, later, of the operator."""
        super().__init__(clock)
        self.operator: Operator | None = None
        self.use: Callable[[], Awaitable[ClusterUse]] | None = None
        self.dashboard: DashboardFigures | None = None
        self._client = client
        self._used: ClusterUse | None = None
        self._pending = Pending()
        self._cycle = self._seconds(
            "scheduling_cycle", "Duration of a planning cycle.", _CYCLE_BUCKETS
        )
        self._steps = [[0] * (len(_STEP_BUCKETS) + 1) for _ in STEPS]
        self._step_sums = [0.0] * len(STEPS)
        self._bind = self._seconds(
            "bind", "Duration of the write that places a pod.", _CYCLE_BUCKETS
        )
        self._queue_wait = self._of_work(
            "queue_wait", "From the beginning of work until it got its first GPU."
        )
        self._job_run = self._of_work(
            "job_run", "From the first GPU of a GPUJob that is over until its last."
        )
        self.gc_pauses = GcPauses()
        self._stall = self._seconds(
            "event_loop_stall",
            "How late the event loop came back to a timer that rings 20 times a second.",
            _STALL_BUCKETS,
        )

    def _seconds(self, name: str, text: str, buckets: Sequence[float]) -> Histogram:
        full = f"gpusched_{name}_seconds"
        return Histogram(full, text, buckets=buckets, registry=self.registry)

    def _of_work(self, name: str, text: str) -> Histogram:
        full = f"gpusched_{name}_seconds"
        return Histogram(full, text, ["type"], buckets=_WORK_BUCKETS, registry=self.registry)

    def missing(self) -> str:
        """What a leader cannot see, for ``/readyz``; a stand-by looks at nothing."""
        return self._client.watches.missing()

    def stall_seconds(self, seconds: float) -> None:
        """See ``StallWatch``."""
        self._stall.observe(seconds)

    def bind_seconds(self, seconds: float) -> None:
        """See ``Observations``."""
        self._bind.observe(seconds)

    def queue_wait_seconds(self, seconds: float, work_type: str) -> None:
        """See ``Observations``."""
        self._queue_wait.labels(work_type).observe(seconds)

    def job_run_seconds(self, seconds: float, work_type: str) -> None:
        """See ``Observations``."""
        self._job_run.labels(work_type).observe(seconds)

    def cycle_seconds(self, seconds: float, steps: Sequence[float]) -> None:
        """See ``Observations``; steps are counted by hand, in a third of the time."""
        self._cycle.observe(seconds)
        for number, took in enumerate(steps):
            self._steps[number][bisect_left(_STEP_BUCKETS, took)] += 1
            self._step_sums[number] += took

    async def look(self) -> None:
        """Look at what ``figures`` cannot do in one piece; what cannot be seen is not told."""
        if self.operator is not None:
            self._pending = await self.operator.common.pending()
        self._used = None
        if self.use is not None:
            try:
                self._used = await self.use()
            except Exception:
                unexpected("usage", "the cluster's figures")

    def figures(self) -> Iterable[Metric]:
        """Of this replica and, once it leads, of the cluster."""
        yield GaugeMetricFamily(
            "gpusched_leader", "1 while this replica leads.", value=float(self.operator is not None)
        )
        yield self.gc_pauses.figures()
        requests = CounterMetricFamily(
            "gpusched_api_requests", "Requests to the API server.", labels=["method", "outcome"]
        )
        yield filled(requests, sorted(self._client.requests.items()))
        family = HistogramMetricFamily(
            "gpusched_planning_step_seconds",
            "Duration of a plan's steps; of cycles below 1 ms only where something changed.",
            labels=["step"],
        )
        bounds = [*map(str, _STEP_BUCKETS), "+Inf"]
        for step, counts, total in zip(STEPS, self._steps, self._step_sums, strict=True):
            buckets = [*zip(bounds, accumulate(counts), strict=True)]
            family.add_metric([step], buckets, total)
        yield family
        waiting = self.operator is not None and self.operator.binding.term.waiting_for != ""
        yield GaugeMetricFamily(
            "gpusched_waiting_for_term",
            "1 while this leader places nothing, because the API server refuses its term.",
            value=float(waiting),
        )
        if self.operator is not None:
            yield _watches(self._client.watches)
            yield from self._cluster(self.operator)
            yield from _jobs(self.operator)
            state = self.operator.state
            yield from sweep_metrics.figures(state.gpujobs.values(), state.projects)
            yield from _counts(self.operator)
        if self.dashboard is not None:
            yield from dashboard_metrics.figures(self.dashboard)
        if self._used is not None:
            yield from usage_metrics.figures(self._used)

    def _cluster(self, operator: Operator) -> Iterable[Metric]:
        state, plan = operator.state, operator.common.plan
        cluster = state.snapshot()
        yield from cluster_metrics.nodes(state, cluster, self._pending.piece_milli)
        yield from cluster_metrics.projects(state, cluster, plan.shares_milli)
        yield from pending_metrics.figures(self._pending, operator.common.clock.now())


def _watches(watches: Watches) -> Metric:
    seconds = watches.seconds().items()
    return labelled(
        GaugeMetricFamily,
        "gpusched_watch_lost_seconds",
        "For how long the watch of a collection has been refused; 0 while it is open.",
        "resource",
        ((path.rpartition("/")[2], each) for path, each in seconds),
    )


def _jobs(operator: Operator) -> Iterable[Metric]:
    phases = Counter(
        str(job.status.get("phase", "Pending")) for job in operator.state.gpujobs.values()
    )
    yield labelled(
        GaugeMetricFamily,
        "gpusched_jobs",
        "GPUJobs by phase.",
        "phase",
        sorted(phases.items()),
    )
    yield GaugeMetricFamily(
        "gpusched_jobs_without_reason",
        "GPUJobs older than two seconds that neither run nor have ended and say no reason: 0.",
        value=without_reason(operator.state.gpujobs.values(), operator.common.clock.now()),
    )
    pods = operator.state.pods.known.values()
    stages = Counter(pod.stage for pod in pods if pod.share is not None)
    live = (stage for stage in Stage if stage is not Stage.ENDED)
    yield labelled(
        GaugeMetricFamily,
        "gpusched_share_pods",
        "Pods that ask for a share by themselves: waiting, blocked by others, placed or running.",
        "state",
        ((stage.value, stages[stage]) for stage in live),
    )
    yield labelled(
        GaugeMetricFamily,
        "gpusched_set_aside",
        "Objects that the planner cannot work with and leaves out: above 0 there is a defect.",
        "kind",
        operator.common.plan.quarantine.counts().items(),
    )
    yield GaugeMetricFamily(
        "gpusched_waiting_pods", "Pods that need a decision.", value=len(operator.state.waiting)
    )


def without_reason(jobs: Iterable[GPUJobRecord], now: float) -> int:
    """How many jobs do not say what they wait for (``now``: epoch seconds)."""
    return sum(
        1
        for job in jobs
        if not job.deleting
        and job.status.get("phase", Phase.PENDING) == Phase.PENDING
        and not job.status.get("reason")
        and now - job.created_seconds > _REASON_SECONDS
    )


def _counts(operator: Operator) -> Iterable[Metric]:
    yield labelled(
        CounterMetricFamily,
        "gpusched_scheduling_attempts",
        "Placing writes by result.",
        "result",
        sorted(operator.binding.binder.results.items()),
    )
    counts = operator.eviction.evictor.counts
    for name, key, text in (
        ("rejected_pods", "rejected", "Pods that a kubelet rejected, marked in time."),
        ("budgets_overruled", "budget_overruled", "Deleted for a guarantee against a budget."),
        ("retries_charged_by_race", "charged_by_race", "Marked too late: a retry was charged."),
        *((f"{each.counter}_pods", each.counter, each.counted) for each in EVICTION_CAUSES),
    ):
        yield CounterMetricFamily(f"gpusched_{name}", text, value=counts[key])
    evicted = operator.eviction.preemption.counts
    yield labelled(
        CounterMetricFamily,
        "gpusched_preemptions",
        "Pods evicted for others: reclaim (fair share) or priority (inside a project).",
        "reason",
        ((reason, evicted[reason]) for reason in EvictReason),
    )
    seconds = operator.eviction.preemption.costs.lost_gpu_seconds
    yield labelled(
        CounterMetricFamily,
        "gpusched_lost_gpu_seconds",
        "Work that evicted pods lost: since they started or last saved it, by the same reasons.",
        "reason",
        ((reason, seconds[reason]) for reason in EvictReason),
    )
    yield labelled(
        CounterMetricFamily,
        "gpusched_gang_releases",
        "Gangs that gave back what they had: a member found no place in time (incomplete), could "
        "not be placed (placement), or could not start there (member).",
        "cause",
        ((cause, operator.binding.gangs.counts[cause]) for cause in CAUSES),
    )
    yield labelled(
        CounterMetricFamily,
        "gpusched_trial_reports",
        "Reports of trials by HTTP status.",
        "code",
        sorted(operator.sweeping.reports.answers.items()),
    )
    yield labelled(
        CounterMetricFamily,
        "gpusched_checkpoint_reports",
        "Reports of checkpoints by HTTP status.",
        "code",
        sorted(operator.reports.checkpoints.answers.items()),
    )
    results = operator.reports.token_reviews.results
    yield labelled(
        CounterMetricFamily,
        "gpusched_token_reviews",
        "Tokens of reports that the API server was asked about: accepted, refused, or failed.",
        "result",
        ((each, results[each]) for each in RESULTS),
    )
    yield CounterMetricFamily(
        "gpusched_pruned_trials_ended",
        "Trials that were told to stop, did not, and were evicted.",
        value=operator.sweeping.evicted,
    )
    yield from _holders(operator)
    violations = CounterMetricFamily(
        "gpusched_memory_limit_violations",
        "Containers that went above their memory cap, as their agents reported.",
        labels=["project", "policy"],
    )
    yield filled(violations, sorted(operator.eviction.overcap.violations.items()))


def _holders(operator: Operator) -> Iterable[Metric]:
    if operator.common.settings.holders == "off":
        return
    yield labelled(
        GaugeMetricFamily,
        "gpusched_holders",
        "GPUs that need a holder pod: held, waiting for the stock scheduler, or missing.",
        "state",
        operator.binding.holders.states().items(),
    )
    counts = operator.binding.holders.counts
    yield labelled(
        CounterMetricFamily,
        "gpusched_holder_failures",
        "Holder pods that the API server refused, or that ended before their time.",
        "reason",
        ((each, counts[each]) for each in ("refused", "ended")),
    )
