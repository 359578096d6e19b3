"""``kubectl gpu dump``: all that the next plan is made from, as a file."""

import os
from pathlib import Path

import click

from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.shown import say
from gpu_scheduler.cli.where import ClusterOptions, of_whole_cluster, operator_namespace_option

_READ = ("python3", "-m", "gpu_scheduler.web.read_dump")


@click.command("dump")
@click.option(
    "--output",
    "-o",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write it there, for you alone to read, instead of printing it.",
)
@click.option("--replace-names", is_flag=True, help="Other names of everything, in the same order.")
@operator_namespace_option
@of_whole_cluster
def command(
    where: ClusterOptions, file: Path | None, replace_names: bool, operator_namespace: str
) -> None:
    """What the planner knows now, for a report of a defect; simulate --from plans with it.

    Read in the operator's pod, so who may run programs there gets it, and nobody else.
    """
    from gpu_scheduler.api.names import LEASE
    from gpu_scheduler.cli.one_pod.kubectl import output_of
    from gpu_scheduler.kube import paths
    from gpu_scheduler.runtime.dump import read, written

    with where.cluster() as cluster:
        lease = cluster.client.get(paths.lease(operator_namespace, LEASE))
    pod = str((lease.get("spec") or {}).get("holderIdentity") or "").rpartition("_")[0]
    if not pod:
        raise Failed("nobody leads, so nothing is planned; kubectl gpu check says more")
    of = [f"--namespace={operator_namespace}", f"pod/{pod}", "--container=operator"]
    data = output_of(where, ["exec", *of, "--", *_READ])
    if not data:
        raise Failed(f"{pod} does not plan yet; try again in a moment")
    dump = read(data)
    if replace_names:
        from gpu_scheduler.simulate.replaced_names import replaced

        data = b"".join(written(replaced(dump)))
    if file is None:
        click.echo(data, nl=False)
        return
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(data)
    say(f"{file}: {len(dump.given.jobs)} jobs wait on {len(dump.given.cluster.nodes)} nodes")
