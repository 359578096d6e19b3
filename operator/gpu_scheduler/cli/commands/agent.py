"""``gpu-scheduler agent`` and its commands."""

import json
from pathlib import Path

import click

from gpu_scheduler.cli.starting import configured, json_logs


@click.group("agent", invoke_without_command=True)
@json_logs
@click.pass_context
def command(context: click.Context, json_logs: bool) -> None:
    """Run this node's agent; settings come from GPUSCHED_AGENT_* variables."""
    if context.invoked_subcommand is not None:
        return
    import asyncio

    from gpu_scheduler.agent.process import run
    from gpu_scheduler.agent.settings import load

    settings, connection = configured(load, json_lines=json_logs)
    context.exit(asyncio.run(run(settings, connection)))


@command.command("self-test")
@click.option("--output", type=click.Path(path_type=Path), help="Write the verdict to this too.")
def self_test(output: Path | None) -> None:
    """Try every layer that could hold a container to its memory cap; say which one did, as JSON.

    Ends with 0 whatever came of it, so that it never keeps a pod from starting.
    """
    from gpu_scheduler.agent import selftest

    verdict = selftest.self_test()
    click.echo(verdict.to_json())
    if output is not None:
        output.write_text(verdict.to_json())


@command.command("processes")
def processes() -> None:
    """Who is on this node's GPUs now, as JSON: run in the agent's pod by kubectl gpu top gpus."""
    from gpu_scheduler.agent.driver import DriverError
    from gpu_scheduler.agent.process import processes_now
    from gpu_scheduler.agent.settings import load

    try:
        click.echo(json.dumps(processes_now(load())))
    except DriverError as error:
        raise click.ClickException(str(error)) from None


@command.command("history")
@click.option("--json", "as_json", is_flag=True, help="All of it, for scripts.")
@click.option("--remove", is_flag=True, help="Remove it from the node: before helm uninstall.")
def history(as_json: bool, remove: bool) -> None:
    """Who used this node's GPUs, as the agent has kept it: run in its pod.

    BUSY is the share of time in which kernels ran, since the beginning; HOUR that of the last hour.
    """
    from gpu_scheduler.agent.history.history_file import HistoryError
    from gpu_scheduler.agent.history.summary import COLUMNS, cells
    from gpu_scheduler.agent.process import kept_rows, remove_history
    from gpu_scheduler.agent.settings import load
    from gpu_scheduler.cli.printed_table import PrintedTable

    settings = load()
    if not settings.history_folder:
        raise click.ClickException("no history is kept here: chart value agent.history.enabled")
    try:
        if remove:
            return click.echo("\n".join(f"removed {each}" for each in remove_history(settings)))
        rows = kept_rows(settings)
    except HistoryError as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        return click.echo(json.dumps(rows))
    for line in PrintedTable(COLUMNS, [cells(row) for row in rows]).lines(headers=True):
        click.echo(line)
    return None
