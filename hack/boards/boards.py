"""What the four boards show.

Sums over jobs come from the chart's recording rules, so a board of 10,000 jobs asks for as many
series as there are projects and namespaces. ``max`` before a sum: while the leader changes, two
replicas may tell the same figure.
"""

from boards.grafana import Board, Panel, Variable, bars, lines, stat, table

_P = '{project=~"$project"}'
_OF = '{project=~"$project", namespace=~"$namespace"}'
_JOB = '{project=~"$project", namespace=~"$namespace", gpujob=~"$gpujob"}'
_M = '{model=~"$model"}'
MODEL = Variable("model", "model", "gpusched_gpu_allocated_ratio")
PROJECT = Variable("project", "project", "gpusched_project_quota_gpus")
NAMESPACE = Variable("namespace", "namespace", f"namespace_project:gpusched_gpujobs:count{_P}")
GPUJOB = Variable("gpujob", "gpujob", f"gpusched_gpujob_info{_OF}", all=False)
_DEVICE = "node, gpu, uuid, model"


def _project(figure: str) -> str:
    return f"sum(max by (project) (gpusched_project_{figure}_gpus{_P}))"


def _recorded(figure: str, by: str = "namespace") -> str:
    return f"sum by ({by}) (namespace_project:gpusched_gpujob_{figure}{_OF})"


def _job(figure: str) -> str:
    return f"max by (namespace, gpujob) (gpusched_gpujob_{figure}{_JOB})"


def _device(name: str, series: str, unit: str, **more: object) -> Panel:
    expr = f"max by ({_DEVICE}) ({series}{_M})"
    return lines(name, unit, (expr, "{{node}} {{gpu}}"), **more)


def _quantiles(name: str, series: str, by: str = "") -> Panel:
    labels = f"{by}, le" if by else "le"
    rate = f"sum by ({labels}) (rate({series}_bucket[$__rate_interval]))"
    named = f"{{{{{by}}}}} " if by else ""
    return lines(
        name,
        "s",
        (f"histogram_quantile(0.5, {rate})", f"{named}half"),
        (f"histogram_quantile(0.99, {rate})", f"{named}99 %"),
    )


def _rate(name: str, series: str, by: str) -> Panel:
    expr = f"sum by ({by}) (rate({series}[$__rate_interval]))"
    return lines(name, "ops", (expr, "{{" + by + "}}"))


