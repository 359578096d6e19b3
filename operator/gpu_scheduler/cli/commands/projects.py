"""``kubectl gpu projects``, ``project create`` and ``project describe``."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.lazy import CommandGroup
from gpu_scheduler.cli.options import gathered
from gpu_scheduler.cli.shown import (
    name_of,
    no_headers_option,
    output_option,
    print_objects,
    print_value,
    say,
)
from gpu_scheduler.cli.where import ClusterOptions, of_cluster, of_whole_cluster

if TYPE_CHECKING:
    from gpu_scheduler.cli.holders.holder import Holder


@click.command("projects")
@no_headers_option
@output_option()
@of_cluster
def projects(where: ClusterOptions, output: str, no_headers: bool) -> None:
    """Quotas, and what of them is in use."""
    from gpu_scheduler.cli.project.lines import table

    with where.cluster() as cluster:
        found = list(cluster.client.items(_path()))
    if not found and output in ("table", "wide"):
        raise Failed(
            "there is no GPUProject, so no namespace may use GPUs; "
            "kubectl gpu project create NAME --quota N"
        )
    print_objects(found, output, lambda: table(found), headers=not no_headers)


@click.group("project", cls=CommandGroup, no_args_is_help=True)
def project() -> None:
    """Create a project, or show all about one."""


@dataclass(frozen=True, slots=True)
class ProjectOptions:
    """The fields of a GPUProject; names as of the options."""

    name: str
    quota: str
    limit: str | None
    weight: int | None
    namespaces: tuple[str, ...]

    def body(self) -> dict[str, Any]:
        """The object, judged by the rules of the CRD before anything is sent.

        Raises:
            ValueError: an option is not what the field takes.
        """
        from gpu_scheduler.api.gpuproject import GPUProjectSpec
        from gpu_scheduler.api.names import API_VERSION
        from gpu_scheduler.api.validate import read

        spec: dict[str, Any] = {
            "namespaces": list(dict.fromkeys(self.namespaces or (self.name,))),
            "quota": _amount("quota", self.quota),
        }
        if self.limit is not None:
            spec["limit"] = _amount("limit", self.limit)
        if self.weight is not None:
            spec["weight"] = self.weight
        judged = read(GPUProjectSpec, spec)
        if isinstance(judged, tuple):
            raise ValueError("; ".join(map(str, judged)))
        if judged.limit_milli is not None and judged.limit_milli < judged.quota_milli:
            raise ValueError(
                f"--limit {self.limit}: less than --quota {self.quota}, which is guaranteed"
            )
        return {
            "apiVersion": API_VERSION,
            "kind": "GPUProject",
            "metadata": {"name": self.name},
            "spec": spec,
        }


def _amount(option: str, text: str) -> int | float:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"--{option} {text}: a number of GPUs, such as 4 or 0.5") from None
    if not value.is_finite() or value < 0 or value != round(value, 3):
        raise ValueError(f"--{option} {text}: a number of GPUs with at most three decimals")
    return int(value) if value == value.to_integral_value() else float(value)


@project.command("create")
@click.argument("name")
@click.option("--quota", required=True, metavar="GPUS", help="Guaranteed, such as 4 or 0.5.")
@click.option("--limit", metavar="GPUS", help="Most held at once, borrowed ones included.")
@click.option(
    "--weight",
    type=click.IntRange(0, 1000),
    help="Share of what others leave idle; 0: never above quota.",
)
@click.option(
    "--namespace",
    "-n",
    "namespaces",
    multiple=True,
    metavar="NAMESPACE",
    help="That is charged to it, may be repeated; default: one called like the project.",
)
@of_whole_cluster
@click.option(
    "--dry-run",
    type=click.Choice(["none", "client", "server"]),
    default="none",
    show_default=True,
    help="client: print it, and ask nobody; server: let the cluster judge it, and store nothing.",
)
@output_option("name", "yaml", "json")
@gathered("options", ProjectOptions)
def create(where: ClusterOptions, options: ProjectOptions, dry_run: str, output: str) -> None:
    """Create a project: who may use how many GPUs."""
    body = options.body()
    if dry_run != "client":
        with where.cluster() as cluster:
            body = cluster.client.create(_path(), body, dry_run=dry_run == "server")
    if output in ("yaml", "json"):
        print_value(body, output)
    else:
        done = {"none": "created", "client": "created (dry run)"}
        say(f"{name_of(body)} {done.get(dry_run, 'created (server dry run)')}")


@project.command("describe")
@click.argument("name")
@output_option("table", "json", "yaml")
@of_cluster
def describe(where: ClusterOptions, name: str, output: str) -> None:
    """Show all about a project: its numbers, who holds what, and what waits."""
    from gpu_scheduler.cli.finding import get
    from gpu_scheduler.cli.project import lines as project_lines

    with where.cluster() as cluster:
        body = get(cluster, _path(name))
        if body is None:
            there = sorted(str(each["metadata"]["name"]) for each in cluster.client.items(_path()))
            known = f"; there are {', '.join(there)}" if there else "; there is none at all"
            raise Failed(f"there is no project {name}{known}")
        if output != "table":
            return print_value(body, output)
        holders, waiting = _work(cluster, body)
    return project_lines.describe(body, holders, waiting)


def _work(
    cluster: ClusterAccess, body: Mapping[str, Any]
) -> "tuple[list[Holder] | None, list[dict[str, Any]] | None]":
    """What holds GPUs in the project's namespaces, and the jobs that wait; None: not readable."""
    from gpu_scheduler.api.names import GROUP, LABEL_PATH, LABEL_SHARE, VERSION
    from gpu_scheduler.cli.holders.held import held
    from gpu_scheduler.cli.holders.holder import by_holder
    from gpu_scheduler.cli.holders.read import items
    from gpu_scheduler.cli.project.lines import waiting_alone
    from gpu_scheduler.kube import paths

    pods: list[Any] = []
    jobs: list[Any] = []
    readable = False
    for namespace in (body.get("spec") or {}).get("namespaces") or ():
        there = items(cluster, paths.core("pods", namespace), LABEL_PATH)
        asked = items(cluster, paths.of_group(GROUP, VERSION, "gpujobs", namespace))
        alone = items(cluster, paths.core("pods", namespace), LABEL_SHARE)
        readable = readable or there is not None or asked is not None
        pods += there or ()
        jobs += [*(asked or ()), *waiting_alone(alone or ())]
    if not readable:
        return None, None
    holders = by_holder(held((), (), pods))
    waiting = [job for job in jobs if (job.get("status") or {}).get("phase") == "Pending"]
    return holders, waiting


def _path(name: str = "") -> str:
    from gpu_scheduler.api.names import GROUP, VERSION
    from gpu_scheduler.kube import paths

    return paths.of_group(GROUP, VERSION, "gpuprojects", "", name)
