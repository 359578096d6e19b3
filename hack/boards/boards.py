"""What the four boards show.

Sums over jobs come from the chart's recording rules, so a board of 10,000 jobs asks for as many
series as there are projects and namespaces. ``max`` before a sum: while the leader changes, two
replicas may tell the same figure.
"""

from boards.grafana import Board, Panel, Variable, bars, lines, stacks, stat, table

_P = '{project=~"$project"}'
_OF = '{project=~"$project", namespace=~"$namespace"}'
_JOB = '{project=~"$project", namespace=~"$namespace", gpujob=~"$gpujob"}'
_M = '{model=~"$model"}'
MODEL = Variable("model", "model", "gpusched_gpu_allocated_ratio")
PROJECT = Variable("project", "project", "gpusched_project_quota_gpus")
NAMESPACE = Variable("namespace", "namespace", f"namespace_project:gpusched_gpujobs:count{_P}")
GPUJOB = Variable("gpujob", "gpujob", f"gpusched_gpujob_info{_OF}", all=False)
_DEVICE = "node, gpu, uuid, model"
_RATIO = "percentunit"


def _project(figure: str) -> str:
    return f"sum(max by (project) (gpusched_project_{figure}_gpus{_P}))"


def _each(series: str, by: str, where: str = _P) -> tuple[str, str]:
    """A query, and its series' names: the last of the labels that it is kept apart by."""
    return f"max by ({by}) ({series}{where})", f"{{{{{by.split()[-1]}}}}}"


def _recorded(figure: str, called: str = "") -> tuple[str, str]:
    query = f"sum by (namespace) (namespace_project:gpusched_gpujob_{figure}:sum{_OF})"
    return query, f"{{{{namespace}}}} {called}".rstrip()


def _job(figure: str, called: str = "") -> tuple[str, str]:
    query, name = _each(f"gpusched_gpujob_{figure}", "namespace, gpujob", _JOB)
    return query, f"{name} {called}".rstrip()


def _of_devices(series: str, labels: str = "") -> str:
    return f"max by ({_DEVICE}{labels}) (gpusched_gpu_{series}{_M})"


def _device(name: str, series: str, unit: str, **more: object) -> Panel:
    return lines(name, (_of_devices(series), "{{node}} {{gpu}}"), unit=unit, **more)


def _quantiles(name: str, series: str, by: str = "") -> Panel:
    labels = f"{by}, le" if by else "le"
    rate = f"sum by ({labels}) (rate({series}_bucket[$__rate_interval]))"
    named = f"{{{{{by}}}}} " if by else ""
    half = f"histogram_quantile(0.5, {rate})", f"{named}half"
    most = f"histogram_quantile(0.99, {rate})", f"{named}99 %"
    return lines(name, half, most, unit="s")


def _rate(name: str, series: str, by: str) -> Panel:
    expr = f"sum by ({by}) (rate({series}[$__rate_interval]))"
    return lines(name, (expr, "{{" + by + "}}"), unit="ops")


