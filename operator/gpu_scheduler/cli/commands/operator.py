"""``gpu-scheduler operator``."""

import click

from gpu_scheduler.cli.starting import configured, json_logs


@click.command("operator")
@json_logs
@click.option("--log-planner", is_flag=True, help="A log line per planning cycle and decision.")
@click.pass_context
def command(context: click.Context, json_logs: bool, log_planner: bool) -> None:
    """Run a replica of the operator; settings come from GPUSCHED_* variables."""
    import uvloop

    from gpu_scheduler.replica import run
    from gpu_scheduler.runtime import planner_log
    from gpu_scheduler.runtime.common.settings import load

    if log_planner:
        planner_log.switch_on()
    settings, connection = configured(load, json_lines=json_logs)
    context.exit(uvloop.run(run(settings, connection)))
