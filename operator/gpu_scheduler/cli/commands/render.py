"""``kubectl gpu render``."""

import click

from gpu_scheduler import __version__
from gpu_scheduler.api.share_keys import Compat


@click.command("render")
@click.option(
    "--filename",
    "-f",
    required=True,
    multiple=True,
    help="Manifests, YAML or JSON; - is standard input.",
)
@click.option(
    "--image",
    default=f"gpu-scheduler:{__version__}",
    show_default=True,
    help="Image that brings the library which keeps memory caps.",
)
@click.option(
    "--isolation",
    type=click.Choice(["interposer", "framework"]),
    default="interposer",
    show_default=True,
    help="Of pods that do not say.",
)
@click.option(
    "--runtime-class",
    default="nvidia",
    show_default=True,
    help="Of pods that name none; empty where the cluster has none.",
)
@click.option(
    "--compat",
    type=click.Choice([each.value for each in Compat]),
    help="Whose keys the pods may ask with beside ours, as their namespace says.",
)
@click.pass_context
def command(
    context: click.Context,
    filename: tuple[str, ...],
    image: str,
    isolation: str,
    runtime_class: str,
    compat: str | None,
) -> None:
    """Print manifests with the pods that ask for a share of a GPU made ours; nothing is sent.

    For clusters without the admission policy that does the same, and to see what it does.
    """
    from gpu_scheduler.api.gpujob import Isolation
    from gpu_scheduler.jobs.cap import CapImage
    from gpu_scheduler.jobs.share import Installation
    from gpu_scheduler.manifests.command import run

    given = Installation(CapImage(image), Isolation(isolation), runtime_class)
    context.exit(run(filename, given, Compat(compat) if compat else None))