_WHY = stacks(
    "Why jobs wait",
    (
        f"sum by (reason) (max by (reason, project, type) (gpusched_pending_jobs{_P}))",
        "{{reason}}",
    ),
)
CLUSTER = Board(
    "cluster",
    "GPUs / Cluster",
    "Where are the GPUs, are they used, and who waits?",
    (MODEL, PROJECT, NAMESPACE),
    (
        stat("GPUs", f"count({_of_devices('allocated_ratio')})"),
        stat("Given out", f"avg({_of_devices('allocated_ratio')})", _RATIO),
        stat("Used", f"avg({_of_devices('utilization_ratio')})", _RATIO),
        stat("Held idle", 'sum(max by (state) (gpusched_gpus{state="idle"}))'),
        stat("In pieces", "max(gpusched_fragmented_gpus)"),
        stat("Agents not heard", "sum(max by (node) (gpusched_agent_silent))"),
        stacks(
            "Where the GPUs are",
            _each("gpusched_gpus", "state", ""),
            width=12,
            text="Each GPU adds up to exactly one.",
        ),
        lines(
            "Given out and used",
            (f"model:gpusched_gpu_allocated_ratio:avg{_M}", "{{model}} given out"),
            (f"model:gpusched_gpu_utilization_ratio:avg{_M}", "{{model}} used"),
            unit=_RATIO,
            width=12,
            most=1,
        ),
        stacks("Held by projects", _each("gpusched_project_allocated_gpus", "project")),
        stacks("Asked for by what waits", _each("gpusched_project_pending_gpus", "project")),
        _WHY,
        bars(
            "Nodes, given out",
            _RATIO,
            "max by (node) (gpusched_node_gpus_allocated) / max by (node) (gpusched_node_gpus)",
            "{{node}}",
            most=1,
        ),
        stacks("Advice", _each("gpusched_advice", "rule", "")),
        stacks("Held and not used for an hour", _recorded("idle_gpus")),
        _device("Use", "utilization_ratio", _RATIO, most=1),
        _device("Tensor cores", "tensor_ratio", _RATIO, most=1),
        _device("Memory", "memory_used_bytes", "bytes"),
        _device("Power", "power_watts", "watt"),
        _device("Heat", "temperature_celsius", "celsius"),
        lines(
            "Throttled",
            (f"avg by (model, reason) (gpusched_gpu_throttled{_M})", "{{model}} {{reason}}"),
            unit=_RATIO,
        ),
        table("XIDs since the agent's start", _of_devices("xid_total", ", code")),
        table("ECC errors", _of_devices("ecc_errors_total")),
        table("Remapped rows of memory", _of_devices("remapped_rows_total", ", errors")),
        _quantiles("Until work got its first GPU", "gpusched_queue_wait_seconds", "type"),
        _quantiles("How long GPUJobs ran", "gpusched_job_run_seconds", "type"),
    ),
)

_RATE = f"by (type) (project_type:gpusched_gpu_%sseconds:rate5m{_P})"
PROJECTS = Board(
    "project",
    "GPUs / Project",
    "What is a project promised, what does it hold, and does it use it?",
    (PROJECT, NAMESPACE),
    (
        stat("Guaranteed", _project("quota")),
        stat("Held", _project("allocated")),
        stat("Borrowed", _project("borrowed")),
        stat("Waiting for", _project("pending")),
        stat(
            "Longest wait inside quota",
            f"max(gpusched_pending_inside_quota_seconds{_OF}) or vector(0)",
            "s",
        ),
        stat("Work with GPUs", f"sum(namespace_project:gpusched_gpujobs:count{_OF})"),
        lines(
            "Promised and held",
            (_project("quota"), "guaranteed"),
            (_project("limit"), "limit"),
            (_project("fair_share"), "fair share"),
            (_project("allocated"), "held"),
            (_project("pending"), "waiting for"),
            width=12,
        ),
        lines(
            "Held and busy",
            _recorded("allocated_gpus", "held"),
            _recorded("busy_gpus", "busy"),
            width=12,
        ),
        stacks("GPUs held and not used for an hour", _recorded("idle_gpus")),
        lines(
            "GPU memory",
            _recorded("gpu_memory_used_bytes", "used"),
            _recorded("gpu_memory_limit_bytes", "limit"),
            unit="bytes",
        ),
        _WHY,
        stacks("CPU", _recorded("cpu_used_cores")),
        stacks("Memory", _recorded("ram_used_bytes"), unit="bytes"),
        lines(
            "GPU-hours each hour, held and idle",
            (f"sum {_RATE % ''}", "{{type}} held"),
            (f"sum {_RATE % 'idle_'}", "{{type}} idle"),
        ),
        table(
            "GPU-hours in this time",
            f"sum by (project, type) (increase(gpusched_gpu_seconds_total{_P}[$__range])) / 3600",
        ),
        table(
            "Who holds most",
            f"topk(20, max by (namespace, gpujob, project) (gpusched_gpujob_allocated_gpus{_OF}))",
        ),
    ),
)

