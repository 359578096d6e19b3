"""``gpu-scheduler agent`` and ``gpu-scheduler agent self-test``."""

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
