"""From measured runs to figures, and from figures to the table in docs/benchmarks.md.

Rates are given as the median of the runs; comparisons are ratios within a round, of which the
median, the least and the most are told. Pure, but for ``write_page``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.perf import queue_report, share_report
from tests.perf.figures import Json, span, spread, table
from tests.perf.schedulers import VARIANTS

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def summary(runs: Sequence[Json]) -> dict[str, Any]:
    """Per variant: rate, writes per pod, and the ratios to stock and to the null binder."""
    rate = {(run["variant"], run["round"]): run["pods_per_second"] for run in runs}
    found: dict[str, Any] = {}
    for name in dict.fromkeys(run["variant"] for run in runs):
        own = [run for run in runs if run["variant"] == name]
        kinds = own[0]["writes_per_pod_by_kind"]
        entry: dict[str, Any] = {
            "runs": len(own),
            "pods_per_second": spread(run["pods_per_second"] for run in own),
            "writes_per_pod": spread(run["writes_per_pod"] for run in own),
            "writes_per_pod_by_kind": {
                kind: spread(run["writes_per_pod_by_kind"][kind] for run in own) for kind in kinds
            },
        }
        for other in ("stock", "null", "null-plain"):
            pairs = [(rate[name, n], rate.get((other, n))) for n in (r["round"] for r in own)]
            ratios = [mine / theirs for mine, theirs in pairs if theirs]
            if ratios and other != name:
                entry[f"ratio_to_{other}"] = spread(ratios)
        found[name] = entry
    return found


def page(result: Json) -> str:
    """The measured part of docs/benchmarks.md."""
    parts = [_machine(result)]
    for key, title in (
        ("raised", "Client limits raised to {qps}"),
        ("default", "Client limits as they come"),
    ):
        if key in result:
            parts.append(
                _throughput(result[key], title.format(qps=result["settings"]["raised_qps"]))
            )
            if beside := share_report.deployments(result[key]["runs"]):
                parts.append(beside)
    if "admission" in result:
        pods = result["settings"]["admission_pods"]
        parts.append(share_report.admission(result["admission"], pods))
    if "writes_by_client" in result:
        parts.append(_clients(result["writes_by_client"]))
    if "latency" in result:
        parts.append(_latency(result["latency"]))
    if "scale" in result:
        parts.append(_scale(result["scale"]))
    if "queues" in result:
        parts.append(queue_report.section(result["queues"], result["settings"]))
    if "caps" in result:
        parts.append(_caps(result["caps"]))
    if "planner" in result:
        parts.append(planner(result["planner"]))
    return "\n\n".join(parts)


def planner(found: Json) -> str:
    """The planner's figures, as Markdown."""
    cycles = [
        [
            name,
            f"{entry['first_ms']:,.0f}",
            f"{entry['next_ms']:,.1f} ({entry['least_ms']:,.1f}–{entry['most_ms']:,.1f})",
            f"{entry['placed']:,}",
            f"{entry['waiting_jobs']:,}",
        ]
        for name, entry in found["cycles"].items()
    ]
    openb = [
        [
            name,
            f"{entry['placements_per_second']:,}",
            f"{entry['p50_ms']:.2f} ms",
            f"{entry['p99_ms']:.2f} ms",
        ]
        for name, entry in found["openb"].items()
    ]
    return "\n\n".join(
        [
            "### The planner alone: CPU time of a cycle, ms",
            table(["", "first", "next", "placed", "jobs that wait"], cycles),
            "One placement after the other, openb trace, 1,213 nodes:",
            table(["policy", "placements/s", "p50", "p99"], openb),
        ]
    )


def write_page(path: Path, text: str) -> None:
    """Put the measured part between the markers of the page.

    Raises:
        ValueError: the markers are missing.
    """
    before = path.read_text()
    start, end = before.find(BEGIN), before.find(END)
    if not 0 <= start < end:
        raise ValueError(f"{path}: the lines {BEGIN} and {END} are missing")
    path.write_text(f"{before[: start + len(BEGIN)]}\n\n{text}\n\n{before[end:]}")


