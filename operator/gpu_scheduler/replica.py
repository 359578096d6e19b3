"""One replica of the operator: it stands by, leads, and ends.

It ends when it is told to, when it loses the Lease or when a part fails; whoever restarts it gets a
fresh stand-by. Whatever ends a leader that still has the Lease, it is given back at once if nothing
that was written can land after the next leader has looked (``runtime.leading.draining``); otherwise
the next one waits it out. The line that says why a leader ends has the traceback where that is an
error.
"""

import asyncio
import gc
import logging
import signal
import uuid
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from gpu_scheduler import __version__
from gpu_scheduler.api.names import LEASE
from gpu_scheduler.controllers import handlers
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.kube.lease import Elector, LeaseTimes
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.dump import Dump
from gpu_scheduler.runtime.leading.draining import drain
from gpu_scheduler.runtime.leading.leader_label import follow
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.sweeps.runtime.sweeping import Sweeping
from gpu_scheduler.web.admin import AdminPort
from gpu_scheduler.web.admin import app as admin_app
from gpu_scheduler.web.bounded import Listener
from gpu_scheduler.web.dashboard.serving import Dashboard
from gpu_scheduler.web.dump_socket import DumpSocket
from gpu_scheduler.web.gc_pauses import GcPauses
from gpu_scheduler.web.metrics import OperatorMetrics
from gpu_scheduler.web.own_thread import asking
from gpu_scheduler.web.reports import app as reports_app
from gpu_scheduler.web.stalls import StallWatch

log = logging.getLogger(__name__)

_READS_IN_FLIGHT = 20  # beside the placing writes
_DRAIN_SECONDS = 5.0
_Server = AdminPort | Listener | StallWatch | DumpSocket | GcPauses | Dashboard


async def run(settings: OperatorSettings, connection: Connection) -> int:
    """Run until told to stop (0) or until something ends it (1): the exit code."""
    stop = asyncio.Event()
    _handle_signals(stop)
    identity = f"{settings.identity}_{uuid.uuid4().hex[:8]}"
    agent = f"gpu-scheduler/{__version__}"
    times = LeaseTimes(
        settings.lease_seconds, settings.renew_deadline_seconds, settings.retry_seconds
    )
    # The election has a client of its own, so that renewals never queue behind other requests.
    async with Client(connection, user_agent=agent) as election:
        elector = Elector(
            election,
            settings.lease_namespace,
            LEASE,
            identity,
            times,
        )
        async with Client(
            connection,
            fence=elector.remaining,
            user_agent=agent,
            concurrency=settings.write_concurrency + _READS_IN_FLIGHT,
        ) as client:
            clock = Clock()
            metrics = OperatorMetrics(client, clock)
            servers = await _serve(settings, connection, clock, metrics)
            leads = asyncio.Event()
            labelled = follow(election, settings.lease_namespace, settings.pod, leads)
            labelling = asyncio.create_task(labelled, name="label")
            looking = asyncio.create_task(clock.run(), name="clock")
            leader: Operator | None = None
            try:
                log.info("standing by as %s", identity)
                if not await _before(stop, elector.acquire()):
                    return 0
                log.info("leading")
                leader = Operator(client, settings, metrics, identity, Sweeping, clock)
                metrics.operator = leader
                if settings.agent_port:
                    metrics.use = leader.usage.cluster.look
                leads.set()
                return await _lead(leader, elector, client, stop)
            finally:
                labelling.cancel()
                looking.cancel()
                if leader is None:  # nothing was written but the Lease, perhaps just now
                    await elector.release()
                for server in servers:
                    await server.cleanup()


