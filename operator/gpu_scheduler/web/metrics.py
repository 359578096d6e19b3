"""Prometheus metrics of the operator (prefix ``gpusched_``, base units).

Gauges about the cluster are computed when they are asked for, at most once a second
(``exposition``), from the state that is there anyway; nothing is counted twice. Histograms are fed
as ``runtime.observations.Observations``.
"""

import time
from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpu_scheduler import __version__
from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.core.model.decision import EvictReason
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.kube.client import Client
from gpu_scheduler.runtime.gang_guard import CAUSES
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.state.jobs import GPUJobRecord
from gpu_scheduler.web.unexpected import unexpected_errors

_CYCLE_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_REASON_SECONDS = 2.0
_STALL_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """One process' metrics. ``operator`` is set once this replica leads."""

    def __init__(self, client: Client) -> None:
        """Metrics of this client and, later, of the operator."""
        self.registry = CollectorRegistry()
        self.operator: Operator | None = None
        self._client = client
        self._cycle = Histogram(
            "gpusched_scheduling_cycle_seconds",
            "Duration of a planning cycle.",
            buckets=_CYCLE_BUCKETS,
            registry=self.registry,
        )
        self._bind = Histogram(
            "gpusched_bind_seconds",
            "Duration of the write that places a pod.",
            buckets=_CYCLE_BUCKETS,
            registry=self.registry,
        )
        self._stall = Histogram(
            "gpusched_event_loop_stall_seconds",
            "How late the event loop came back to a timer that rings 20 times a second.",
            buckets=_STALL_BUCKETS,
            registry=self.registry,
        )
        self.registry.register(self)

    def stall_seconds(self, seconds: float) -> None:
        """See ``StallWatch``."""
        self._stall.observe(seconds)

    def bind_seconds(self, seconds: float) -> None:
        """See ``Observations``."""
        self._bind.observe(seconds)

    def cycle_seconds(self, seconds: float) -> None:
        """See ``Observations``."""
        self._cycle.observe(seconds)

    def describe(self) -> Iterable[Metric]:
        """Names are not checked for collisions at registration."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Everything that is computed when asked for."""
        build = GaugeMetricFamily("gpusched_build_info", "Version.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield GaugeMetricFamily(
            "gpusched_leader", "1 while this replica leads.", value=float(self.operator is not None)
        )
        requests = CounterMetricFamily(
            "gpusched_api_requests", "Requests to the API server.", labels=["method", "outcome"]
        )
        for (method, outcome), count in sorted(self._client.requests.items()):
            requests.add_metric([method, outcome], count)
        yield requests
        waiting = self.operator is not None and self.operator.term.waiting_for != ""
        yield GaugeMetricFamily(
            "gpusched_waiting_for_term",
            "1 while this leader places nothing, because the API server refuses its term.",
            value=float(waiting),
        )
        yield unexpected_errors()
        if self.operator is not None:
            yield from _cluster(self.operator)
            yield from _jobs(self.operator)
            yield from _counts(self.operator)


def _cluster(operator: Operator) -> Iterable[Metric]:
    state = operator.state
    cluster = state.snapshot()
    ratio = GaugeMetricFamily(
        "gpusched_gpu_allocated_ratio",
        "Share of a device that is given out.",
        labels=["node", "gpu", "model"],
    )
    for n, node in enumerate(cluster.nodes):
        for d in range(cluster.first[n], cluster.first[n + 1]):
            used = (DEVICE_MILLI - cluster.free_milli[d]) / DEVICE_MILLI
            ratio.add_metric([node.name, cluster.dev_id[d], cluster.dev_model[d]], used)
    yield ratio
    yield _unlisted(operator)
    share = GaugeMetricFamily("gpusched_project_fair_share_gpus", "Due.", labels=["project"])
    quota = GaugeMetricFamily("gpusched_project_quota_gpus", "Guaranteed.", labels=["project"])
    held = GaugeMetricFamily("gpusched_project_allocated_gpus", "Held.", labels=["project"])
    for name, record in sorted(state.projects.records.items()):
        quota.add_metric([name], record.project.quota_milli / DEVICE_MILLI)
        held.add_metric([name], cluster.allocated_milli.get(name, 0) / DEVICE_MILLI)
        due = operator.plan.shares_milli.get(name, 0)
        share.add_metric([name], due / DEVICE_MILLI)
    yield share
    yield quota
    yield held


