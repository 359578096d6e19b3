"""``kubectl gpu report``: what a job asked for, held and used; running, ended or deleted."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.commands.completion import complete_job
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.job_names import checked_word
from gpu_scheduler.cli.shown import output_option, print_table, print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from datetime import datetime

    from gpu_scheduler.cli.use.read import UseView
    from gpu_scheduler.cli.use.run_report import RunReport


@click.command("report")
@click.argument("job", metavar="JOB|POD|KIND/NAME", shell_complete=complete_job)
@click.argument("other", metavar="[OTHER]", required=False, shell_complete=complete_job)
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw use and memory over time: .png, .svg or .pdf.",
)
@output_option("table", "json", "yaml")
@of_cluster
def command(
    where: ClusterOptions, job: str, other: str | None, plot: Path | None, output: str
) -> None:
    """Show what a job asked for, held and used, and what to change; with OTHER two side by side.

    Running, ended, or deleted in the last seven days. What it used needs GPUUsage, which the chart
    value agent.history.enabled turns on; the rest is known without.
    """
    from datetime import UTC, datetime

    from gpu_scheduler import picture
    from gpu_scheduler.cli.use.read import read

    words = [checked_word(word) for word in (job, other) if word is not None]
    if plot is not None:
        picture.check(plot, "--plot")
    now = datetime.now(UTC)
    with where.cluster() as cluster:
        use = read(cluster, cluster.namespace)
        reports = [_report(cluster, use, word, now) for word in words]
    if plot is not None:
        from gpu_scheduler.cli.use.plot import draw

        draw(reports, plot)
        say(plot)
    elif output != "table":
        found = [each.to_json() for each in reports]
        print_value(found[0] if other is None else {"runs": found}, output)
    elif other is None:
        _print(reports[0])
    else:
        _print_both(reports)


def _report(cluster: ClusterAccess, use: "UseView", word: str, now: "datetime") -> "RunReport":
    """Of something that is there, or that was and is recorded.

    Raises:
        Failed: neither.
    """
    from gpu_scheduler.cli.finding import find, kind_and_name
    from gpu_scheduler.cli.use.run_report import report_of, report_of_gone

    try:
        return report_of(find(cluster, word), use, now)
    except Failed as error:
        kind, name = kind_and_name(word)
        recorded = use.find(cluster.namespace, name, kind)
        if recorded is not None:
            return report_of_gone(recorded, now)
        raise Failed(f"{error}. {use.missing}".removesuffix(". ")) from None


def _print(report: "RunReport") -> None:
    from gpu_scheduler.cli.holders.bars import print_text
    from gpu_scheduler.cli.use.report_lines import FORMULA, advice, curves, rows

    shown = [("Name", report.title), *rows(report), *curves(report)]
    width = max(len(label) for label, _ in shown)
    for label, text in shown:
        more = f" = {FORMULA}" if label == "Efficiency" else ""
        say(f"{label.ljust(width)}  {text}{more}")
    for line in filter(None, [report.missing, *advice(report)]):
        print_text(line.strip(), indent="  " if line.startswith(" ") else "")


def _print_both(reports: "list[RunReport]") -> None:
    from gpu_scheduler.cli.holders.bars import print_text
    from gpu_scheduler.cli.use.report_lines import FORMULA, side_by_side

    print_table(side_by_side(*reports))
    print_text(f"Efficiency is {FORMULA}.")
    for text in dict.fromkeys(each.missing for each in reports if each.missing):
        print_text(text)