def _machine(result: Json) -> str:
    m, s = result["machine"], result["settings"]
    return (
        f"{result['date']}, commit {m['commit']}{' with changes' if m['changed'] else ''}: "
        f"{m['cores']} cores of {m['cpu']}, {m['memory_gib']} GiB, Linux {m['kernel']}; Kubernetes "
        f"{m['kubernetes']}, etcd {m['etcd']}, kwok {m['kwok']}, Python {m['python']}. Everything, "
        f"the fake kubelets included, runs on this machine. `{s['command']}`"
    )


def _throughput(part: Json, title: str) -> str:
    first = part["runs"][0]
    titles = {variant.name: variant.title for variant in VARIANTS}
    order = [name for name in titles if name in part["summary"]]
    rows = []
    for name in order:
        entry = part["summary"][name]
        rows.append(
            [
                titles[name],
                span(entry["pods_per_second"], 0),
                span(entry.get("ratio_to_stock"), 2),
                span(entry.get("ratio_to_null"), 2),
                f"{entry['writes_per_pod']['median']:.2f}",
                " + ".join(
                    f"{entry['writes_per_pod_by_kind'][kind]['median']:.2f}"
                    for kind in ("pods", "events", "jobs_and_projects")
                ),
            ]
        )
    head = [
        "scheduler",
        "pods/s",
        "× stock",
        "× plans nothing",
        "writes per pod",
        "pods + events + status",
    ]
    rounds = max(run["round"] for run in part["runs"]) + 1
    return (
        f"### {title}: {first['pods']} pods, {rounds} paired run{'s' * (rounds > 1)}\n\n"
        + table(head, rows)
    )


def _clients(part: Json) -> str:
    titles = {variant.name: variant.title for variant in VARIANTS}
    rows = [
        [titles.get(name, name), "; ".join(f"{c} {n:.2f}" for c, n in entry.items() if n >= 0.005)]
        for name, entry in part.items()
    ]
    return "### Who writes, per pod (audit log, one run each)\n\n" + table(
        ["scheduler", "writes per pod by client"], rows
    )


def _latency(part: Json) -> str:
    rows = [
        [
            name,
            str(entry["jobs"]),
            f"{entry['p50_seconds'] * 1000:.0f} ms",
            f"{entry['p99_seconds'] * 1000:.0f} ms",
        ]
        for name, entry in part.items()
    ]
    return "### From apply to bound, idle cluster, all settings as they come\n\n" + table(
        ["", "jobs", "p50", "p99"], rows
    )


def _scale(part: Json) -> str:
    memory, restart = part["memory"], part["restart"]
    rows = [
        ["placed", f"{part['pods_per_second']:.0f} pods/s"],
        ["CPU per 1,000 pods placed", f"{part['cpu_seconds_per_1000_pods']:.2f} s"],
        ["CPU while idle", f"{part['idle_cpu_percent']:.1f} % of a core"],
        ["memory (RSS) before", f"{part['memory_without_pods']['rss_mib']:.0f} MiB"],
        ["memory (RSS) after", f"{memory['rss_mib']:.0f} MiB"],
        ["memory (RSS) after a restart", f"{restart['memory']['rss_mib']:.0f} MiB"],
        ["restart until it leads", f"{restart['leading']:.1f} s"],
        ["restart until it has listed everything", f"{restart['synced']:.1f} s"],
    ]
    return f"### The operator at {part['pods']:,} pods on {part['nodes']:,} nodes\n\n" + table(
        ["", ""], rows
    )


def _caps(part: Json) -> str:
    rows = [
        [
            name,
            *(f"{of[key]:.2f} {of['unit']}" for key in ("bare", "capped", "added")),
            f"{of['ratio']:.2f}",
            f"≤ {of['bound']:g} {of['unit']}{'' if of['ok'] else ': missed'}",
        ]
        for name, of in part.items()
    ]
    head = [
        "pretended driver",
        "bare",
        "with libgpucap",
        "added",
        "ratio",
        "bound of what is added",
    ]
    return "### What libgpucap costs\n\n" + table(head, rows)
