"""``kubectl gpu simulate``: what the planner would do on a cluster."""

import json
from pathlib import Path

import click

from gpu_scheduler.cli.rules import EvictionOptions, packings, policy_option, rules_options
from gpu_scheduler.cli.shown import output_option, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster


@click.command("simulate")
@click.option(
    "--filename",
    "-f",
    "add",
    multiple=True,
    type=click.Path(path_type=Path),
    help="What if these objects were there too; YAML, may be repeated; - is standard input.",
)
@click.option("--remove", multiple=True, help="What if this were gone; KIND/NAME, may be repeated.")
@policy_option()
@rules_options("fair")
@click.option("--consolidation", is_flag=True, help="Pods may be moved together; see the chart.")
@click.option(
    "--operator-namespace",
    default="gpu-scheduler",
    show_default=True,
    help="Where the operator runs.",
)
@output_option("table", "json")
@of_cluster
def command(
    where: ClusterOptions,
    add: tuple[Path, ...],
    remove: tuple[str, ...],
    policy: str,
    rules: EvictionOptions,
    consolidation: bool,
    operator_namespace: str,
    output: str,
) -> None:
    """Show what the planner would do on this cluster, and with what-ifs; nothing is changed.

    What would start and where, what would give way, and why the rest waits.
    """
    from gpu_scheduler.simulate.cluster_command import ClusterRequest, simulate
    from gpu_scheduler.simulate.cluster_table import table

    (packing,) = packings([policy])
    policies = rules.policies()
    if len(policies) > 1:
        raise ValueError(f"--preemption {','.join(policies)}: on a cluster one of them")
    request = ClusterRequest(
        preemption_policy=next(iter(policies.values())),
        packing=packing,
        add=add,
        remove=remove,
        operator_namespace=operator_namespace,
        consolidation=consolidation,
    )
    with where.cluster() as cluster:
        report = simulate(request, cluster.client, cluster.namespace)
    say(json.dumps(report.to_json(), indent=2) if output == "json" else table(report))
