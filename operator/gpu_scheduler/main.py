"""The command line: ``gpu-scheduler operator`` runs a replica of the operator.

A replica stands by until it holds the Lease, then runs everything in one event loop, and ends when
it loses the Lease or is told to: whoever restarts it gets a fresh stand-by.
"""

import asyncio
import gc
import logging
import signal
import sys
import uuid
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

from gpu_scheduler import __version__

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
log = logging.getLogger("gpu_scheduler")


@app.callback()
def gpu_scheduler() -> None:
    """A fractional GPU scheduler for Kubernetes."""


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


@app.command()
def operator(
    json_logs: Annotated[bool, typer.Option(help="One JSON object per log line.")] = False,
) -> None:
    """Run a replica of the operator; settings come from GPUSCHED_* variables."""
    import uvloop

    from gpu_scheduler.kube import config
    from gpu_scheduler.runtime import settings as settings_module

    try:
        settings = settings_module.load()
        connection = config.load()
    except (settings_module.SettingsError, config.ConfigError) as error:
        typer.echo(f"gpu-scheduler: {error}", err=True)
        raise typer.Exit(2) from None
    _log_to_stderr(settings.log_level, json_lines=json_logs)
    # A full collection over a large state would stop the loop for most of a second.
    gc.set_threshold(50_000, 20, 100)
    raise typer.Exit(uvloop.run(_replica(settings, connection)))


async def _replica(settings: Any, connection: Any) -> int:
    # Imported before the Lease is sought: an import blocks the loop, and with it the renewals.
    from gpu_scheduler.controllers import handlers
    from gpu_scheduler.kube.client import Client
    from gpu_scheduler.kube.lease import Elector
    from gpu_scheduler.runtime.operator import Operator
    from gpu_scheduler.web.admin import app as admin_app
    from gpu_scheduler.web.admin import serve
    from gpu_scheduler.web.metrics import Metrics

    identity = f"{settings.identity}_{uuid.uuid4().hex[:8]}"
    agent = f"gpu-scheduler/{__version__}"
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client(connection, user_agent=agent) as election:
        elector = Elector(
            election,
            settings.lease_namespace,
            "gpu-scheduler-leader",
            identity,
            lease_seconds=settings.lease_seconds,
            renew_deadline_seconds=settings.renew_deadline_seconds,
            retry_seconds=settings.retry_seconds,
        )
        async with Client(
            connection,
            fence=elector.remaining,
            user_agent=agent,
            concurrency=settings.write_concurrency + 20,
        ) as client:
            metrics = Metrics(client)
            leading: list[Operator] = []

            def state() -> str:
                return "leader" if leading else "standby"

            if settings.admin_port:
                web = admin_app(metrics.registry, ready=lambda: "", state=state)
                await serve(web, settings.admin_host, settings.admin_port)
            log.info("standing by as %s", identity)
            if not await _first(stop, elector.acquire()):
                return 0
            log.info("leading")
            leader = Operator(client, settings, metrics)
            metrics.operator = leader
            leading.append(leader)
            kopf = handlers.listen(leader.intake, connection, stop)
            code = await _lead(leader, elector, kopf, stop)
        if code == 0:
            await elector.release()
    return code


async def _lead(
    leader: Any, elector: Any, kopf: Coroutine[Any, Any, None], stop: asyncio.Event
) -> int:
    """Run everything until told to stop (0) or until something ends it (1)."""
    holding = asyncio.create_task(elector.hold())
    working = asyncio.create_task(leader.run())
    stopping = asyncio.create_task(stop.wait())
    # Our tasks first, kopf last: on its way out it cancels every task that is younger than it.
    listening = asyncio.create_task(kopf)
    tasks = {holding, working, stopping, listening}
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    told = stopping in done or stop.is_set()
    for task in done - {stopping}:
        if task is holding:
            log.error("the lease is lost")
        elif (error := task.exception()) is not None:
            log.error("ended: %s", _innermost(error), exc_info=error)
    for task in (working, listening):
        task.cancel()
    await asyncio.wait({working, listening}, timeout=2)
    holding.cancel()
    return 0 if told else 1


async def _first(stop: asyncio.Event, work: Any) -> bool:
    """Whether the work was done before we were told to stop."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working in done:
        working.result()
        return True
    working.cancel()
    return False


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def _log_to_stderr(level: str, *, json_lines: bool) -> None:
    text = (
        '{"time":"%(asctime)s","level":"%(levelname)s","logger":"%(name)s","message":"%(message)s"}'
        if json_lines
        else "%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.basicConfig(level=level.upper(), format=text, stream=sys.stderr)
    logging.getLogger("kopf").setLevel(logging.WARNING)


if __name__ == "__main__":
    app()