JOB = Board(
    "job",
    "GPUs / Job",
    "What does a job do with what it holds?",
    (PROJECT, NAMESPACE, GPUJOB),
    (
        table(
            "Work",
            f"max by (namespace, gpujob, project, type) (gpusched_gpujob_info{_JOB})",
            hides=("Value",),
        ),
        table(
            "Longest idle",
            f"topk(20, max by (namespace, gpujob) (gpusched_gpujob_idle_seconds{_OF}))",
            "s",
        ),
        lines(
            "GPUs asked for and held",
            _job("requested_gpus", "asked for"),
            _job("allocated_gpus", "held"),
        ),
        lines(
            "Use of its GPUs",
            _job("gpu_utilization_ratio"),
            unit=_RATIO,
            text="Share of time with a kernel of its own. Unknown where the driver does not tell.",
            most=1,
        ),
        lines("Since the last kernel", _job("idle_seconds"), unit="s"),
        lines(
            "GPU memory",
            _job("gpu_memory_used_bytes", "used"),
            _job("gpu_memory_limit_bytes", "limit"),
            unit="bytes",
        ),
        lines("CPU", _job("cpu_used_cores")),
        lines("Memory", _job("ram_used_bytes"), unit="bytes"),
        stacks(
            "Trials of sweeps",
            (
                f"max by (namespace, gpujob, state) (gpusched_sweep_trials{_JOB})",
                "{{gpujob}} {{state}}",
            ),
        ),
        lines(
            "Best objective of sweeps",
            _each("gpusched_sweep_best_objective", "namespace, gpujob", _JOB),
        ),
    ),
)

OPERATOR = Board(
    "operator",
    "GPUs / Operator",
    "Is the scheduler well?",
    (),
    (
        stat("Leaders", "sum(gpusched_leader)", text="1; 0: nobody places anything."),
        stat("Waiting for its term", "max(gpusched_waiting_for_term)"),
        stat("Longest lost watch", "max(gpusched_watch_lost_seconds)", "s"),
        stat("Set aside", "sum(max by (kind) (gpusched_set_aside))", text="Above 0: a defect."),
        stat("Without a reason", "max(gpusched_jobs_without_reason)", text="Above 0: a defect."),
        stat("Agents that do not answer", "max(gpusched_silent_agents)"),
        _quantiles("A planning cycle", "gpusched_scheduling_cycle_seconds"),
        _quantiles("Steps of a plan", "gpusched_planning_step_seconds", "step"),
        _quantiles("The write that places a pod", "gpusched_bind_seconds"),
        _rate("Placing writes", "gpusched_scheduling_attempts_total", "result"),
        _rate("Requests to the API server", "gpusched_api_requests_total", "outcome"),
        _quantiles("Stalls of the event loop", "gpusched_event_loop_stall_seconds"),
        _quantiles("Pauses of the garbage collector", "gpusched_gc_pause_seconds"),
        _rate("Unexpected errors", "gpusched_unexpected_errors_total", "loop"),
        _rate("Evictions for others", "gpusched_preemptions_total", "reason"),
        _rate("GPU-seconds lost by evictions", "gpusched_lost_gpu_seconds_total", "reason"),
        lines(
            "Pods evicted for their own sake",
            *(
                (f"sum(rate(gpusched_{name}_pods_total[$__rate_interval]))", name.replace("_", " "))
                for name in ("over_cap", "stuck", "not_started", "overbooked", "rejected")
            ),
            unit="ops",
        ),
        _rate("Gangs that gave back their places", "gpusched_gang_releases_total", "cause"),
        stacks("GPUJobs", _each("gpusched_jobs", "phase", "")),
        lines("Pods that need a decision", ("max(gpusched_waiting_pods)", "pods")),
        table(
            "Versions", "count by (pod, version) (gpusched_build_info)", width=8, hides=("Value",)
        ),
    ),
)

BOARDS = (CLUSTER, PROJECTS, JOB, OPERATOR)
