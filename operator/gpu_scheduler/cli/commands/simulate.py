"""``kubectl gpu simulate``: what the planner would do on a cluster."""

import json
from dataclasses import dataclass
from pathlib import Path

import click

from gpu_scheduler.cli.options import gathered
from gpu_scheduler.cli.rules import EvictionOptions, packings, policy_option, rules_options
from gpu_scheduler.cli.shown import output_option, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster, operator_namespace_option


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What is changed, and of which operator; names as of the options."""

    add: tuple[Path, ...]
    remove: tuple[str, ...]
    consolidation: bool
    operator_namespace: str
    dump: Path | None


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
@operator_namespace_option
@click.option(
    "--from",
    "dump",
    type=click.Path(path_type=Path),
    help="The plan of a file of kubectl gpu dump instead; no cluster is asked.",
)
@output_option("table", "json")
@of_cluster
@gathered("what_if", WhatIf)
def command(
    where: ClusterOptions, what_if: WhatIf, policy: str, rules: EvictionOptions, output: str
) -> None:
    """Show what the planner would do on this cluster, and with what-ifs; nothing is changed.

    What would start and where, what would give way, and why the rest waits.
    """
    if what_if.dump is not None:
        from gpu_scheduler.simulate.replay import replay

        if what_if.add or what_if.remove or what_if.consolidation:
            raise ValueError("--from: a dump is planned with as it is, without what-ifs")
        say(replay(what_if.dump, as_json=output == "json"))
        return
    from gpu_scheduler.simulate.cluster_command import ClusterRequest, simulate
    from gpu_scheduler.simulate.cluster_table import table

    (packing,) = packings([policy])
    policies = rules.policies()
    if len(policies) > 1:
        raise ValueError(f"--preemption {','.join(policies)}: on a cluster one of them")
    request = ClusterRequest(
        preemption_policy=next(iter(policies.values())),
        packing=packing,
        add=what_if.add,
        remove=what_if.remove,
        operator_namespace=what_if.operator_namespace,
        consolidation=what_if.consolidation,
    )
    with where.cluster() as cluster:
        report = simulate(request, cluster.client, cluster.namespace)
    say(json.dumps(report.to_json(), indent=2) if output == "json" else table(report))