async def _serve(
    settings: OperatorSettings, connection: Connection, clock: Clock, metrics: OperatorMetrics
) -> list[_Server]:
    def state() -> str:
        return "leader" if metrics.operator else "standby"

    def leading() -> Operator | None:
        leader = metrics.operator
        return leader if leader is not None and leader.synced.is_set() else None

    def dump() -> Dump | None:
        leader = leading()
        return leader.planning.dump() if leader is not None else None

    gc.callbacks.append(metrics.gc_pauses)
    servers: list[_Server] = [StallWatch(metrics.stall_seconds), metrics.gc_pauses]
    if settings.admin_port:
        application = admin_app(
            metrics.registry,
            ready=metrics.missing,
            state=state,
            token=partial(_token, settings.scrape_token_file),
            look=metrics.look,
            ask=asking(asyncio.get_running_loop()),
        )
        admin = AdminPort(application)
        await admin.start(settings.admin_host, settings.admin_port)
        servers.append(admin)
    if settings.report_port:
        listener = Listener(reports_app(leading))
        await listener.start(settings.report_host, settings.report_port)
        servers.append(listener)
    if settings.dashboard_port:
        dashboard = metrics.dashboard = Dashboard(settings, connection, clock, leading)
        await dashboard.start()
        servers.append(dashboard)
    if settings.dump_socket:
        dumps = DumpSocket(settings.dump_socket, dump)
        await dumps.start()
        servers.append(dumps)
    return servers


def _token(file: str) -> str:
    """As it is now: whoever changes it restarts nobody."""
    try:
        return Path(file).read_text().strip() if file else ""
    except (OSError, UnicodeDecodeError):
        return ""


async def _lead(
    leader: Operator,
    elector: Elector,
    client: Client,
    stop: asyncio.Event,
) -> int:
    kopf_ready, kopf_stop = asyncio.Event(), asyncio.Event()
    listening = handlers.listen(
        leader.informers.custom_resources,
        client,
        ready=kopf_ready,
        stop=kopf_stop,
        listed=leader.informers.lists.version,
    )
    holding = asyncio.create_task(elector.hold(), name="lease")
    working = asyncio.create_task(leader.run(), name="operator")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    # Our tasks first, kopf last: on its way out it cancels every task that is younger than it.
    kopf = asyncio.create_task(listening, name="kopf")
    signals = asyncio.create_task(_take_signals_back(kopf_ready, stop))
    done, _ = await asyncio.wait(
        {holding, working, stopping, kopf}, return_when=asyncio.FIRST_COMPLETED
    )
    signals.cancel()
    # A signal that came before we had our handlers back has ended kopf instead.
    told = stop.is_set() or (kopf in done and not kopf.cancelled() and kopf.exception() is None)
    if told:
        log.info("this leader ends: it was told to stop")
    else:
        why, error = _why(holding, working, kopf)
        log.error("this leader ends: %s", why, exc_info=error)
    # From here on nothing is a defect any more that only says that something was cut off.
    asyncio.get_running_loop().set_exception_handler(_at_the_end)
    lost = holding.done() and not holding.cancelled() and holding.exception() is None
    harmless = not lost and await drain(
        leader.planning,
        leader.binding.binder,
        leader.binding.term,
        _DRAIN_SECONDS,
        running=not working.done(),
    )
    kopf_stop.set()
    working.cancel()
    holding.cancel()
    stopping.cancel()
    await asyncio.wait({working, kopf, holding, stopping}, timeout=2)
    for task in (working, kopf, holding):
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            log.debug("%s", task.get_name(), exc_info=error)
    if harmless:
        await elector.release()
    return 0 if told else 1


def _why(
    holding: asyncio.Task[str], *others: asyncio.Task[Any]
) -> tuple[str, BaseException | None]:
    """Why a leader ends that was not told to: the Lease first, for the fence closes by it.

    With the error where that is a defect; a fence that has closed is none.
    """
    if holding.done() and not holding.cancelled() and holding.exception() is None:
        return holding.result(), None
    for task in (*others, holding):
        if task.done():
            error = None if task.cancelled() else task.exception()
            if error is None:
                return f"{task.get_name()} ended", None
            first = min(_leaves(error), key=lambda each: isinstance(each, errors.NotLeader))
            defect = not isinstance(first, errors.NotLeader)
            return f"{task.get_name()} ended: {first!r}", first if defect else None
    return "nobody knows", None


def _at_the_end(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What the event loop says of tasks and connections that are cut off."""
    log.debug("%s", context.get("message"), exc_info=context.get("exception"))


def _handle_signals(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _take_signals_back(kopf_ready: asyncio.Event, stop: asyncio.Event) -> None:
    await kopf_ready.wait()
    _handle_signals(stop)


async def _before(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Whether the work was done before we were told to stop."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
        await asyncio.wait({working})
        return False
    working.result()
    return not stop.is_set()


def _leaves(error: BaseException) -> list[BaseException]:
    """What a group of exceptions is made of."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]
