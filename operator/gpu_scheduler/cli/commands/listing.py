"""``kubectl gpu list``: GPUJobs, and every other workload that asks for a share of a GPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.options import gathered
from gpu_scheduler.cli.project.names import namespace_of, namespaces_of
from gpu_scheduler.cli.shown import FORMATS, no_headers_option, output_option, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.cli.lists.listed import Listed


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Of what is listed; names as of the options."""

    all_namespaces: bool
    statuses: Sequence[str]
    selector: str

    def lower_statuses(self) -> set[str]:
        """Those that are shown; none: all.

        Raises:
            ValueError: one is empty.
        """
        wanted = {part.strip().lower() for each in self.statuses for part in each.split(",")}
        if not all(wanted):
            raise ValueError("--status is empty; write for example --status Pending,Running")
        return wanted

    def namespaces(self, cluster: ClusterAccess, where: ClusterOptions) -> list[str]:
        """Those that are looked at; an empty name: all. With -A no -n counts."""
        if where.project is None:
            return [""] if self.all_namespaces else [cluster.namespace]
        if self.all_namespaces or not where.namespace:
            return namespaces_of(cluster, where.project)
        return [namespace_of(cluster, where.project, where.namespace)]


@click.command("list")
@click.option("--all-namespaces", "-A", is_flag=True, help="Of the whole cluster.")
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
@gathered("options", ListOptions)
def command(
    where: ClusterOptions, options: ListOptions, watch: bool, output: str, no_headers: bool
) -> None:
    """Jobs and other workloads that use GPUs or wait for some."""
    if watch and output not in ("table", "wide"):
        raise ValueError(f"--watch shows lines; leave out -o {output}")
    statuses = options.lower_statuses()
    with where.cluster(all_of_project=True) as cluster:
        from gpu_scheduler.cli.lists.listed import Listed

        namespaces = options.namespaces(cluster, where)
        listed = Listed(cluster.client, namespaces, options.selector, statuses)
        if output in ("table", "wide"):
            _print(listed, wide=output == "wide", headers=not no_headers, watch=watch)
        else:
            _print_objects(listed, output)


def _print(listed: "Listed", *, wide: bool, headers: bool, watch: bool) -> None:
    from gpu_scheduler.cli.printed_table import PrintedTable
    from gpu_scheduler.cli.shown import print_table

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
    for left in listed.left:
        say(str(left), err=True)


def _print_objects(listed: "Listed", output: str) -> None:
    from gpu_scheduler.cli.printed_table import PrintedTable
    from gpu_scheduler.cli.shown import print_objects

    found: list[Any] = listed.objects()
    _say_what_is_missing(listed)
    if not found and output == "name":
        say(f"No jobs in {listed.place}.", err=True)
    print_objects(found, output, lambda: PrintedTable([]))
