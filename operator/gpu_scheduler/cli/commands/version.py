"""``kubectl gpu version``."""

import click

from gpu_scheduler import __version__
from gpu_scheduler.cli.where import ClusterOptions, of_cluster


@click.command("version")
@click.option("--server", is_flag=True, help="And that of the operator in the cluster.")
@of_cluster
def command(where: ClusterOptions, server: bool) -> None:
    """Print the version."""
    if not server:
        click.echo(__version__)
        return
    with where.cluster() as cluster:
        selector = "app.kubernetes.io/part-of=gpu-scheduler,app.kubernetes.io/version"
        found = [
            (str(labels["app.kubernetes.io/version"]), f"{meta['namespace']}/{meta['name']}")
            for each in cluster.client.items("/apis/apps/v1/deployments", selector)
            if (labels := (meta := each["metadata"]).get("labels") or {})
        ]
    click.echo(f"client  {__version__}")
    for version, name in found:
        click.echo(f"server  {version}  {name}")
    if not found:
        click.echo(
            "server  none: no Deployment of the chart; kubectl gpu check says what is missing"
        )
