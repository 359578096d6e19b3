"""``kubectl gpu describe``: one job, or another workload that asks for a share, on one screen."""

import click

from gpu_scheduler.cli.commands.completion import complete_job
from gpu_scheduler.cli.job_names import checked_word
from gpu_scheduler.cli.shown import say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster


@click.command("describe")
@click.argument("word", metavar="JOB|POD|KIND/NAME", shell_complete=complete_job)
@click.option("--output", "-o", type=click.Choice(["json", "yaml"]), help="The object itself.")
@of_cluster
def command(where: ClusterOptions, word: str, output: str | None) -> None:
    """What a job asks for, where its pods are and what they hold, and what was said of it."""
    import sys

    from gpu_scheduler.cli.described import folded, lines, read_events
    from gpu_scheduler.cli.finding import find
    from gpu_scheduler.cli.shown import console, print_value

    with where.cluster() as cluster:
        found = find(cluster, checked_word(word))
        is_job = found.kind == "gpujob" and found.job is not None
        if output is None:
            events = read_events(cluster, found)
    if output is None:
        shown = lines(found, events)
        if sys.stdout.isatty():
            shown = (part for line in shown for part in folded(line, console().width))
        say("\n".join(shown))
    elif is_job:
        print_value(found.job, output)
    elif found.kind == "pod":
        print_value({"apiVersion": "v1", "kind": "Pod", **found.pods[0]}, output)
    else:
        print_value({"apiVersion": "v1", "kind": "List", "items": found.pods}, output)