CLUSTER = Board(
    "cluster",
    "GPUs / Cluster",
    "Where are the GPUs, are they used, and who waits?",
    (MODEL, PROJECT, NAMESPACE),
    (
        stat("GPUs", f"count(max by ({_DEVICE}) (gpusched_gpu_allocated_ratio{_M}))"),
        stat(
            "Given out",
            f"avg(max by ({_DEVICE}) (gpusched_gpu_allocated_ratio{_M}))",
            "percentunit",
        ),
        stat(
            "Used", f"avg(max by ({_DEVICE}) (gpusched_gpu_utilization_ratio{_M}))", "percentunit"
        ),
        stat("Held idle", 'sum(max by (state) (gpusched_gpus{state="idle"}))'),
        stat("In pieces", "max(gpusched_fragmented_gpus)"),
        stat("Agents not heard", "sum(max by (node) (gpusched_agent_silent))"),
        lines(
            "Where the GPUs are",
            "short",
            ("max by (state) (gpusched_gpus)", "{{state}}"),
            width=12,
            stacked=True,
            text="Each GPU adds up to exactly one.",
        ),
        lines(
            "Given out and used",
            "percentunit",
            (f"model:gpusched_gpu_allocated_ratio:avg{_M}", "{{model}} given out"),
            (f"model:gpusched_gpu_utilization_ratio:avg{_M}", "{{model}} used"),
            width=12,
            most=1,
        ),
        lines(
            "Held by projects",
            "short",
            (
                f"max by (project) (gpusched_project_allocated_gpus{_P})",
                "{{project}}",
            ),
            stacked=True,
        ),
        lines(
            "Asked for by what waits",
            "short",
            (
                f"max by (project) (gpusched_project_pending_gpus{_P})",
                "{{project}}",
            ),
            stacked=True,
        ),
        lines(
            "Why jobs wait",
            "short",
            (
                f"sum by (reason) (max by (reason, project, type) (gpusched_pending_jobs{_P}))",
                "{{reason}}",
            ),
            stacked=True,
        ),
        bars(
            "Nodes, given out",
            "percentunit",
            "max by (node) (gpusched_node_gpus_allocated) / max by (node) (gpusched_node_gpus)",
            "{{node}}",
            most=1,
        ),
        lines("Advice", "short", ("max by (rule) (gpusched_advice)", "{{rule}}"), stacked=True),
        lines(
            "Held and not used for an hour",
            "short",
            (_recorded("idle_gpus:sum"), "{{namespace}}"),
            stacked=True,
        ),
        _device("Use", "gpusched_gpu_utilization_ratio", "percentunit", most=1),
        _device("Tensor cores", "gpusched_gpu_tensor_ratio", "percentunit", most=1),
        _device("Memory", "gpusched_gpu_memory_used_bytes", "bytes"),
        _device("Power", "gpusched_gpu_power_watts", "watt"),
        _device("Heat", "gpusched_gpu_temperature_celsius", "celsius"),
        lines(
            "Throttled",
            "percentunit",
            (f"avg by (model, reason) (gpusched_gpu_throttled{_M})", "{{model}} {{reason}}"),
        ),
        table(
            "XIDs since the agent's start",
            f"max by ({_DEVICE}, code) (gpusched_gpu_xid_total{_M})",
        ),
        table(
            "ECC errors",
            f"max by ({_DEVICE}) (gpusched_gpu_ecc_errors_total{_M})",
        ),
        table(
            "Remapped rows of memory",
            f"max by ({_DEVICE}, errors) (gpusched_gpu_remapped_rows_total{_M})",
        ),
        _quantiles("Until work got its first GPU", "gpusched_queue_wait_seconds", "type"),
        _quantiles("How long GPUJobs ran", "gpusched_job_run_seconds", "type"),
    ),
)

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
            "short",
            (_project("quota"), "guaranteed"),
            (_project("limit"), "limit"),
            (_project("fair_share"), "fair share"),
            (_project("allocated"), "held"),
            (_project("pending"), "waiting for"),
            width=12,
        ),
        lines(
            "Held and busy",
            "short",
            (_recorded("allocated_gpus:sum"), "{{namespace}} held"),
            (_recorded("busy_gpus:sum"), "{{namespace}} busy"),
            width=12,
        ),
        lines(
            "GPUs held and not used for an hour",
            "short",
            (_recorded("idle_gpus:sum"), "{{namespace}}"),
            stacked=True,
        ),
        lines(
            "GPU memory",
            "bytes",
            (_recorded("gpu_memory_used_bytes:sum"), "{{namespace}} used"),
            (_recorded("gpu_memory_limit_bytes:sum"), "{{namespace}} limit"),
        ),
        lines(
            "Why jobs wait",
            "short",
            (
                f"sum by (reason) (max by (reason, project, type) (gpusched_pending_jobs{_P}))",
                "{{reason}}",
            ),
            stacked=True,
        ),
        lines("CPU", "short", (_recorded("cpu_used_cores:sum"), "{{namespace}}"), stacked=True),
        lines("Memory", "bytes", (_recorded("ram_used_bytes:sum"), "{{namespace}}"), stacked=True),
        lines(
            "GPU-hours each hour, held and idle",
            "short",
            (
                f"sum by (type) (project_type:gpusched_gpu_seconds:rate5m{_P})",
                "{{type}} held",
            ),
            (
                f"sum by (type) (project_type:gpusched_gpu_idle_seconds:rate5m{_P})",
                "{{type}} idle",
            ),
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
            "short",
            (_job("requested_gpus"), "{{gpujob}} asked for"),
            (_job("allocated_gpus"), "{{gpujob}} held"),
        ),
        lines(
            "Use of its GPUs",
            "percentunit",
            (_job("gpu_utilization_ratio"), "{{gpujob}}"),
            text="Share of time with a kernel of its own. Unknown where the driver does not tell.",
            most=1,
        ),
        lines("Since the last kernel", "s", (_job("idle_seconds"), "{{gpujob}}")),
        lines(
            "GPU memory",
            "bytes",
            (_job("gpu_memory_used_bytes"), "{{gpujob}} used"),
            (_job("gpu_memory_limit_bytes"), "{{gpujob}} limit"),
        ),
        lines("CPU", "short", (_job("cpu_used_cores"), "{{gpujob}}")),
        lines("Memory", "bytes", (_job("ram_used_bytes"), "{{gpujob}}")),
        lines(
            "Trials of sweeps",
            "short",
            (
                f"max by (namespace, gpujob, state) (gpusched_sweep_trials{_JOB})",
                "{{gpujob}} {{state}}",
            ),
            stacked=True,
        ),
        lines(
            "Best objective of sweeps",
            "short",
            (
                f"max by (namespace, gpujob) (gpusched_sweep_best_objective{_JOB})",
                "{{gpujob}}",
            ),
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
            "ops",
            *(
                (f"sum(rate(gpusched_{name}_pods_total[$__rate_interval]))", name.replace("_", " "))
                for name in ("over_cap", "stuck", "not_started", "overbooked", "rejected")
            ),
        ),
        _rate("Gangs that gave back their places", "gpusched_gang_releases_total", "cause"),
        lines("GPUJobs", "short", ("max by (phase) (gpusched_jobs)", "{{phase}}"), stacked=True),
        lines("Pods that need a decision", "short", ("max(gpusched_waiting_pods)", "pods")),
        table(
            "Versions", "count by (pod, version) (gpusched_build_info)", width=8, hides=("Value",)
        ),
    ),
)

BOARDS = (CLUSTER, PROJECTS, JOB, OPERATOR)
