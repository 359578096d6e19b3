"""``kubectl gpu report``, ``idle``, ``usage`` and ``advise``: what work took and used.

How much of their GPUs jobs used over time is not recorded yet; what needs that says so, and no
number is made up for it.
"""

from typing import Any

import click

from gpu_scheduler.cli.ending import Failed, one_line
from gpu_scheduler.cli.shown import PrintedTable, output_option, print_table, print_value, say
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
    from gpu_scheduler.cli.holders.values import by_job

    with where.cluster() as cluster:
        seen = top_read.read(cluster)
    held = [row for row in by_job(seen.devices) if project in (None, row[1][3])]
    known = [row for row in held if row[1][4] is not None]
    if held and not known:
        raise Failed(
            f"{_NO_SERIES}, and no agent says what the GPUs do now (kubectl gpu check); "
            "kubectl gpu top jobs shows who holds them"
        )
    found = [row for row in known if row[1][4] == 0]
    if output != "table":
        body: list[dict[str, Any]] = [
            {
                "namespace": key.partition("/")[0],
                "name": key.partition("/")[2],
                "project": of or None,
                "milliGPU": milli,
                "pods": sorted(pods),
                "nodes": nodes,
            }
            for key, (milli, pods, nodes, of, _) in found
        ]
        unknown = [key for key, _ in held if key not in {name for name, _ in known}]
        return print_value({"idleNow": body, "notKnown": unknown}, output)
    if found:
        table = PrintedTable(["NAME", "PROJECT", "GPU", "PODS", "NODE"])
        for key, (milli, pods, nodes, of, _) in found:
            table.rows.append([key, of or "-", gpus(milli), str(len(pods)), ", ".join(nodes)])
        print_table(table)
        name, (_, pods, *_) = found[0]
        say()
        print_text(
            f"{gpus(sum(row[1][0] for row in found))} GPUs are held and at 0 %; "
            f"kubectl gpu suspend -n {name.partition('/')[0]} {name.partition('/')[2]} "
            "gives those of a GPUJob back."
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
