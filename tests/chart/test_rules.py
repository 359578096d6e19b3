"""The chart's alerts and recording rules, as promtool plays them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from tests.chart import made_up
from tests.chart.conftest import Object
from tests.chart.prometheus import promtool

OURS = 'namespace="gpu-system"'
POD = f'{OURS},pod="gpu-scheduler-0"'
WORK = (
    'namespace="team-a",gpujob="train",project="vision",job="gpu-scheduler",pod="gpu-scheduler-0"'
)
DEVICE = f'{OURS},node="a",gpu="0",uuid="GPU-1",model="A100"'


@dataclass(frozen=True)
class Case:
    """What happens ``every`` so often, and when an alert is there.

    ``labels``: those of the alert beside its severity. ``quiet``: when it is not; before and after.
    """

    alert: str
    series: dict[str, str]
    fires: str
    quiet: Sequence[str]
    labels: dict[str, str] = field(default_factory=dict)
    severity: str = "warning"
    every: str = "1m"


OF_DEVICE = {
    "namespace": "gpu-system",
    "node": "a",
    "gpu": "0",
    "uuid": "GPU-1",
    "model": "A100",
    "code": "79",
}
CASES = (
    Case(
        "GPUSchedulerUnexpectedError",
        {f'gpusched_unexpected_errors_total{{{POD},loop="planning"}}': "0x10 1x60"},
        "12m",
        ("9m", "40m"),
        {"namespace": "gpu-system", "pod": "gpu-scheduler-0", "loop": "planning"},
    ),
    Case(
        "GPUSchedulerEventLoopStalls",
        {
            f"gpusched_event_loop_stall_seconds_count{{{POD}}}": "0x10 1x60",
            f'gpusched_event_loop_stall_seconds_bucket{{{POD},le="1.0"}}': "0x70",
        },
        "12m",
        ("9m", "40m"),
        {"namespace": "gpu-system", "pod": "gpu-scheduler-0"},
    ),
    Case(
        "GPUSchedulerWaitsForTerm",
        {f"gpusched_waiting_for_term{{{POD}}}": "0x5 1x10 0x20"},
        "10m",
        ("6m", "20m"),
        {"namespace": "gpu-system", "pod": "gpu-scheduler-0"},
        "critical",
    ),
    Case(
        "GPUSchedulerWatchLost",
        {f'gpusched_watch_lost_seconds{{{POD},resource="gpujobs"}}': "0x5 61x10 0x20"},
        "10m",
        ("4m", "20m"),
        {"namespace": "gpu-system", "pod": "gpu-scheduler-0", "resource": "gpujobs"},
        "critical",
    ),
    Case(
        "GPUJobIdle",
        {f"gpusched_gpujob_idle_seconds{{{WORK}}}": "3300+60x20 0x20"},
        "10m",
        ("5m", "7m", "30m"),
        {"namespace": "team-a", "gpujob": "train", "project": "vision"},
    ),
    Case(
        "GPUJobsPendingInsideQuota",
        {
            'gpusched_pending_inside_quota_seconds{namespace="team-a",project="vision",'
            'pod="gpu-scheduler-0"}': "1500+60x20 _x20"
        },
        "10m",
        ("5m", "35m"),
        {"namespace": "team-a", "project": "vision"},
    ),
    Case(
        "GPUSchedulerAgentSilent",
        {f'gpusched_agent_silent{{{POD},node="a"}}': "0x5 1x20 0x20"},
        "15m",
        ("9m", "30m"),
        {"namespace": "gpu-system", "node": "a"},
    ),
    Case(
        "GPUSchedulerAgentsUnanswered",
        {f"gpusched_silent_agents{{{POD}}}": "0x5 2x20 0x20"},
        "20m",
        ("14m", "30m"),
        {"namespace": "gpu-system"},
    ),
    Case(  # of a code that nobody has seen there
        "GPUXid",
        {f'gpusched_gpu_xid_total{{{DEVICE},code="79"}}': "_x10 1x60"},
        "12m",
        ("9m", "40m"),
        OF_DEVICE,
    ),
    Case(  # of a code that is known, by another agent
        "GPUXid",
        {
            f'gpusched_gpu_xid_total{{{DEVICE},code="79",pod="one"}}': "1x40 2x60",
            f'gpusched_gpu_xid_total{{{DEVICE},code="63",pod="one"}}': "3x100",
        },
        "45m",
        ("35m", "70m"),
        OF_DEVICE,
    ),
    Case(
        "GPUsAllocatedAndUnused",
        {
            f"gpusched_gpu_{figure}_ratio{{{OURS},{device}}}": values
            for device, by_figure in {
                'node="a",gpu="0",model="A100"': ("1x90", "0.1x60 0.9x30"),
                'node="a",gpu="1",model="A100"': ("0.9x90", "0.2x60 0.9x30"),
                'node="b",gpu="0",model="T4"': ("0.5x90", "0.1x90"),
            }.items()
            for figure, values in zip(("allocated", "utilization"), by_figure, strict=True)
        },
        "7h",
        ("5h", "12h"),
        {"model": "A100"},
        every="10m",
    ),
)


def firing(alert: str, labels: dict[str, str], severity: str) -> str:
    shown = {"alertname": alert, "alertstate": "firing", "severity": severity, **labels}
    return "ALERTS{" + ", ".join(f'{k}="{v}"' for k, v in sorted(shown.items())) + "}"


def played(folder: Path, rules: Object, tests: Sequence[Object], every: str = "1m") -> str:
    """What promtool says; empty: all as expected."""
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    asked = {"rule_files": ["rules.yaml"], "evaluation_interval": every, "tests": list(tests)}
    (folder / "test.yaml").write_text(yaml.safe_dump(asked))
    done = promtool("test", "rules", folder / "test.yaml")
    return "" if done.returncode == 0 else (done.stdout + done.stderr).decode()


def test_promtool_takes_the_rules(rules: Object, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    done = promtool("check", "rules", tmp_path / "rules.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_a_case_for_every_alert(rules: Object) -> None:
    alerts = [r["alert"] for group in rules["groups"] for r in group["rules"] if "alert" in r]
    assert sorted(alerts) == sorted({case.alert for case in CASES})


@pytest.mark.parametrize("every", sorted({case.every for case in CASES}))
def test_every_alert_fires_and_clears(every: str, rules: Object, tmp_path: Path) -> None:
    tests = []
    for case in (each for each in CASES if each.every == every):
        query = f'ALERTS{{alertname="{case.alert}", alertstate="firing"}}'
        there = [{"labels": firing(case.alert, case.labels, case.severity), "value": 1}]
        times = [(case.fires, there), *((at, []) for at in case.quiet)]
        tests.append(
            {
                "interval": every,
                "input_series": [{"series": s, "values": v} for s, v in case.series.items()],
                "promql_expr_test": [
                    {"expr": query, "eval_time": at, "exp_samples": samples}
                    for at, samples in times
                ],
            }
        )
    assert played(tmp_path, rules, tests, every) == ""


def test_a_wrong_expectation_is_found(rules: Object, tmp_path: Path) -> None:
    wrong = {"expr": "vector(1)", "eval_time": "1m", "exp_samples": []}
    assert "FAILED" in played(tmp_path, rules, [{"interval": "1m", "promql_expr_test": [wrong]}])


def test_sums_count_work_once_while_the_leader_changes(rules: Object, tmp_path: Path) -> None:
    def of(pod: str, figure: str, job: str) -> str:
        labels = f'namespace="team-a",project="vision",gpujob="{job}",pod="{pod}"'
        return f"gpusched_gpujob_{figure}{{{labels}}}"

    figures = {
        "allocated_gpus": {"train": 2, "quiet": 1},
        "gpu_utilization_ratio": {"train": 0.75},
        "idle_seconds": {"train": 0, "quiet": 7200},
    }
    series = [
        {"series": of(pod, figure, job), "values": f"{value}x10"}
        for pod in ("old", "new")
        for figure, by_job in figures.items()
        for job, value in by_job.items()
    ]
    expected = {"allocated_gpus": 3, "busy_gpus": 1.5, "idle_gpus": 1}
    tests = []
    for figure, value in expected.items():
        name = f"namespace_project:gpusched_gpujob_{figure}:sum"
        sample = {"labels": f'{name}{{namespace="team-a", project="vision"}}', "value": value}
        tests.append({"expr": name, "eval_time": "5m", "exp_samples": [sample]})
    given = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    assert played(tmp_path, rules, [given]) == ""


@pytest.mark.parametrize("of", ["operator", "agent"])
def test_promtool_finds_nothing_wrong_with_what_is_exposed(of: str) -> None:
    text = made_up.of_agent() if of == "agent" else made_up.Operated().text()
    done = promtool("check", "metrics", given=text)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