def _unlisted(operator: Operator) -> Metric:
    unlisted = GaugeMetricFamily(
        "gpusched_unlisted_device_milli",
        "Milli-GPU that pods hold on devices that their node does not list; it takes no others.",
        labels=["node"],
    )
    for node, held in sorted(operator.state.ledger.unlisted.items()):
        unlisted.add_metric([node], sum(held.values()))
    return unlisted


def _jobs(operator: Operator) -> Iterable[Metric]:
    phases = Counter(
        str(job.status.get("phase", "Pending")) for job in operator.state.gpujobs.values()
    )
    jobs = GaugeMetricFamily("gpusched_jobs", "GPUJobs by phase.", labels=["phase"])
    for phase, count in sorted(phases.items()):
        jobs.add_metric([phase], count)
    yield jobs
    yield GaugeMetricFamily(
        "gpusched_jobs_without_reason",
        "GPUJobs older than two seconds that neither run nor have ended and say no reason: 0.",
        value=without_reason(operator.state.gpujobs.values(), time.time()),
    )
    reasons = Counter(str(wait.reason) for wait in operator.plan.waits.values())
    pending = GaugeMetricFamily("gpusched_pending_jobs", "Waiting GPUJobs.", labels=["reason"])
    for reason, count in sorted(reasons.items()):
        pending.add_metric([reason], count)
    yield pending
    aside = GaugeMetricFamily(
        "gpusched_set_aside",
        "Objects that the planner cannot work with and leaves out: above 0 there is a defect.",
        labels=["kind"],
    )
    for kind, count in operator.plan.aside.counts().items():
        aside.add_metric([kind], count)
    yield aside
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
    attempts = CounterMetricFamily(
        "gpusched_scheduling_attempts", "Placing writes by result.", labels=["result"]
    )
    for result, count in sorted(operator.binder.results.items()):
        attempts.add_metric([result], count)
    yield attempts
    counts = operator.evictor.counts
    for name, key, text in (
        ("rejected_pods", "rejected", "Pods that a kubelet rejected, marked in time."),
        ("budgets_overruled", "budget_overruled", "Deleted for a guarantee against a budget."),
        ("retries_charged_by_race", "charged_by_race", "Marked too late: a retry was charged."),
        ("not_started_pods", "not_started", "Pods that did not start in time and were evicted."),
        ("stuck_pods", "stuck", "Placed pods that could not start and were evicted."),
        ("over_cap_pods", "over_cap", "Pods evicted for holding more memory than their cap."),
        ("overbooked_pods", "overbooked", "Pods evicted from a device above capacity: stays 0."),
    ):
        yield CounterMetricFamily(f"gpusched_{name}", text, value=counts[key])
    preemptions = CounterMetricFamily(
        "gpusched_preemptions",
        "Pods evicted for others: reclaim (fair share) or priority (inside a project).",
        labels=["reason"],
    )
    for reason in EvictReason:
        preemptions.add_metric([reason], operator.preemption.counts[reason])
    yield preemptions
    releases = CounterMetricFamily(
        "gpusched_gang_releases",
        "Gangs that gave back what they had: a member found no place in time (incomplete), could "
        "not be placed (placement), or could not start there (member).",
        labels=["cause"],
    )
    for cause in CAUSES:
        releases.add_metric([cause], operator.gangs.counts[cause])
    yield releases
    reports = CounterMetricFamily(
        "gpusched_trial_reports", "Reports of trials by HTTP status.", labels=["code"]
    )
    for code, count in sorted(operator.reports.answers.items()):
        reports.add_metric([str(code)], count)
    yield reports
    yield CounterMetricFamily(
        "gpusched_pruned_trials_ended",
        "Trials that were told to stop, did not, and were evicted.",
        value=operator.pruning.ended,
    )
    yield from _holders(operator)
    violations = CounterMetricFamily(
        "gpusched_memory_limit_violations",
        "Containers that went above their memory cap, as their agents reported.",
        labels=["project", "policy"],
    )
    for (project, policy), count in sorted(operator.overcap.violations.items()):
        violations.add_metric([project, policy], count)
    yield violations


def _holders(operator: Operator) -> Iterable[Metric]:
    if operator.settings.holders == "off":
        return
    devices = GaugeMetricFamily(
        "gpusched_holders",
        "GPUs that need a holder pod: held, waiting for the stock scheduler, or missing.",
        labels=["state"],
    )
    for state, count in operator.holders.states().items():
        devices.add_metric([state], count)
    yield devices
    failures = CounterMetricFamily(
        "gpusched_holder_failures",
        "Holder pods that the API server refused, or that ended before their time.",
        labels=["reason"],
    )
    for reason in ("refused", "ended"):
        failures.add_metric([reason], operator.holders.counts[reason])
    yield failures
