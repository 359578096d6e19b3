"""``gpu-scheduler operator``."""

import click

from gpu_scheduler.cli.starting import configured, json_logs


@click.command("operator")
@json_logs
@click.pass_context
def command(context: click.Context, json_logs: bool) -> None:
    """Run a replica of the operator; settings come from GPUSCHED_* variables."""
    import uvloop

    from gpu_scheduler.replica import run
    from gpu_scheduler.runtime.common.settings import load

    settings, connection = configured(load, json_lines=json_logs)
    context.exit(uvloop.run(run(settings, connection)))
