"""Whether a leader that ends may give its Lease back: no late write of it may take a device.

A placing write that lands after the next leader has looked promises a device twice. So either none
is under way, or the API server refuses it for its term (ADR 0043): the next leader's term closes
the fence before that leader lists anything, whatever became of the writes of this one. That holds
after an error too, when writes were cut off and nobody knows what became of them. Other writes are
not waited for: they name their object by its uid, or make one of a name that is taken once, and
what a late one does the next leader sees in its watches.
"""

import asyncio

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.binding.binder import Binder
from gpu_scheduler.runtime.binding.leader_term import LeaderTerm
from gpu_scheduler.runtime.planning import Planning

_COURTESY_SECONDS = 1.0  # for placing writes that the API server would refuse later


async def drain(
    planning: Planning, binder: Binder, term: LeaderTerm, seconds: float, *, running: bool
) -> bool:
    """Plan no more and let writes in flight end; whether no late one can do harm.

    Args:
        planning: it is paused.
        binder: whose writes they are.
        term: asked whether the API server refuses them.
        seconds: how long that may take.
        running: the leader's parts do run; if not, what is under way ends no more.
    """
    planning.paused = True
    try:
        async with asyncio.timeout(seconds):
            if await _is_idle(binder, _COURTESY_SECONDS * running) or await term.guards():
                return True
            if running:
                await binder.idle.wait()
                return True
    except (TimeoutError, errors.NotLeader):
        pass
    except Exception:
        unexpected("draining", "writes in flight")
    return False


async def _is_idle(binder: Binder, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await binder.idle.wait()
    except TimeoutError:
        return False
    return True
