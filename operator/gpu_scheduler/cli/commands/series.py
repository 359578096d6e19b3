"""``kubectl gpu advise``, ``idle`` and ``usage``: what work makes of its GPUs over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpu_scheduler.cli.commands.completion import complete_job
from gpu_scheduler.cli.ending import Failed, one_line
from gpu_scheduler.cli.shown import output_option, print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.cli.use.read import UseView
    from gpu_scheduler.cli.use.workload import UsedWorkload


@click.command("advise")
@click.argument("job", metavar="[JOB|KIND/NAME]", required=False, shell_complete=complete_job)
@click.option("--all-namespaces", "-A", is_flag=True, help="Of all namespaces that you may see.")
@output_option("table", "json", "yaml")
@of_cluster
def advise(where: ClusterOptions, job: str | None, all_namespaces: bool, output: str) -> None:
    """What work could do better, each with the command that does it.

    Of what holds GPUs in the namespace; with JOB also of one that has ended. Needs GPUUsage, which
    the chart value agent.history.enabled turns on.
    """
    from gpu_scheduler.cli.finding import kind_and_name
    from gpu_scheduler.cli.use.advised import advised, values
    from gpu_scheduler.cli.use.read import NOT_RECORDED, read

    if job is not None and all_namespaces:
        raise ValueError("JOB is in one namespace; leave out -A, and say which with -n")
    kind, name = ("", "") if job is None else kind_and_name(job)
    with where.cluster() as cluster:
        use = read(cluster, "" if all_namespaces else cluster.namespace)
        here = cluster.namespace
    if use.missing == NOT_RECORDED:
        raise Failed(f"{use.missing} Without it there is no advice.")
    if job is None:
        looked_at = [each for each in use.workloads() if each.runs]
    else:
        one = use.find(here, name, kind)
        looked_at = [] if one is None else [one]
        if one is None and not use.missing:
            raise Failed(f"nothing is recorded of {job} in namespace {here}; kubectl gpu top jobs")
    found = advised(looked_at)
    if output != "table":
        return print_value({"advised": values(found), "notShown": [*use.notes()]}, output)
    return _print_advice(found, len(looked_at), use)


def _print_advice(found: "Sequence[UsedWorkload]", looked_at: int, use: "UseView") -> None:
    from gpu_scheduler.cli.holders.bars import print_text
    from gpu_scheduler.cli.use.advised import lines

    for number, each in enumerate(found):
        if number:
            say()
        for line in lines(each):
            text = line.lstrip()
            print_text(text, indent=line[: len(line) - len(text)])
    if not found and not use.missing:
        of = "the one that was" if looked_at == 1 else f"the {looked_at} that were"
        print_text(f"No advice: nothing to change was seen in {of} looked at.")
    for text in use.notes():
        print_text(text)


@click.command("idle")
@click.option(
    "--all-namespaces",
    "-A",
    is_flag=True,
    help="Of all namespaces that you may see; so it is without -n.",
)
@output_option("table", "json", "yaml")
@of_cluster
def idle(where: ClusterOptions, all_namespaces: bool, output: str) -> None:
    """GPUs that are held and not used: since when, what it cost, and what gives them back.

    Where no use is recorded: those at 0 % at this moment, a mean of five minutes of the agents.
    """
    from datetime import UTC, datetime

    from gpu_scheduler.cli.holders import idle_now
    from gpu_scheduler.cli.holders.read import read as read_holders
    from gpu_scheduler.cli.use import idle_lines
    from gpu_scheduler.cli.use.read import read

    if all_namespaces and where.namespace:
        raise ValueError("-A and -n say different things; say one of them")
    with where.cluster(all_of_project=True) as cluster:
        use = read(cluster, where.namespace or "")
        view = read_holders(cluster) if use.missing else None
    if view is not None:
        return idle_now.show(view, where.namespace or "", where.project, output)
    return idle_lines.show(use, where.project, datetime.now(UTC), output)


@click.command("usage")
@click.option("--by", type=click.Choice(["project", "user", "job"]), help="Whose.")
@click.option("--since", metavar="TIME", help="Such as 7d.")
@click.option("--output", "-o", type=click.Choice(["table", "csv", "json"]), help="How.")
def usage(by: str | None, since: str | None, output: str | None) -> None:
    """Accounts of GPU-hours by project, user or job, which come with a later version.

    Until then: kubectl gpu report JOB, and the metrics of docs/reference/metrics.md.
    """
    with one_line():
        raise Failed(
            "accounts of GPU-hours come with a later version; kubectl gpu report JOB says what one "
            "job held and used, kubectl gpu top projects what is held now, and Prometheus adds up "
            "gpusched_project_allocated_gpus over time"
        )
