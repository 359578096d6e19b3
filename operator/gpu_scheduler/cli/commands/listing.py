"""``kubectl gpu list``: GPUJobs, and every other workload that asks for a share of a GPU."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gpu_scheduler.cli.project.names import namespaces_of, project_option
from gpu_scheduler.cli.shown import FORMATS, no_headers_option, output_option, say
from gpu_scheduler.cli.where import ClusterAccess, ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.cli.lists.listed import Listed


@click.command("list")
@click.option("--all-namespaces", "-A", is_flag=True, help="Of the whole cluster.")
@project_option
@click.option(
    "--status",
    "statuses",
    multiple=True,
    metavar="STATUS",
    help="Pending, Running, Suspended, Succeeded or Failed; several with commas.",
)
@click.option("--selector", "-l", default="", metavar="LABELS", help="Only what has these labels.")
@click.option("--watch", "-w", is_flag=True, help="And then each line that changes.")
@output_option(*FORMATS)
@no_headers_option
@of_cluster
def command(
    where: ClusterOptions,
    all_namespaces: bool,
    project: str | None,
    statuses: Sequence[str],
    selector: str,
    watch: bool,
    output: str,
    no_headers: bool,
) -> None:
    """Jobs and other workloads that use GPUs or wait for some."""
    if watch and output not in ("table", "wide"):
        raise ValueError(f"--watch shows lines; leave out -o {output}")
    wanted = {part.strip().lower() for each in statuses for part in each.split(",")}
    if statuses and not all(wanted):
        raise ValueError("--status is empty; write for example --status Pending,Running")
    with where.cluster() as cluster:
        from gpu_scheduler.cli.lists.listed import Listed

        namespaces = _namespaces(cluster, where, all_namespaces, project)
        listed = Listed(cluster.client, namespaces, selector, wanted)
        if output in ("table", "wide"):
            _print(listed, wide=output == "wide", headers=not no_headers, watch=watch)
        else:
            _print_objects(listed, output)


def _namespaces(
    cluster: ClusterAccess, where: ClusterOptions, all_namespaces: bool, project: str | None
) -> list[str]:
    """Those that are looked at; an empty name: all. With -A no -n counts, as in kubectl."""
    if project is None:
        return [""] if all_namespaces else [cluster.namespace]
    names = namespaces_of(cluster, project)
    if all_namespaces:
        return names
    if where.namespace and where.namespace not in names:
        raise ValueError(
            f"namespace {where.namespace} is none of project {project}, which has "
            f"{', '.join(names)}"
        )
    return [where.namespace] if where.namespace else names


def _print(listed: "Listed", *, wide: bool, headers: bool, watch: bool) -> None:
    from gpu_scheduler.cli.shown import PrintedTable, print_table

    columns, rows = listed.read()
    _say_what_is_missing(listed)
    if watch:
        from gpu_scheduler.cli.lists.watch import follow

        try:
            follow(listed, columns, rows, say, wide=wide, headers=headers)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(130) from None
    elif rows:
        print_table(PrintedTable(columns.heading(), [*rows.values()]), wide=wide, headers=headers)
    else:
        say(f"No jobs in {listed.place}.", err=True)


def _say_what_is_missing(listed: "Listed") -> None:
    if listed.without_pods:
        say(f"You may not list pods in {listed.place}: GPUJobs alone are shown.", err=True)


def _print_objects(listed: "Listed", output: str) -> None:
    from gpu_scheduler.cli.shown import PrintedTable, print_objects

    found: list[Any] = listed.objects()
    _say_what_is_missing(listed)
    if not found and output == "name":
        say(f"No jobs in {listed.place}.", err=True)
    print_objects(found, output, lambda: PrintedTable([]))
