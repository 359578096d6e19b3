"""``kubectl gpu fit``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gpu_scheduler.cli.options import gathered
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.shown import output_option, print_table, print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.simulate.fitting import Size


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """How large a pod is, and on which nodes; names as of the options."""

    gpu: str | None
    gpu_memory: str | None
    devices: int | None
    models: tuple[str, ...]
    cpu: str | None
    memory: str | None
    selector: tuple[str, ...]


@click.command("fit")
@click.option("--gpu", "-g", metavar="NUMBER", help="A share of one GPU (0.3), or whole GPUs (2).")
@click.option("--gpu-memory", metavar="SIZE", help="Device memory instead, such as 8Gi.")
@click.option("--devices", type=click.IntRange(1), help="That much on each of so many GPUs.")
@click.option("--model", "models", multiple=True, help="GPU model; of several any.")
@click.option("--cpu", metavar="NUMBER", help="CPU of each pod; else none is counted.")
@click.option("--memory", metavar="SIZE", help="Main memory of each pod; else none is counted.")
@click.option("--selector", "-l", metavar="KEY=VALUE", multiple=True, help="Label of nodes.")
@click.option("--count", "-c", type=click.IntRange(1), help="Whether so many fit: 0 or 1.")
@output_option("table", "json", "yaml")
@of_cluster
@gathered("options", SizeOptions)
def command(where: ClusterOptions, options: SizeOptions, count: int | None, output: str) -> None:
    """How many pods of a size would start now, and where.

    The planner answers for the namespace, behind all that waits already, and nobody gives way.
    Nothing is created. Needs the right to read nodes and pods of the whole cluster.
    """
    size = _size(options)
    with where.cluster() as cluster:
        from gpu_scheduler.kube.times import utc_now
        from gpu_scheduler.simulate.cluster_read import read
        from gpu_scheduler.simulate.fitting import fit
        from gpu_scheduler.simulate.operator_rules import rules_of

        objects, rules = read(cluster.client), rules_of(cluster.client)
        found = fit(objects, size, cluster.namespace, count, utc_now(), rules)
    if output == "table":
        _print(found)
    else:
        print_value(found, output)
    if found["enough"] is False:
        raise click.exceptions.Exit(1)


def _size(options: SizeOptions) -> "Size":
    from gpu_scheduler.core.model.units import DEVICE_MILLI, milli_from_gpu
    from gpu_scheduler.simulate.fitting import Size

    gpu = options.gpu
    if (gpu is None) == (options.gpu_memory is None):
        raise ValueError("say how large a pod is: -g 0.3, or --gpu-memory 8Gi")
    number: float | int | None = None
    if gpu is not None:
        try:
            milli = milli_from_gpu(gpu)
        except ValueError as error:
            raise ValueError(f"-g {gpu}: {error}") from None
        number = milli // DEVICE_MILLI if milli % DEVICE_MILLI == 0 else milli / DEVICE_MILLI
    labels = {}
    for each in options.selector:
        key, equals, value = each.partition("=")
        if not (key and equals):
            raise ValueError(f"--selector {each}: KEY=VALUE")
        labels[key] = value
    return Size(
        number,
        options.gpu_memory,
        options.devices,
        options.models,
        options.cpu,
        options.memory,
        labels,
    )


def _print(found: dict[str, Any]) -> None:
    fits, count = found["fits"], found["count"]
    pods = f"{fits:,} pod{'' if fits == 1 else 's'}"
    who = f"{pods} of the {count:,} wanted" if count and fits < count else pods
    project = f" (project {found['project']})" if found["project"] else ""
    say(f"{who} with {found['asks']} would start now in {found['namespace']}{project}")
    table = PrintedTable(("NODE", "PODS", "GPU", "ON GPUS"))
    for node in found["nodes"]:
        numbers = ", ".join(_device(each) for each in node["devices"])
        table.rows.append((node["node"], str(node["pods"]), node["gpu"], numbers))
    if table.rows:
        say()
        print_table(table)
    if found["borrows"] != "0":
        say(f"\n{found['borrows']} GPU of that is borrowed: others may take it back")
    if found["reason"]:
        why = "Not more" if fits else "None"
        say(f"\n{why}: {found['reason']}: {found['message']}")


def _device(device: dict[str, Any]) -> str:
    times = f" x{device['pods']}" if device["pods"] > 1 else ""
    return f"{device['number']}{times}"
