"""``kubectl gpu report``, ``idle``, ``usage`` and ``advise``: what work took and used.

How much of their GPUs jobs used over time is not recorded yet; what needs that says so, and no
number is made up for it.
"""

import click

from gpu_scheduler.cli.ending import Failed, one_line
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.shown import output_option, print_table, print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

_NO_SERIES = "no usage series is recorded yet"


@click.command("report")
@click.argument("job", metavar="JOB|POD|KIND/NAME")
@output_option("table", "json", "yaml")
@of_cluster
def report(where: ClusterOptions, job: str, output: str) -> None:
    """Show what a job took: waiting, running, GPU-hours, and what was lost.

    What it used of them is not recorded yet.
    """
    from datetime import UTC, datetime

    from gpu_scheduler.cli.finding import find
    from gpu_scheduler.cli.holders.bars import print_text
    from gpu_scheduler.cli.holders.taken import taken

    with where.cluster() as cluster:
        found = find(cluster, job)
    figures = taken(found.job, found.pods, datetime.now(UTC))
    if output != "table":
        return print_value(figures.to_json(f"{found.namespace}/{found.name}"), output)
    rows = [("Name", str(found)), *figures.rows()]
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        say(f"{label.ljust(width)}  {text}")
    say()
    return print_text(
        f"Not known, as {_NO_SERIES}: GPU-hours used, peak memory, utilisation p50 and p95, advice."
    )


@click.command("advise")
@click.argument("job", required=False)
def advise(job: str | None) -> None:
    """What a job could do better (needs a usage series, which is not recorded yet)."""
    with one_line():
        raise Failed(
            f"{_NO_SERIES}, so there is no advice; kubectl gpu top gpus shows the utilisation of "
            f"this moment, kubectl gpu report {job or 'JOB'} what a job took"
        )


@click.command("idle")
@click.option("--project", "-p", metavar="NAME", help="Of this project alone.")
@output_option("table", "json", "yaml")
@of_cluster
def idle(where: ClusterOptions, project: str | None, output: str) -> None:
    """GPUs that are held and not used at this moment: a mean of five minutes, and no history."""
    from gpu_scheduler.cli.holders import read as top_read
    from gpu_scheduler.cli.holders.bars import print_text
    from gpu_scheduler.cli.holders.held import gpus
    from gpu_scheduler.cli.holders.values import by_holder

    with where.cluster() as cluster:
        view = top_read.read(cluster)
    held = [each for each in by_holder(view.devices) if project in (None, each.project)]
    known = [each for each in held if each.percent is not None]
    if held and not known:
        raise Failed(
            f"{_NO_SERIES}, and no agent says what the GPUs do now (kubectl gpu check); "
            "kubectl gpu top jobs shows who holds them"
        )
    found = [each for each in known if each.percent == 0]
    if output != "table":
        unknown = [each.key for each in held if each.percent is None]
        body = {"idleNow": [each.to_json() for each in found], "notKnown": unknown}
        return print_value(body, output)
    if found:
        table = PrintedTable(["NAME", "PROJECT", "GPU", "PODS", "NODE"])
        for each in found:
            cells = (each.project or "-", gpus(each.milli), str(len(each.pods)))
            table.rows.append([each.key, *cells, ", ".join(each.nodes)])
        print_table(table)
        namespace, _, name = found[0].key.partition("/")
        say()
        print_text(
            f"{gpus(sum(each.milli for each in found))} GPUs are held and at 0 %; "
            f"kubectl gpu suspend -n {namespace} {name} gives those of a GPUJob back."
        )
    else:
        print_text(f"Nothing that holds a GPU is at 0 % ({len(known)} known).")
    if len(known) < len(held):
        print_text(f"Of {len(held) - len(known)} more it is not known.")
    return print_text(f"A mean of five minutes; since when: {_NO_SERIES}.")


@click.command("usage")
@click.option("--by", type=click.Choice(["project", "user", "job"]), help="Whose.")
@click.option("--since", metavar="TIME", help="Such as 7d.")
@click.option("--output", "-o", type=click.Choice(["table", "csv", "json"]), help="How.")
def usage(by: str | None, since: str | None, output: str | None) -> None:
    """GPU-hours over time (needs a usage series, which is not recorded yet)."""
    with one_line():
        raise Failed(
            f"{_NO_SERIES}; kubectl gpu top projects shows what is held now, "
            "kubectl gpu report JOB what one job took"
        )
